"""Parts of a sweep: together they are all of it."""

from __future__ import annotations

from typing import Any

import pytest
from sweep_support import VARIABLE, part, without_others


def parts_of(every: range, parts: int, monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    found = []
    for number in range(1, parts + 1):
        monkeypatch.setenv(VARIABLE, f"{number}/{parts}")
        found.append(list(part(every)))
    return found


@pytest.mark.parametrize("count", [3, 4, 10, 11])
def test_all_parts_are_the_sweep(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = parts_of(range(count), 3, monkeypatch)
    assert sorted(each for some in found for each in some) == list(range(count))


def test_of_a_short_sweep_each_part_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parts_of(range(2), 3, monkeypatch) == [[0], [1], [0]]
    assert parts_of(range(0), 3, monkeypatch) == [[], [], []]


def test_without_the_variable_it_is_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert part(range(5)) == range(5)


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/b", "1/0"])
def test_nonsense_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(ValueError, match="TFRECREG_SWEEP should be such as `2/3`, found `"):
        part(range(5))


class Item:
    """What is asked of a test."""

    def __init__(self, number: int, *, marked: bool) -> None:
        self.nodeid = f"tests/test_it.py::test_{marked}[{number}]"
        self.number, self.marked = number, marked

    def get_closest_marker(self, name: str) -> str | None:
        return name if name == "sweep" and self.marked else None


def test_parameters_of_a_marked_test_are_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    items: list[Any] = [
        Item(number, marked=marked) for number in range(6) for marked in (True, False)
    ]
    monkeypatch.setenv(VARIABLE, "2/3")
    kept: list[Any] = without_others(items)
    assert [each.number for each in kept if each.marked] == [1, 4]
    assert [each.number for each in kept if not each.marked] == list(range(6))
