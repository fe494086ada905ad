"""The mutations that `make mutants` tries."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from mutation_support import compiles, mutated, mutations

import tfrecreg.index

SOURCE = '''\
"""Docstring."""
from __future__ import annotations

__all__ = ["f"]
LIMIT = 10


def f(x: int = 3, *, deep: bool = False) -> int | None:
    """What it does."""
    if x < 4 and not deep:
        raise ValueError(f"{x} is 1 too few")
    for each in range(x):
        if (each + 1) == x:
            break
    g(each, limit=LIMIT, kind="é")
    return each if each in (1, 2) else None
'''


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (1, []),
        (4, []),
        (5, ["LIMIT = 11"]),
        (8, ["int = 4, *, deep: bool = False", "int = 3, *, deep: bool = True"]),
        (9, []),
        (
            10,
            [
                "if not (x < 4 and (not deep)):",
                "if x <= 4 and not deep:",
                "if x < 5 and not deep:",
                "if x < 4 or not deep:",
                "if x < 4 and deep:",
            ],
        ),
        (11, ["pass"]),
        (13, ["not (each + 1 == x):", "(each - 1) == x:", "(each + 2) == x:", "(each + 1) != x:"]),
        (14, ["continue"]),
        (15, ["pass", 'g(each,  kind="é")', "g(each, limit=LIMIT, )"]),
        (
            16,
            [
                "return None",
                "return (None)",
                "return (each)",
                "each not in (1, 2) else",
                "each in (2, 2) else",
                "each in (1, 3) else",
            ],
        ),
    ],
)
def test_each_line_has_its_mutations(line: int, expected: list[str]) -> None:
    found = [each for each in mutations(SOURCE) if each.line == line]
    lines = [mutated(SOURCE, each).splitlines()[line - 1] for each in found]
    assert len(lines) == len(expected)
    for text, part in zip(lines, expected, strict=True):
        assert part in text


@pytest.mark.medium
def test_mutants_differ_from_the_source_and_from_each_other() -> None:
    source = Path(tfrecreg.index.__file__).read_text(encoding="utf-8")
    trees = {ast.dump(ast.parse(source))}
    found = [each for each in mutations(source) if compiles(mutated(source, each))]
    assert len(found) > 100
    for each in found:
        text = mutated(source, each)
        assert text.count("\n") <= source.count("\n")
        trees.add(ast.dump(ast.parse(text)))
    # Some come about in two ways: `not x` is both a condition and a negation.
    assert len(trees) > 0.95 * len(found)


def test_source_that_is_no_python_is_seen() -> None:
    assert compiles("x = 1\n")
    assert not compiles("def f(:\n")


def test_description_shows_both_versions() -> None:
    (only,) = mutations("LIMIT = 10\n")
    assert only.describe("LIMIT = 10\n") == "10 → 11"
