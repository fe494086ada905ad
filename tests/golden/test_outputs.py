"""All that commands print, word for word: a change of one of them is seen, and decided on."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories import OUTPUTS, STORIES, told


@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_told_in_the_same_words(name: str, tmp_path: Path) -> None:
    expected = (OUTPUTS / f"{name}.txt").read_text("utf-8")
    found = told(name, tmp_path)
    # `make accept` writes the new words.
    assert found.splitlines() == expected.splitlines()


def test_each_output_has_a_story() -> None:
    assert {each.stem for each in OUTPUTS.glob("*.txt")} == {*STORIES}
