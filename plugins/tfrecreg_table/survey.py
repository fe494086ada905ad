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
from collections.abc import Sequence
from typing import Any, NamedTuple

from tfrecreg.api import RawDataError, safe
from tfrecreg_table.rows import RowPlace
from tfrecreg_table.values import (
    MOST_CLASSES,
    CellError,
    comes_back,
    float32,
    is_missing,
    text_of,
    ticked,
)

_INTS = re.compile(r"(?:(?:0|-?[1-9][0-9]{0,399})\n)*")
_SHORT = re.compile(r"(?:-?[0-9.]{1,7}\n)*")
_DECIMALS = re.compile(
    r"(?:(?:-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?|nan|NaN)\n)*"
)
_NUMBERS = re.compile(r"(?:[+-]?[0-9][0-9.eE+-]{0,399}\n)*")


_FEW, _MOST_OTHERS = 10, 5
"""Cells that are no numbers make a column one of texts if they are more than one in so many, or of
more different values; otherwise they are remarked."""


class KeptAsText(NamedTuple):
    """Why numbers are kept as text."""

    line: int
    why: str


class Marks:
    """Cells of a column of numbers that mean a missing value."""

    def __init__(self) -> None:
        self.cells: dict[str, int] = {}
        """How often each occurs."""
        self.line = 0
        """That of the first."""

    def add(self, cell: str, place: RowPlace) -> None:
        """Count a cell."""
        self.line = self.line or place.line
        self.cells[cell] = self.cells.get(cell, 0) + 1


class ColumnSurvey:
    """What all values of a column have in common."""

    def __init__(
        self, *, typed: bool, classes: bool, numbers: str = "", rounds: bool = False
    ) -> None:
        self._typed = typed
        self._numbers = numbers
        self.marks = Marks()
        self._rounds = rounds
        self._in_classes = classes
        self.rows = 0
        """Rows that had the column, with a value or without."""
        self.missing = False
        self.lists = False
        self.names: set[str] = set()
        """Names of classes."""
        self.first: Any = None
        """The first value."""
        self.kept: KeptAsText | None = None
        self._text = _TextKind(rounds)
        self._kinds: dict[type, RowPlace] = {}
        self._beyond: tuple[RowPlace, str] | None = None
        self._can_round = False
        """Whether the option `decimals=round` takes the value that float32 does not hold."""
        self._no_float: tuple[RowPlace, str] | None = None

    def add(self, name: str, values: Sequence[Any], places: Sequence[RowPlace]) -> None:
        """Look at more values."""
        self.rows += len(values)
        types = set(map(type, values))
        if type(None) in types:
            self.missing = True
            pairs = [pair for pair in zip(values, places, strict=True) if pair[0] is not None]
            values, places = [each for each, _ in pairs], [place for _, place in pairs]
            types.discard(type(None))
        if not values:
            return
        if self.first is None:
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
            self._add_classes(name, types, values)
        elif not self._typed:
            self._add_types(types, values, places)
        elif self._numbers and str in types:
            given = {each for each in set(values) if type(each) is str}
            found = {each for each in given if is_missing(self._numbers, each)}
            for value, place in zip(values, places, strict=True) if found else ():
                if type(value) is str and value in found:
                    self.marks.add(value, place)
            self.missing = self.missing or bool(found)

    def _add_classes(self, name: str, types: set[type], values: Sequence[Any]) -> None:
        try:
            self.names.update(values if types == {str} else map(text_of, values))
        except CellError as error:
            raise RawDataError(
                f"the column {ticked(name)} does not name classes: {error}", hint=_TYPE_HINT
            ) from error
        if len(self.names) > MOST_CLASSES:
            raise RawDataError(
                f"the column {ticked(name)} has more than {MOST_CLASSES} classes",
                hint="if it does not name classes, write it as `text`",
            )

    def _add_types(
        self, types: set[type], values: Sequence[Any], places: Sequence[RowPlace]
    ) -> None:
        if types - self._kinds.keys():
            for value, place in zip(values, places, strict=True):  # in the order of the rows
                self._kinds.setdefault(type(value), place)
        if types == {str}:
            self._text.add(values, places)
        elif self._beyond is None and types <= {int, float}:
            for value, place in zip(values, places, strict=True):
                if type(value) is float:
                    if math.isfinite(value) and not comes_back(repr(value), rounds=self._rounds):
                        self._beyond = place, f"float32 does not hold {value!r}"
                        self._can_round = comes_back(repr(value), rounds=True)
                        return
                elif not -(1 << 63) <= value < 1 << 63:
                    self._beyond = place, f"{ticked(value)} is beyond int64"
                    return
                elif self._no_float is None and float32(value) != value:
                    why = f"float32 does not hold {value}, and the column has fractions"
                    self._no_float = place, why

    @property
    def is_empty(self) -> bool:
        """Whether there is no value at all."""
        return self.first is None

    def kind(self, name: str, *, texts: bool) -> str:
        """The type of the column."""
        if self.is_empty:
            return "text"
        if texts:
            kind, self.kept = self._text.found()
            if kind != "text" and self._text.marks.cells:
                self.marks, self.missing = self._text.marks, True
            return kind
        kinds = self._kinds
        unknown = kinds.keys() - {bool, int, float, str, bytes}
        mixed = len(kinds) > 1 and kinds.keys() != {int, float}
        if unknown or mixed:
            found = ", ".join(
                f"{each.__name__} (row {place.number})" for each, place in kinds.items()
            )
            raise RawDataError(
                f"the column {ticked(name)} has values that an example cannot hold: {found}"
                if unknown
                else f"the column {ticked(name)} has values of several types: {found}",
                hint=f"--option 'columns=*,{safe(name, limit=30)}:text', or `:skip`",
            )
        beyond = self._beyond or (self._no_float if float in kinds else None)
        if beyond is not None:
            place, why = beyond
            column = f"--option 'columns=*,{safe(name, limit=30)}"
            raise RawDataError(
                f"the column {ticked(name)}, row {place.number}: {why}",
                hint=f"--option decimals=round rounds it, {column}:text' keeps the digits"
                if beyond is self._beyond and self._can_round
                else f"{column}:text' keeps the digits",
            )
        if float in kinds:
            return "float"
        if int in kinds or bool in kinds:
            return "int64"
        return "bytes" if bytes in kinds else "text"


