"""Reports as a page of HTML."""

from __future__ import annotations

from collections.abc import Sequence

from tfrecreg.reports.model import Report


def html(reports: Sequence[Report], prefix: str) -> str:
    """The page of reports whose records are not at hand.

    Args:
        reports: the reports.
        prefix: not used: a page shows no paths that lead anywhere.
    """
    del prefix
    from tfrecreg.pages.collect import page_without_records  # other formats need no templates
    from tfrecreg.pages.render import render_page

    return render_page(page_without_records(reports))
