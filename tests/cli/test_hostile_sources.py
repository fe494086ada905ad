"""Whatever a source raises or answers, the build ends with one line that names it.

In this process: nothing here ends one.
"""

from __future__ import annotations

import pytest
from hostile_plugin_support import (
    RAISED,
    SOURCE,
    InProcess,
    expect_one_line,
    plant,
    raised_in,
)
from hostile_plugin_support import here as here  # the fixture

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
    plant(here.site, SOURCE, METHODS[where].format(RAISED[what]))
    expect_one_line(here.build(), "the source `evil`")


WRONG = {
    "an item that is a tuple": (
        "def items(self): yield ('train', '0', 1, b'')",
        "failed in `items`: expected `Item`, `Skipped` or `Remark`, found an object of type",
    ),
    "a size in words": (
        "def items(self): yield Item('train', '0', 'a')",
        "Expected `int`, got `str` at `size`",
    ),
    "a key twice": (
        "def items(self): return [Item('train', '0', 1)] * 2",
        "lists `0` twice in the split `train`",
    ),
    "a key that no file can have": (
        r"def items(self): yield Item('train', '\ud800', 1)",
        "failed in `items`: a text in it is not valid: 'utf-8' codec can't encode",
    ),
    "a code from nowhere": (
        "def items(self): yield Skipped('train', '0', 'OWN001', 'x')",
        "`OWN001` is not a code of a source",
    ),
    "a former code": (
        "def items(self): yield Skipped('train', '0', 'SRC002', 'x')",
        "`tfrecreg explain` lists the codes; SRC002 became SRC110",
    ),
    "negative raw files": (
        "def raw_files(self): yield RawFile('a.txt', -5, 5)",
        "Expected `int` >= 0 at `stored`",
    ),
    "a schema that is none": ("def schema(self): return 'feature {'", "in `schema`: schema:1:"),
    "codecs": ("def codecs(self): return {'a': 1}", "`codecs`: Expected `str`, got `int`"),
    "an example that is a number": (
        "def example(self, item): return 5",
        "expected an example, found an object of type `int`",
    ),
    "an example without a name": (
        "def example(self, item): return {1: int64_feature(1)}",
        "failed on `",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_an_answer_that_is_none_is_one_line(here: InProcess, what: str) -> None:
    body, words = WRONG[what]
    plant(here.site, SOURCE, body)
    expect_one_line(here.build(), "the source `evil`", words)


def test_a_raw_file_that_is_not_there_is_told_of_with_the_distribution(here: InProcess) -> None:
    plant(here.site, SOURCE, "def raw_files(self): yield RawFile('gone.txt', 5, 5)")
    code, _, err = here.build()
    assert code == 2
    assert err.startswith(
        "error: the source `evil` of `hostile` 6.6 lists the raw file `gone.txt`, which does "
        "not exist"
    )


@pytest.mark.parametrize("path", ["../r/tfrecreg.toml", "/etc/passwd", "a\0b", ""])
def test_a_raw_file_outside_of_the_raw_data_is_one_line(here: InProcess, path: str) -> None:
    plant(here.site, SOURCE, f"def raw_files(self): yield RawFile({path!r}, 5, 5)")
    code, _, err = here.build()
    assert code in (2, 3)
    heads = [line.partition(":")[0] for line in err.splitlines()]
    assert heads in (["error"], ["error", "hint"])
