"""The bundled report formats. Names from data cannot break them.

The JSON of a report is :meth:`tfrecreg.core.check.reports.Report.to_json`, its text
:func:`tfrecreg.core.terminal.findings.print_report`, its page
:mod:`tfrecreg.builtin.pages.make`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import import_module

from tfrecreg.api import ReportFormat, ReportFormatRecord, hookimpl

_FORMATS = {
    "github": ("for_people", "annotations of GitHub Actions, and a job summary"),
    "junit": ("for_tools", "test results, for CI"),
    "markdown": ("for_people", "for a pull request comment"),
    "sarif": ("for_tools", "for code scanning"),
}
"""Module and line of each format."""


@hookimpl
def tfrecreg_report_formats() -> Iterator[ReportFormatRecord]:
    """Yield every bundled report format; its module loads when it is used."""
    for name, (module, summary) in _FORMATS.items():
        load = partial(_load, module, f"{name.capitalize()}Format")
        yield ReportFormatRecord(name=name, summary=summary, load=load)


def _load(module: str, name: str) -> type[ReportFormat]:
    loaded: type[ReportFormat] = getattr(import_module(f"tfrecreg.builtin.reports.{module}"), name)
    return loaded
