"""The columns of tables: types by their values, the features that they become, their schema.

Values are texts (CSV), or what JSON and Parquet have: integers, floats, booleans, texts, bytes,
lists of these. docs/sources/table.md has the rule for columns that were given no type.
"""

from __future__ import annotations

import math
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Literal, NamedTuple, cast

from tfrecreg.api import (
    Feature,
    MediaKind,
    RawDataError,
    bytes_feature,
    float_feature,
    int64_feature,
    media_schema,
    safe,
)
from tfrecreg_table.rows import Place, RowError
from tfrecreg_table.tables import FILE_KINDS, Mapped

_INTEGER = r"(?:0|-?[1-9][0-9]{0,399})"
_DECIMAL = r"(?:-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?|nan|NaN)"
_IS_INTEGER = re.compile(_INTEGER)
_IS_DECIMAL = re.compile(_DECIMAL)
_IS_NUMBER = re.compile(rf"\s*(?:[+-]?[0-9][0-9.eE+-]{{0,399}}|{_DECIMAL})\s*")
_SHORT_INTEGERS = re.compile(r"(?:(?:0|-?[1-9][0-9]{0,5})\n)*")
_SHORT_DECIMALS = re.compile(rf"(?:(?=-?[0-9.]{{1,7}}\n){_DECIMAL}\n)*")
"""Numbers that int64 or float32 hold, a line each."""
_FEW, _MOST_OTHERS = 10, 5
"""Cells that are no numbers make a column one of texts if they are more than one in so many, or of
more different values; otherwise they are remarked, as is one text among so many numbers."""
_AS_INTEGER = re.compile(r"\s*([+-]?[0-9]{1,400})(?:\.0*)?\s*", re.ASCII)
_WHOLE = re.compile(r"[+-]?[0-9]+")
_FLOAT = struct.Struct("<f")
_MISSING = frozenset(
    {
        *("", "-", "--", ".", "?", "\\n", "#n/a", "#n/a n/a", "#na", "-1.#ind", "-1.#qnan", "-nan"),
        *("1.#ind", "1.#qnan", "<na>", "n/a", "na", "nil", "null", "nan", "none"),
    }
)
"""Cells of a column of numbers that pandas reads as missing values, and those of databases and
statistics programs, in lower case."""
_REMEMBERED = 1024
"""Texts of a column whose features are kept: most columns repeat a few."""


class CellError(RowError):
    """A value does not fit the type of its column; the message shows it."""

    def __init__(self, why: str) -> None:
        super().__init__(why, "SRC052")


def ticked(value: object) -> str:
    """A value in a message."""
    return f"`{safe(str(value), limit=60)}`"


def int64_of(value: Any) -> int:
    """An integer without loss: 3.0 is one."""
    number = value
    if type(value) is str and len(value) < 19 and value.isdigit() and value.isascii():
        return int(value)
    if type(value) is str:
        match = _AS_INTEGER.fullmatch(value)
        number = int(match[1]) if match else value
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    if not isinstance(number, int) or not -(1 << 63) <= number < 1 << 63:
        raise CellError(f"expected an integer of int64, found {ticked(value)}")
    return int(number)


def float_of(value: Any) -> float:
    """A number that float32 holds, or a fraction that is rounded to the next one."""
    number = value
    if type(value) is str and value.isascii() and "_" not in value:
        try:
            number = float(value)
        except ValueError:
            number = value
    if not isinstance(number, (int, float)):
        raise CellError(f"expected a number, found {ticked(value)}")
    if not number or 1e-30 < abs(number) < 1 << 24:
        return float(number)
    held = float32(number)
    if (
        held is None
        or (number and not held)
        or (float(number).is_integer() and not comes_back(str(value).strip()))
    ):
        raise CellError(f"float32 does not hold {ticked(value)}")
    return held


def float32(number: float) -> float | None:
    """The nearest float32; None if there is none."""
    try:
        found: float = _FLOAT.unpack(_FLOAT.pack(number))[0]
    except (OverflowError, struct.error):
        return None
    return found


