"""Makes pages: HTML files that open anywhere, without a network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfrecreg.core.plugins.records import ReportFormatRecord
from tfrecreg.core.plugins.specs import hookimpl

if TYPE_CHECKING:
    from tfrecreg.core.check.report_format import ReportFormat


@hookimpl
def tfrecreg_report_formats() -> Iterator[ReportFormatRecord]:
    """Yield the record of the format `html`. No other report format shows records."""
    yield ReportFormatRecord(name="html", summary="a page with images", load=_load)


def _load() -> type[ReportFormat]:
    from tfrecreg.builtin.pages.make import HtmlFormat

    return HtmlFormat
