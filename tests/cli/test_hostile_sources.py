"""Whatever a source raises or answers, the build ends with one line that names it.

In this process: nothing here ends one.
"""

from __future__ import annotations

import pytest
from hostile_plugin_support import (
    RAISED,
    InProcess,
    expect_one_line,
    plant_source,
    raised_in,
)
from hostile_plugin_support import here as here  # the fixtures
from hostile_plugin_support import place as place

METHODS = {
    "__init__": "def __init__(self, raw, options): {}",
    "raw_files": "def raw_files(self): {}",
    "labels": "def labels(self): {}",
    "items": "def items(self): {}",
    "items, later": "def items(self):\n    yield from super().items()\n    {}",
    "example": "def example(self, item): {}",
    "schema": "def schema(self): {}",
    "codecs": "def codecs(self): {}",
    "pickling": "def __reduce__(self): {}",
    "unpickling": "def __getstate__(self): return {{'a': 1}}\ndef __setstate__(self, state): {}",
}


@pytest.mark.parametrize(("where", "what"), raised_in(METHODS))
@pytest.mark.sweep
def test_whatever_a_source_raises_is_one_line(here: InProcess, where: str, what: str) -> None:
    plant_source(here.site, METHODS[where].format(RAISED[what]))
    expect_one_line(here.build(), "the source `evil`")


@pytest.mark.parametrize("what", RAISED)
def test_whatever_it_raises_when_it_describes_is_one_line(here: InProcess, what: str) -> None:
    plant_source(here.site, f"def describe(self): {RAISED[what]}")
    expect_one_line(here.build("--dry-run"), "the source `evil`", "`describe`")


@pytest.mark.parametrize("what", RAISED)
def test_whatever_its_options_raise_is_one_line(here: InProcess, what: str) -> None:
    more = (
        "@dataclass(frozen=True)\nclass Bad:\n    shade: str = 'dark'\n"
        f"    def __post_init__(self): {RAISED[what]}\n"
        "Evil.Options = Bad\n"
    )
    plant_source(here.site, "", more=more)
    expect_one_line(here.build(), "the source `evil`", "options")


WRONG = {
    "an item that is a tuple": (
        "def items(self): yield ('train', '0', 1, b'')",
        "failed in `items`: expected an Item, a Skipped or a Remark, found an object of type",
    ),
    "items that are none": ("def items(self): return None", "`items`: None is not an iterator"),
    "a state": (
        "def items(self): yield Item('train', '0', 1, {})",
        "`state` of the item `0` should be bytes, found an object of type `dict`",
    ),
    "a negative size": (
        "def items(self): yield Item('train', '0', -1)",
        "`size` of the item `0` is -1, expected at least 0",
    ),
    "a size in words": ("def items(self): yield Item('train', '0', 'a')", "should be a whole"),
    "a split": ("def items(self): yield Item('a/b', '0', 1)", "the split `a/b` should be letters"),
    "no key": ("def items(self): yield Item('train', None, 1)", "the key of an item should be a"),
    "a key that no file holds": ("def items(self): yield Item('train', '\\ud800', 1)", "the key"),
    "a key twice": (
        "def items(self): return [Item('train', '0', 1)] * 2",
        "lists `0` twice in the split `train`",
    ),
    "a code from nowhere": (
        "def items(self): yield Skipped('train', '0', 'OWN001', 'x')",
        "`OWN001` is not a code of a source",
    ),
    "a detail": ("def items(self): yield Skipped('train', '0', 'SRC001', 1)", "the detail of a"),
    "a remark that is never": (
        "def items(self): yield Remark('train', '0', 'SRC023', 'x', 0)",
        "`times` of a Remark is 0, expected at least 1",
    ),
    "raw files": ("def raw_files(self): yield 'a.txt'", "`raw_files`: expected a RawFile"),
    "negative raw files": ("def raw_files(self): yield RawFile('a.txt', -5, 5)", "`stored` of"),
    "labels that are a text": (
        "def labels(self): return {'label': 'one'}",
        "`labels`: class names of `label` should be a list, found an object of type `str`",
    ),
    "labels that are none": ("def labels(self): return None", "`labels`: expected feature names"),
    "labels of numbers": ("def labels(self): return {'label': [1]}", "a class name of `label`"),
    "labels that no file holds": (
        "def labels(self): return {'label': ['\\udc80']}",
        "not valid text",
    ),
    "no schema": ("def schema(self): return None", "`schema`: the schema should be a text"),
    "a schema that is none": ("def schema(self): return 'feature {'", "in `schema`: schema:1:"),
    "codecs": ("def codecs(self): return {'a': 1}", "`codecs`: a text should be a text"),
    "no example": ("def example(self, item): return None", "failed on `"),
    "an example of numbers": ("def example(self, item): return {'label': 1}", "failed on `"),
    "an example without a name": (
        "def example(self, item): return {1: int64_feature(1)}",
        "failed on `",
    ),
    "remarks": ("def example(self, item): return Written({}, ['x'])", "expected a Remark"),
    "another item": (
        "def example(self, item): return Skipped('other', item.key, 'SRC001', 'x')",
        "of `other` in its place",
    ),
    "a code of an example": (
        "def example(self, item): return Skipped('train', item.key, 'NOT', 'x')",
        "`NOT` is not a code of a source",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_an_answer_that_is_none_is_one_line(here: InProcess, what: str) -> None:
    body, words = WRONG[what]
    plant_source(here.site, body)
    expect_one_line(here.build(), "the source `evil`", words)


def test_a_raw_file_that_is_not_there_is_told_of_with_the_distribution(here: InProcess) -> None:
    plant_source(here.site, "def raw_files(self): yield RawFile('gone.txt', 5, 5)")
    code, _, err = here.build()
    assert code == 2
    assert err.startswith(
        "error: the source `evil` of `hostile` 6.6 lists the raw file `gone.txt`, which does "
        "not exist (hostile_plugin.py, line "
    )


@pytest.mark.parametrize("path", ["../r/tfrecreg.toml", "/etc/passwd", "a\0b", ""])
def test_a_raw_file_outside_of_the_raw_data_is_one_line(here: InProcess, path: str) -> None:
    plant_source(here.site, f"def raw_files(self): yield RawFile({path!r}, 5, 5)")
    code, _, err = here.build()
    assert code in (2, 3)
    assert [line.partition(":")[0] for line in err.splitlines()] == ["error", "hint"]


def test_what_a_source_says_of_raw_data_is_passed_on(here: InProcess) -> None:
    plant_source(here.site, "def items(self): raise RawDataError('no data', hint='bring some')")
    code, _, err = here.build()
    assert (code, err) == (2, "error: no data\nhint: bring some\n")