def comes_back(text: str, *, rounds: bool = False) -> bool:
    """Whether a decimal can be read from the float32 next to it as it was written.

    With as many significant digits it is the same number. An integer is equal: `16777217` is not
    held, and `1e11` is, although the nearest float32 is 99999997952.
    """
    if len(text) <= 7 and "e" not in text.lower():
        return True  # six digits, or an integer below 1 << 24
    if len(text) > 60:
        return False
    if _WHOLE.fullmatch(text):
        return float32(int(text)) == int(text)
    held = float32(float(text))
    if held is None or math.isinf(held):
        return False
    number = Decimal(text)
    if rounds and number != number.to_integral_value():
        return bool(held)
    digits = max(1, len(number.normalize().as_tuple().digits))
    return Decimal(f"{held:.{digits - 1}e}") == number


def text_of(value: Any) -> str:
    """A value as text: numbers as Python writes them, `true` and `false` as JSON does."""
    if type(value) is str:
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (bytes, list, tuple, dict)):
        raise CellError(f"expected a text, found {type(value).__name__}")
    return str(value)


def bytes_of(value: Any) -> bytes:
    """A value as bytes: those of its text in UTF-8, where it has none of its own."""
    return value if isinstance(value, bytes) else text_of(value).encode()


def is_missing(kind: str, text: str) -> bool:
    """Whether a cell of a column of numbers means that there is none; `nan` is a float."""
    return text.strip().lower() in _MISSING and (kind == "int64" or text.lower() != "nan")


FeatureMaker = Callable[[Any], Feature]
Flaw = tuple[int, str]
"""A line, and why its value does not fit."""
_MAKERS: dict[str, tuple[Callable[[Any], Feature], Callable[[Any], Any]]] = {
    "int64": (int64_feature, int64_of),
    "float": (float_feature, float_of),
    "text": (bytes_feature, bytes_of),
    "bytes": (bytes_feature, bytes_of),
}


def feature_maker(kind: str, classes: Sequence[str] = ()) -> FeatureMaker:
    """The function that makes a feature of a value, of a list of them, or of none.

    With classes, values name them and the feature has their numbers.
    """
    make, convert = _MAKERS[kind]
    remembered: dict[str, Feature] = {}
    numbers = {name: number for number, name in enumerate(classes)}

    def number_of(value: Any) -> int:
        found = numbers.get(text_of(value))
        if found is None:
            raise CellError(f"the class {ticked(value)} was not there before")
        return found

    is_number = kind in ("int64", "float") and not classes
    if classes:
        convert = number_of

    def made(value: Any) -> Feature:
        if type(value) is str:
            found = remembered.get(value)
            if found is None:
                # No mark of a missing value ends with a digit.
                is_none = is_number and not value[-1:].isdigit() and is_missing(kind, value)
                found = make(() if is_none else convert(value))
                if len(remembered) < _REMEMBERED and len(value) < 100:
                    remembered[value] = found
            return found
        if value is None:
            return make(())
        if type(value) is list:
            if None in value:
                raise CellError(f"value {value.index(None) + 1} of the list is null")
            return make([convert(each) for each in value])
        return make(convert(value))

    return made


