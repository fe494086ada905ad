"""The bundled report formats. In all these formats, names from the data are escaped.

Three other forms of a report are made elsewhere:

- JSON: :meth:`tfrecreg.core.check.reports.Report.to_json`
- text: :func:`tfrecreg.core.terminal.findings.print_report`
- page: :mod:`tfrecreg.builtin.pages.make`
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import import_module

from tfrecreg.api import ReportFormat, ReportFormatRecord, hookimpl

_FORMATS = {
    "github": "annotations of GitHub Actions, and a job summary",
    "junit": "test results, for CI",
    "markdown": "for a pull request comment",
    "sarif": "for code scanning",
}


@hookimpl
def tfrecreg_report_formats() -> Iterator[ReportFormatRecord]:
    """Yield every bundled report format. Their module is imported on first use."""
    for name, summary in _FORMATS.items():
        yield ReportFormatRecord(name=name, summary=summary, load=partial(_load, name))


def _load(name: str) -> type[ReportFormat]:
    module = import_module("tfrecreg.builtin.reports.formats")
    found: type[ReportFormat] = getattr(module, f"{name.capitalize()}Format")
    return found
