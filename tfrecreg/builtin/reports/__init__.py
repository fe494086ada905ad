"""The bundled report formats. They escape names from data.

Other code makes a report's JSON (:meth:`tfrecreg.core.check.reports.Report.to_json`), text
(:func:`tfrecreg.core.terminal.findings.print_report`) and page
(:mod:`tfrecreg.builtin.pages.make`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import cast

from tfrecreg.api import ReportFormat, ReportFormatRecord, hookimpl

_FORMATS = {
    "github": ("for_people", "annotations of GitHub Actions, and a job summary"),
    "junit": ("for_tools", "test results, for CI"),
    "markdown": ("for_people", "for a pull request comment"),
    "sarif": ("for_tools", "for code scanning"),
}
"""The module and the summary of each format."""


@hookimpl
def tfrecreg_report_formats() -> Iterator[ReportFormatRecord]:
    """Yield every bundled report format. Its module is imported on first use."""
    for name, (_, summary) in _FORMATS.items():
        yield ReportFormatRecord(name=name, summary=summary, load=partial(_load, name))


def _load(name: str) -> type[ReportFormat]:
    module = import_module(f"tfrecreg.builtin.reports.{_FORMATS[name][0]}")
    return cast("type[ReportFormat]", getattr(module, f"{name.capitalize()}Format"))