class Column(NamedTuple):
    """A column and what becomes of it."""

    name: str
    kind: str
    """One of `tables.COLUMN_KINDS`, but for ``skip``."""
    feature: str
    """The name of its feature; what the names begin with where it names files."""
    mapped: Mapped
    times: Literal["one", "optional", "list"] = "one"
    """Values of a record."""

    @property
    def features(self) -> list[str]:
        """The names of its features; the common beginning of those of a file."""
        if self.kind != "label":
            return [self.feature]
        # The class names stand beside the class numbers.
        head, found, _ = self.feature.rpartition("class/label")
        is_usual = found and (not head or head.endswith("/"))
        return [self.feature, f"{head}class/text" if is_usual else f"{self.feature}/text"]

    def schema(self, classes: Sequence[str]) -> Iterator[str]:
        """The schema (`.pbtxt` text) of its features, which every example has."""
        shape = _SHAPES[self.times]
        if self.kind in FILE_KINDS:
            yield media_schema(cast(MediaKind, self.kind), _escaped(self.feature))
        elif self.kind == "label":
            most = max(len(classes) - 1, 0)
            domain = f"int_domain {{ min: 0 max: {most} is_categorical: true }}"
            yield _feature(self.features[0], "INT", f"{shape} {domain}")
            yield _feature(self.features[1], "BYTES", shape)
        else:
            yield _feature(self.feature, _TYPES.get(self.kind, "BYTES"), shape)


_TYPES = {"int64": "INT", "float": "FLOAT"}
_SHAPES = {
    "one": "shape {}",
    "optional": "value_count { min: 0 max: 1 }",
    "list": "value_count { min: 0 }",
}


def _feature(name: str, kind: str, more: str) -> str:
    return (
        f'feature {{\n  name: "{_escaped(name)}"\n  type: {kind}\n'
        f"  presence {{ min_fraction: 1 min_count: 1 }}\n  {more}\n}}\n"
    )


def _escaped(name: str) -> str:
    """A name in a text of protocol buffers: what is not plain becomes octal bytes."""
    return "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}"
        for byte in name.encode("utf-8", "backslashreplace")
    )


def _holds(kind: str, value: Any, rounds: bool) -> bool:
    """Whether a type of numbers holds a value, which may be written in a CSV, to its last digit."""
    text = value if type(value) is str else repr(value)
    if kind == "int64":
        return bool(_IS_INTEGER.fullmatch(text)) and -(1 << 63) <= int(text) < 1 << 63
    return bool(_IS_DECIMAL.fullmatch(text)) and comes_back(text, rounds=rounds)


