"""The types of columns by all their values; for every column, whether values are missing.

The rule for a column that was given no type:

- texts of a CSV: `int64` if every value is an integer as Python writes it, within int64; else
  `float` if every value is a decimal that comes back from float32; else `text`. Among numbers, the
  usual marks of missing values are no values
- values of JSON and Parquet keep their types: integers and booleans are `int64`, floats `float` if
  each comes back from float32, texts `text`, bytes `bytes`; anything else is refused
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from tfrecreg.api import RawDataError, safe
from tfrecreg_table.rows import Place
from tfrecreg_table.values import CellError, comes_back, float32, is_missing, text_of, ticked

_INTEGER = r"(?:0|-?[1-9][0-9]{0,399})"
_DECIMAL = r"(?:-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?|nan|NaN)"
_IS_INTEGER = re.compile(_INTEGER)
_IS_DECIMAL = re.compile(_DECIMAL)
_IS_NUMBER = re.compile(r"[+-]?[0-9][0-9.eE+-]{0,399}")
_SHORT_INTEGERS = re.compile(r"(?:(?:0|-?[1-9][0-9]{0,5})\n)*")
_INT64S = re.compile(r"(?:(?:0|-?[1-9][0-9]{0,17})\n)*")
_SHORT_DECIMALS = re.compile(rf"(?:(?=-?[0-9.]{{1,7}}\n){_DECIMAL}\n)*")
"""Numbers that int64 or float32 hold, a line each."""
_FEW, _MOST_OTHERS = 10, 5
"""Cells that are no numbers make a column one of texts if they are more than one in so many, or of
more different values; otherwise they are remarked, as is one text among so many numbers."""


class Flaw(NamedTuple):
    """The first value that a type does not hold, and why."""

    line: int
    why: str
    can_round: bool = False
    """Whether the option `decimals=round` would hold it."""


class ColumnSurvey:
    """What all values of a column have in common."""

    def __init__(self, kinds: Sequence[str], *, texts: bool, rounds: bool) -> None:
        self._is_open = "" in kinds
        self._in_classes = "label" in kinds
        self._number = next((kind for kind in kinds if kind in ("int64", "float")), "")
        self._texts, self._rounds = texts, rounds
        self.rows = 0
        """Rows that had the column, with a value or without."""
        self.missing = False
        self.lists = False
        self.names: set[str] = set()
        """Names of classes."""
        self.first: Any = None
        """The first value."""
        self.marks: Counter[str] = Counter()
        """Cells of a column of numbers that mean a missing value."""
        self.mark_line = 0
        self._numbers = 0
        self._has_fractions = False
        self._others: Counter[str] = Counter()
        """Texts that are no numbers, while they are few."""
        self._other_line = 0
        self._flaws: dict[str, Flaw] = {}
        """By the type that does not hold a value: `int64`, `float`, or `` for both."""
        self._types: dict[type, int] = {}
        """The row of the first value of each type."""

    def add(self, name: str, values: Sequence[Any], places: Sequence[Place]) -> None:
        """Look at more values."""
        self.rows += len(values)
        types = set(map(type, values))
        if type(None) in types:
            self.missing = True
            pairs = [pair for pair in zip(values, places, strict=True) if pair[0] is not None]
            values, places = [each for each, _ in pairs], [place for _, place in pairs]
            types.discard(type(None))
        if values and self.first is None:
            self.first = values[0]
        if list in types:
            self.lists = True
            pairs = [
                (each, place)
                for value, place in zip(values, places, strict=True)
                for each in (value if type(value) is list else (value,))
                if each is not None
            ]
            values, places = [each for each, _ in pairs], [place for _, place in pairs]
            types = set(map(type, values))
            if types & {list, dict, tuple}:
                raise RawDataError(
                    f"the column {ticked(name)} holds lists of lists or of objects, first in row "
                    f"{places[0].number}",
                    hint=f"leave it out: --option 'columns=*,{safe(name, limit=30)}:skip'",
                )
        if self._in_classes:
            self._add_classes(name, values)
        elif self._is_open and self._texts:
            self._add_texts(values, places)
        elif self._is_open:
            self._add_typed(types, values, places)
        elif self._number and str in types:
            for value, times in Counter(values).items():
                if type(value) is str and is_missing(self._number, value):
                    self._mark(value, times, partial(_first_line, value, values, places))

    def kind(self, name: str) -> tuple[str, Flaw | None]:
        """The type of the column, and why numbers are kept as text."""
        number = "float" if self._has_fractions or float in self._types else "int64"
        flaws = [self._flaws[each] for each in ("", number) if each in self._flaws]
        flaw = min(flaws, default=None)
        if self._texts:
            return self._kind_of_texts(number, flaw)
        kinds = self._types
        unknown = kinds.keys() - {bool, int, float, str, bytes}
        if unknown or (len(kinds) > 1 and kinds.keys() != {int, float}):
            found = ", ".join(f"{each.__name__} (row {row})" for each, row in kinds.items())
            what = "that an example cannot hold" if unknown else "of several types"
            raise RawDataError(
                f"the column {ticked(name)} has values {what}: {found}",
                hint=f"--option 'columns=*,{safe(name, limit=30)}:text', or `:skip`",
            )
        if flaw is not None:
            remedy = f"--option 'columns=*,{safe(name, limit=30)}:text' keeps the digits"
            if flaw.can_round:
                remedy = f"--option decimals=round rounds it, {remedy}"
            raise RawDataError(
                f"the column {ticked(name)}, row {flaw.line}: {flaw.why}", hint=remedy
            )
        if kinds.keys() & {int, bool, float}:
            return number, None
        return "bytes" if bytes in kinds else "text", None

    def _kind_of_texts(self, number: str, flaw: Flaw | None) -> tuple[str, Flaw | None]:
        others = sum(self._others.values())
        total = self._numbers + others
        few = others * _FEW <= total or (len(self._others) == 1 and self._numbers >= _FEW)
        if len(self._others) > _MOST_OTHERS or not self._numbers or not few:
            self.marks.clear()
            return "text", None
        if self._others and flaw is None:
            why = f"{ticked(next(iter(self._others)))} is not a number"
            why += f", as {others:,} of {total:,} cells" if others > 1 else ""
            flaw = Flaw(self._other_line, why)
        if flaw is not None:
            self.marks.clear()
            return "text", flaw
        self.missing = self.missing or bool(self.marks)
        return number, None

    def _add_classes(self, name: str, values: Sequence[Any]) -> None:
        try:
            self.names.update(map(text_of, values))
        except CellError as error:
            raise RawDataError(
                f"the column {ticked(name)} does not name classes: {error}",
                hint="`columns` gives each column a type",
            ) from error

    def _add_texts(self, values: Sequence[str], places: Sequence[Place]) -> None:
        if len(self._others) > _MOST_OTHERS:  # it is text
            return
        lines = "\n".join(values) + "\n"
        if lines.count("\n") == len(values):
            is_short = _SHORT_INTEGERS.fullmatch(lines)
            if is_short or ("float" in self._flaws and _INT64S.fullmatch(lines)):
                self._numbers += len(values)
                return
            if _SHORT_DECIMALS.fullmatch(lines):
                self._numbers += len(values)
                self._has_fractions = True
                return
        for value, times in Counter(values).items():
            line = partial(_first_line, value, values, places)
            bare = value.strip()
            if _IS_INTEGER.fullmatch(value):
                self._add_integer(int(value), line)
            elif _IS_DECIMAL.fullmatch(value):
                self._has_fractions = True
                is_plain = len(value) <= 7 and "e" not in value.lower()
                if not is_plain and not comes_back(value, rounds=self._rounds):
                    self._flaw("float", line, f"float32 does not hold {ticked(value)}")
            elif _IS_NUMBER.fullmatch(value):
                self._flaw("", line, f"{ticked(value)} is written with a sign or zeros before it")
            elif is_missing("float", value):
                self._mark(value, times, line)
                continue
            elif _IS_NUMBER.fullmatch(bare) or _IS_DECIMAL.fullmatch(bare):
                self._flaw("", line, f"{ticked(value)} has blanks around it")
            else:
                self._others[value] += times
                self._other_line = self._other_line or line()
                if len(self._others) > _MOST_OTHERS:
                    return
                continue
            self._numbers += times

    def _add_typed(self, types: set[type], values: Sequence[Any], places: Sequence[Place]) -> None:
        if types - self._types.keys():
            for value, place in zip(values, places, strict=True):  # in the order of the rows
                self._types.setdefault(type(value), place.number)
        if not types <= {int, float}:
            return
        for value, place in zip(values, places, strict=True):
            if type(value) is int:
                self._add_integer(value, partial(int, place.number))
            elif math.isfinite(value) and float32(value) != value:
                text = repr(value)
                if not comes_back(text, rounds=self._rounds):
                    can_round = comes_back(text, rounds=True)
                    why = f"float32 does not hold {text}"
                    self._flaw("float", partial(int, place.number), why, can_round)

    def _add_integer(self, value: int, line: Callable[[], int]) -> None:
        if abs(value) <= 1 << 24:
            return
        if not -(1 << 63) <= value < 1 << 63:
            self._flaw("int64", line, f"{ticked(value)} is beyond int64")
        if "float" not in self._flaws and float32(value) != value:
            self._flaw("float", line, f"float32 does not hold {ticked(value)}")

    def _flaw(self, kind: str, line: Callable[[], int], why: str, can_round: bool = False) -> None:
        if kind not in self._flaws:
            self._flaws[kind] = Flaw(line(), why, can_round)

    def _mark(self, cell: str, times: int, line: Callable[[], int]) -> None:
        self.mark_line = self.mark_line or line()
        self.marks[cell] += times
        if not self._is_open:
            self.missing = True


def _first_line(value: Any, values: Sequence[Any], places: Sequence[Place]) -> int:
    return places[values.index(value)].line
