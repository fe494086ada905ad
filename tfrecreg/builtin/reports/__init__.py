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

_SUMMARIES = {
    "github": "annotations of GitHub Actions, and a job summary",
    "junit": "test results, for CI",
    "markdown": "for a pull request comment",
    "sarif": "for code scanning",
}


@hookimpl
def tfrecreg_report_formats() -> Iterator[ReportFormatRecord]:
    """Yield every bundled report format; its module loads when it is used."""
    for name, summary in _SUMMARIES.items():
        yield ReportFormatRecord(name=name, summary=summary, load=partial(_load, name))


def _load(name: str) -> type[ReportFormat]:
    module = import_module(f"tfrecreg.builtin.reports.{name}")
    loaded: type[ReportFormat] = getattr(module, f"{name.capitalize()}Format")
    return loaded