_TYPE_HINT = "`columns` gives each column a type"


class _TextKind:
    """The type of texts: what all values so far are."""

    def __init__(self, rounds: bool) -> None:
        self._kind = "int64"
        self._rounds = rounds
        self._decided = False
        self._kept: KeptAsText | None = None
        self._not_float: KeptAsText | None = None
        self._numbers = 0
        self._others: dict[str, int] = {}
        """Values that are no numbers, while they are few, and how often each occurs."""
        self._other_line = 0
        self.marks = Marks()

    def found(self) -> tuple[str, KeptAsText | None]:
        """The type, and why numbers are kept as text."""
        others = sum(self._others.values())
        if self._decided or not self._numbers or others * _FEW > self._numbers + others:
            return "text", None
        if self._others and self._kept is None:
            first = next(iter(self._others))
            why = f"{ticked(first)} is not a number"
            why += f", as {others:,} of {self._numbers + others:,} cells" if others > 1 else ""
            return "text", KeptAsText(self._other_line, why)
        return self._kind, self._kept

    def add(self, values: Sequence[str], places: Sequence[RowPlace]) -> None:
        if self._decided:
            return
        joined = "\n".join(values) + "\n"
        if joined.count("\n") != len(values) or not _are_numbers(joined):
            numbers = self._sorted_out(values, places)
            if not numbers:
                return
            values, places = [each for each, _ in numbers], [place for _, place in numbers]
            joined = "\n".join(values) + "\n"
        self._numbers += len(values)
        if self._kind == "int64":
            if _INTS.fullmatch(joined):
                self._add_ints(values, places)
                return
            self._kind = "float"
            if self._not_float is not None:
                self._keep(self._not_float)
        if self._kind != "float":
            return
        if not _DECIMALS.fullmatch(joined):
            bad = (
                KeptAsText(place.line, f"{ticked(value)} is written with a sign or zeros before it")
                for value, place in zip(values, places, strict=True)
                if not _DECIMALS.fullmatch(value + "\n")
            )
            self._keep(next(bad))
        elif not _SHORT.fullmatch(joined):
            self._keep(self._find_lossy(values, places))

    def _sorted_out(
        self, values: Sequence[str], places: Sequence[RowPlace]
    ) -> list[tuple[str, RowPlace]]:
        """The numbers among the values; decides on `text` where too many are none."""
        numbers = []
        for value, place in zip(values, places, strict=True):
            if "\n" not in value and _are_numbers(value + "\n"):
                numbers.append((value, place))
            elif is_missing("float", value):
                self.marks.add(value, place)
            elif "\n" not in value and _are_numbers(value.strip() + "\n"):
                self._numbers += 1
                self._keep(KeptAsText(place.line, f"{ticked(value)} has blanks around it"))
            else:
                self._others[value] = self._others.get(value, 0) + 1
                self._other_line = self._other_line or place.line
                self._decided = len(self._others) > _MOST_OTHERS
                if self._decided:
                    return []
        return numbers

    def _add_ints(self, values: Sequence[str], places: Sequence[RowPlace]) -> None:
        longest = max(map(len, values))
        if longest >= 19:
            for value, place in zip(values, places, strict=True):
                if not -(1 << 63) <= int(value) < 1 << 63:
                    self._keep(KeptAsText(place.line, f"{ticked(value)} is beyond int64"))
                    return
        if longest > 7 and self._not_float is None:
            self._not_float = self._find_lossy(values, places)

    def _find_lossy(self, values: Sequence[str], places: Sequence[RowPlace]) -> KeptAsText | None:
        for value, place in zip(values, places, strict=True):
            short = len(value) <= 7 and "e" not in value.lower()
            if not short and not comes_back(value, rounds=self._rounds):
                return KeptAsText(place.line, f"float32 does not hold {ticked(value)}")
        return None

    def _keep(self, kept: KeptAsText | None) -> None:
        if kept is not None and self._kept is None:
            self._kind, self._kept = "text", kept


def _are_numbers(joined: str) -> bool:
    return bool(
        _INTS.fullmatch(joined) or _DECIMALS.fullmatch(joined) or _NUMBERS.fullmatch(joined)
    )
