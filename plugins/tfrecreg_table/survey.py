"""The types of columns by all their values; for every column, whether values are missing.

The rule for a column that was given no type:

- texts of a CSV: `int64` if every value is an integer as Python writes it, within int64; else
  `float` if every value is a decimal that comes back from float32; else `text`
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
from tfrecreg_table.values import MOST_CLASSES, CellError, comes_back, float32, text_of, ticked

_INTS = re.compile(r"(?:(?:0|-?[1-9][0-9]{0,399})\n)*")
_SHORT = re.compile(r"(?:-?[0-9.]{1,7}\n)*")
_DECIMALS = re.compile(
    r"(?:(?:-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?|nan|NaN)\n)*"
)
_NUMBERS = re.compile(r"(?:[+-]?[0-9][0-9.eE+-]{0,399}\n)*")


class KeptAsText(NamedTuple):
    """Why numbers are kept as text."""

    line: int
    why: str


class ColumnSurvey:
    """What all values of a column have in common.

    Args:
        typed: whether its type is given, so that it is not sought.
        classes: whether its values are names of classes.
        rounds: whether fractions may be rounded to float32.
    """

    def __init__(self, *, typed: bool, classes: bool, rounds: bool = False) -> None:
        self._typed = typed
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
        """Look at more values.

        Raises:
            RawDataError: a list holds lists or objects, or there are too many classes.
        """
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
        """The type of the column.

        Args:
            texts: whether values are texts whatever they mean, as in a CSV.

        Raises:
            RawDataError: values have several types, or one that no feature has.
        """
        if self.is_empty:
            return "text"
        if texts:
            self.kept = self._text.kept
            return self._text.kind
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
        self.kind = "int64"
        self._rounds = rounds
        self._decided = False
        self.kept: KeptAsText | None = None
        self._not_float: KeptAsText | None = None

    def add(self, values: Sequence[str], places: Sequence[RowPlace]) -> None:
        if self._decided:
            return
        joined = "\n".join(values) + "\n"
        if joined.count("\n") != len(values) or not _are_numbers(joined):
            self.kind, self.kept, self._decided = "text", None, True
            return
        if self.kind == "int64":
            if _INTS.fullmatch(joined):
                self._add_ints(values, places)
                return
            self.kind = "float"
            if self._not_float is not None:
                self._keep(self._not_float)
        if self.kind != "float":
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
        if kept is not None:
            self.kind, self.kept = "text", kept


def _are_numbers(joined: str) -> bool:
    return bool(
        _INTS.fullmatch(joined) or _DECIMALS.fullmatch(joined) or _NUMBERS.fullmatch(joined)
    )
