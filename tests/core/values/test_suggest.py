from __future__ import annotations

import pytest

from tfrecreg.core.values.text import did_you_mean, listed


def test_a_close_name_is_suggested() -> None:
    assert did_you_mean("mnits", ["coco", "mnist"]) == "; did you mean `mnist`?"


def test_a_distant_name_is_not() -> None:
    assert did_you_mean("zebra", ["coco", "mnist"]) == ""


def test_suggestions_do_not_depend_on_order() -> None:
    assert did_you_mean("ab", ["ax", "ay"]) == did_you_mean("ab", ["ay", "ax"])


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], "none"),
        (["a"], "`a`"),
        (["a", "b"], "`a` or `b`"),
        (["a", "b", "\x1b"], r"`a`, `b` or `\x1b`"),
    ],
)
def test_names_are_listed_as_in_a_sentence(names: list[str], text: str) -> None:
    assert listed(names, word="or") == text
