"""Changing values in TOML text: comments, order and line ends stay."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.core.values.documents import update_toml
from tfrecreg.core.values.errors import ConfigError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

VALUES: dict[str, Any] = {"source": "mnist", "raw": "raw/mnist", "options": {"size": 28}}
FULL = """# Digits.
owner = 'ada' # since May

[options]   # of the source
size = 20
# the end
"""


def updated(text: str, values: dict[str, Any]) -> str:
    return update_toml(text, "datasets/mnist.toml", values)


def test_an_empty_file_gets_the_values() -> None:
    text = updated("", {**VALUES, "shards": None})
    assert text == 'source = "mnist"\nraw = "raw/mnist"\noptions = {size = 28}\n'


def test_updating_keeps_comments_order_and_other_keys() -> None:
    before = """\
# Digits
# where they are
raw = "old"        # moved soon
owner = 'ada'
flag = true # yes
shards = 1_0
options = {size = 20} # pixels
"""
    values = {"raw": "new", "shards": None, "flag": True, "options": {"size": 28}, "hosts": 2}
    assert updated(before, values) == (
        before.replace('"old"', '"new"')
        .replace("shards = 1_0\n", "")
        .replace("{size = 20} # pixels\n", "{size = 28} # pixels\nhosts = 2\n")
    )


def test_keys_and_tables_are_updated_where_they_stand() -> None:
    after = updated(FULL, {"options": {"size": 4, "pad": 1}, "shards": 2})
    assert tomllib.loads(after) == {
        "owner": "ada",
        "shards": 2,
        "options": {"size": 4, "pad": 1},
    }
    for comment in ("# Digits.", "# since May", "# of the source", "# the end"):
        assert comment in after


def test_windows_line_ends_stay() -> None:
    before = "# hi\r\nraw = 'x'\r\n"
    assert updated(before, {"owner": "ada"}) == before + 'owner = "ada"\r\n'


@pytest.mark.parametrize("text", ["a = ", "options = 3\noptions.x = 1\n"])
def test_a_file_that_is_wrong_is_not_written_on(text: str) -> None:
    with pytest.raises(ConfigError, match=r"`datasets/mnist\.toml` is not TOML"):
        updated(text, VALUES)


def test_what_cannot_be_written_is_refused_with_the_keys() -> None:
    with pytest.raises(ConfigError) as caught:
        updated("", {"source": object(), "raw": "x"})
    assert "set `source` and `raw` there by hand" in caught.value.message


words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
values = st.dictionaries(
    st.sampled_from(["source", "raw", "owner", "license", "shards", "options"]),
    st.none()
    | words
    | st.integers(-(2**40), 2**40)
    | st.booleans()
    | st.floats(allow_nan=False)
    | st.lists(words, max_size=2)
    | st.dictionaries(words.filter(bool), words | st.integers(0, 9), max_size=2),
    max_size=4,
)


@settings(max_examples=100)
@given(st.sampled_from(["", FULL]), st.lists(values, max_size=4))
def test_whatever_is_written_is_read_back(text: str, steps: list[dict[str, Any]]) -> None:
    expected = tomllib.loads(text)
    for given_values in steps:
        text = updated(text, given_values)
        for key, value in given_values.items():
            expected.pop(key, None)
            if value is not None:
                expected[key] = value
    assert tomllib.loads(text) == expected