class Survey:
    """What all values of a column have in common."""

    def __init__(self, name: str, mapped: Sequence[Mapped], *, texts: bool, rounds: bool) -> None:
        self.name, self.mapped = name, mapped
        self._kinds = {each.kind for each in mapped}
        self._texts, self._rounds = texts, rounds
        self.rows = 0
        """Rows that had the column, with a value or without."""
        self.missing = False
        self.lists = False
        self.classes: set[str] = set()
        self.first: Any = None
        """The first value."""
        self.marks: Counter[str] = Counter()
        """Cells of a column of numbers that mean a missing value."""
        self.mark_line = 0
        self._numbers = self._other_cells = 0
        self._has_fractions = False
        self._others: dict[str, Flaw] = {}
        """Texts that are no numbers, while they are few."""
        self._flaws: dict[str, Flaw] = {}
        """The first value that a type does not hold, by type."""
        self._types: dict[type, int] = {}
        """The line of the first value of each type."""

    def add(self, values: Sequence[Any], places: Sequence[Place]) -> None:
        """Look at more values."""
        self.rows += len(values)
        if not self.mapped:
            return
        types = set(map(type, values))
        if types & {type(None), list}:
            self.missing = self.missing or type(None) in types
            self.lists = self.lists or list in types
            pairs = [
                (each, place)
                for value, place in zip(values, places, strict=True)
                for each in (value if type(value) is list else (value,))
                if each is not None
            ]
            values, places = [each for each, _ in pairs], [place for _, place in pairs]
            types = set(map(type, values))
        if not values:
            return
        if self.lists and types & {list, dict, tuple}:
            raise self._refusal("holds lists of lists or of objects")
        self.first = values[0] if self.first is None else self.first
        if "label" in self._kinds:
            try:
                self.classes.update(map(text_of, values))
            except CellError as error:
                raise self._refusal(f"does not name classes: {error}") from error
        elif "" in self._kinds and not self._texts:
            self._add_typed(values, places)
        elif self._kinds & {"", "int64", "float"} and str in types:
            if len(types) > 1:
                pairs = [pair for pair in zip(values, places, strict=True) if type(pair[0]) is str]
                values, places = [each for each, _ in pairs], [place for _, place in pairs]
            self._add_texts(values, places)

    def _add_texts(self, values: Sequence[str], places: Sequence[Place]) -> None:
        if len(self._others) > _MOST_OTHERS:  # it is text
            return
        lines = "\n".join(values) + "\n"
        if lines.count("\n") == len(values):
            is_short = _SHORT_INTEGERS.fullmatch(lines)
            if is_short or _SHORT_DECIMALS.fullmatch(lines):
                self._numbers += len(values)
                self._has_fractions = self._has_fractions or not is_short
                return
        is_open = "" in self._kinds
        for value, times in Counter(values).items():
            if is_missing("int64" if "int64" in self._kinds else "float", value):
                self.mark_line = self.mark_line or places[values.index(value)].line
                self.marks[value] += times
                self.missing = self.missing or not is_open
            elif _IS_NUMBER.fullmatch(value):
                self._numbers += times
                is_fraction = not _IS_INTEGER.fullmatch(value) and _IS_DECIMAL.fullmatch(value)
                self._has_fractions = self._has_fractions or bool(is_fraction)
                self._add_number(value, values, places)
            elif is_open and len(self._others) <= _MOST_OTHERS:
                if value not in self._others:
                    line = places[values.index(value)].line
                    self._others[value] = line, f"{ticked(value)} is not a number"
                self._other_cells += times

    def _add_typed(self, values: Sequence[Any], places: Sequence[Place]) -> None:
        for value, place in zip(values, places, strict=True):
            kind = type(value)
            if kind not in self._types:
                self._types[kind] = place.line
            if kind is float:
                is_held = float32(value) == value or not math.isfinite(value)
            else:
                is_held = kind is not int or abs(value) <= 1 << 24
            if not is_held:
                self._add_number(value, values, places)

    def _add_number(self, value: Any, values: Sequence[Any], places: Sequence[Place]) -> None:
        """Keep the first number that a type does not hold."""
        for kind in ("int64", "float"):
            if kind not in self._flaws and not _holds(kind, value, self._rounds):
                line = places[values.index(value)].line
                self._flaws[kind] = line, f"{kind} does not hold {ticked(value)}"

    def kind(self) -> tuple[str, Flaw | None]:
        """The type of a column that was given none, and why numbers are kept as text."""
        number = "float" if self._has_fractions or float in self._types else "int64"
        flaw = self._flaws.get(number)
        if self._texts:
            cells = self._numbers + self._other_cells
            one = len(self._others) == 1 and self._numbers >= _FEW
            few = len(self._others) <= _MOST_OTHERS and (one or self._other_cells * _FEW <= cells)
            flaw = flaw or min(self._others.values(), default=None)
            if few and self._numbers and flaw is None:
                self.missing = self.missing or bool(self.marks)
                return number, None
            self.marks.clear()
            return "text", flaw if few and self._numbers else None
        kinds = self._types.keys()
        if kinds - {bool, int, float, str, bytes} or (len(kinds) > 1 and kinds != {int, float}):
            found = ", ".join(f"{kind.__name__} ({row})" for kind, row in self._types.items())
            raise self._refusal(f"has values that no feature holds together, first in {found}")
        if flaw is not None:
            raise self._refusal(f"holds more than a feature, line {flaw[0]}: {flaw[1]}")
        if kinds & {int, bool, float}:
            return number, None
        return "bytes" if bytes in kinds else "text", None

    def _refusal(self, why: str) -> RawDataError:
        option = f"--option 'columns=*,{safe(self.name, limit=30)}:"
        return RawDataError(
            f"the column {ticked(self.name)} {why}",
            hint=f"{option}skip' leaves it out, {option}text' keeps its digits, "
            "--option decimals=round rounds fractions",
        )
