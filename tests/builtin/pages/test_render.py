"""Pages of reports: whatever the names are, they stay text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hostile_support import NAMES, hostile_report
from page_support import read_page

from tfrecreg.builtin.pages.collect import Surveys
from tfrecreg.builtin.pages.make import render_page
from tfrecreg.core.values.text import safe


@pytest.fixture(scope="module")
def plain() -> list[str]:
    """The tags of a page without hostile names."""
    return tags(render_page(Surveys().page([hostile_report("name")])))


def tags(html: str) -> list[str]:
    page = read_page(html)
    return page.headings


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_hostile_name_stays_in_its_place(name: str, plain: list[str]) -> None:
    report = replace(hostile_report(name), target=safe(name) or "digits")
    page = read_page(render_page(Surveys().page([report])))
    assert len(page.headings) == len(plain)
    if name.strip() and len(name) < 100:
        assert " ".join(safe(name).split()) in page.text


def test_accepted_findings_have_their_waiver() -> None:
    page = read_page(render_page(Surveys().page([hostile_report("x")])))
    assert "Accepted by ax until 2031-01-31: bx" in page.text
    assert "Incomplete" in page.text
    assert "x was not read" in page.text


def test_names_in_a_table_of_places_keep_their_backticks() -> None:
    html = render_page(Surveys().page([hostile_report("a`b`c")]))
    assert html.count("<td><bdi>a`b`c</bdi></td>") == 4 * 4  # split, shard, feature and key
    assert html.count("<td><bdi>expected <code>a</code>b") == 4
