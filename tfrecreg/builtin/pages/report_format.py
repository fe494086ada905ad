"""Reports as a page of HTML."""

from __future__ import annotations

from collections.abc import Sequence

from tfrecreg.builtin.pages.collect import Surveys
from tfrecreg.builtin.pages.render import render_page
from tfrecreg.core.check.report_format import ReportContext, ReportFormat
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.scan.interface import Target, Validator


class HtmlFormat(ReportFormat):
    """A page: with records if a check just read them, otherwise without."""

    def __init__(self) -> None:
        self._surveys = Surveys()

    def look(self, target: Target) -> Sequence[Validator]:
        """The survey of the records."""
        return self._surveys.look(target)

    def render(self, reports: Sequence[Report], context: ReportContext) -> str:
        """The page. It shows no paths that lead anywhere."""
        page = self._surveys.page(reports)
        if page.notice:
            context.note(page.notice)
        return render_page(page)
