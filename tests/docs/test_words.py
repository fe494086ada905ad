"""Words that slow a reader down, in pages, docstrings, comments and messages."""

from __future__ import annotations

import re

import pytest
from package_support import CHECKOUT

PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md")
    for path in CHECKOUT.glob(pattern)
)
CODE = sorted(
    path
    for folder in ("tfrecreg", "plugins")
    for pattern in ("**/*.py", "**/*.md")
    for path in (CHECKOUT / folder).glob(pattern)
)
AVOIDED = re.compile(
    r", too(?=[.,:;)\s]*$|[.:;),] )|\bmeanwhile\b|\b(?:is|are) told\b|\bthat there are\b"
    r"|\bmachine of the month\b",
    re.IGNORECASE | re.MULTILINE,
)
"""Adverbs at the end, and passives without an agent."""


@pytest.mark.parametrize("folder", ["pages", "code"])
def test_plain_words_are_used(folder: str) -> None:
    found = {
        f"{path.relative_to(CHECKOUT)}: {match.string[max(match.start() - 40, 0) : match.end()]!r}"
        for path in (PAGES if folder == "pages" else CODE)
        for match in AVOIDED.finditer(path.read_text("utf-8"))
    }
    assert found == set()
