"""Finds the type of each column from its values. The type decides the column's features and their
schema.

Values from a CSV are texts. From JSON and Parquet, they are integers, floats, booleans, texts,
bytes, or lists of these. docs/sources/tables.md says how a column gets its type if no option states
one.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Literal, NamedTuple, cast

from tfrecreg.api import (
    Feature,
    Kind,
    MediaKind,
    RawDataError,
    SkipImage,
    bytes_feature,
    feature_schema,
    float_feature,
    int64_feature,
    media_schema,
    safe,
)
from tfrecreg_table.tables import FILE_KINDS, Mapped, Place

_INTEGER = r"(?:0|-?[1-9][0-9]{0,399})"
_DECIMAL = r"(?:-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?|nan|NaN)"
_IS_INTEGER = re.compile(_INTEGER)
_IS_DECIMAL = re.compile(_DECIMAL)
_LIKE_NUMBER = re.compile(rf"\s*(?:[+-]?[0-9][0-9.eE+-]{{0,399}}|{_DECIMAL})\s*")
_SHORT_INTEGERS = re.compile(r"(?:(?:0|-?[1-9][0-9]{0,6})\n)*")
_SHORT_DECIMALS = re.compile(rf"(?:(?=-?[0-9.]{{1,7}}\n){_DECIMAL}\n)*")
"""Numbers that int64 or float32 can hold, one per line."""
_AS_INTEGER = re.compile(r"\s*([+-]?[0-9]{1,400})(?:\.0*)?\s*", re.ASCII)
_WHOLE = re.compile(r"[+-]?[0-9]+")
_FLOAT = struct.Struct("<f")
_MISSING = frozenset(
    {
        *("", "-", "--", ".", "?", "\\n", "#n/a", "#n/a n/a", "#na", "-1.#ind", "-1.#qnan", "-nan"),
        *("1.#ind", "1.#qnan", "<na>", "n/a", "na", "nil", "null", "nan", "none"),
    }
)
"""Lower-case texts by which pandas, databases and statistics programs mark missing numbers."""
_REMEMBERED = 1024
"""For each column, features are kept for at most this many texts, because texts often repeat."""


def ticked(value: object) -> str:
    """A value for a message."""
    return f"`{safe(str(value), limit=60)}`"


def int64_of(value: Any) -> int:
    """Convert a value to an integer without loss. 3.0 counts as an integer."""
    number = value
    if type(value) is str:
        if len(value) < 19 and value.isdigit() and value.isascii():
            return int(value)
        match = _AS_INTEGER.fullmatch(value)
        number = int(match[1]) if match else value
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    if not isinstance(number, int) or not -(1 << 63) <= number < 1 << 63:
        raise SkipImage("SRC113", f"expected an integer of int64, found {ticked(value)}")
    return int(number)


def float_of(value: Any) -> float:
    """Convert a value to a number that float32 holds. Fractions become the nearest float32."""
    number = value
    if type(value) is str and value.isascii() and "_" not in value:
        try:
            number = float(value)
        except ValueError:
            number = value
    if not isinstance(number, (int, float)):
        raise SkipImage("SRC113", f"expected a number, found {ticked(value)}")
    if not number or 1e-30 < abs(number) < 1 << 24:
        return float(number)
    held = float32(number)
    is_lost = held is None or (number and not held)
    if is_lost or (float(number).is_integer() and not comes_back(str(value).strip())):
        raise SkipImage("SRC113", f"float32 cannot hold {ticked(value)}")
    return cast(float, held)


def float32(number: float) -> float | None:
    """The nearest float32; None if there is none."""
    try:
        found: float = _FLOAT.unpack(_FLOAT.pack(number))[0]
    except (OverflowError, struct.error):
        return None
    return found


def comes_back(text: str, *, rounds: bool = False) -> bool:
    """Whether a written decimal can be recovered from its nearest float32.

    The float32 is written with as many significant digits as the decimal has. The result must equal
    the decimal. For example, `1e11` can be recovered, although its nearest float32 is 99999997952.
    A decimal without point and exponent must equal its float32, so `16777217` cannot be recovered.
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
        raise SkipImage("SRC113", f"expected a text, found {type(value).__name__}")
    return str(value)


def _bytes_of(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        return text_of(value).encode()
    except UnicodeEncodeError as error:  # JSON can have half a surrogate pair
        raise SkipImage("SRC113", f"not valid text: {error}") from error


def _is_missing(kind: str, text: str) -> bool:
    """Whether a cell of a column of numbers means a missing value. For floats, `nan` is a value."""
    if text[-1:].isdigit():  # as no mark does
        return False
    return text.strip().lower() in _MISSING and (kind == "int64" or text.lower() != "nan")


FeatureMaker = Callable[[Any], Feature]
_MAKERS: dict[str, tuple[Callable[[Any], Feature], Callable[[Any], Any]]] = {
    "int64": (int64_feature, int64_of),
    "float": (float_feature, float_of),
    "text": (bytes_feature, _bytes_of),
    "bytes": (bytes_feature, _bytes_of),
}


def feature_maker(kind: str, classes: Sequence[str] = ()) -> FeatureMaker:
    """The function that makes a feature from a value, from a list of values, or from no value.

    If `classes` are given, the values are class names, and the feature stores class numbers.
    """
    make, as_kind = _MAKERS[kind]
    numbers = {name: number for number, name in enumerate(classes)}
    convert = (lambda value: numbers[text_of(value)]) if classes else as_kind
    has_marks = kind in ("int64", "float") and not classes
    remembered: dict[str, Feature] = {}

    def made(value: Any) -> Feature:
        if type(value) is str:
            found = remembered.get(value)
            if found is None:
                found = make(() if has_marks and _is_missing(kind, value) else convert(value))
                if len(remembered) < _REMEMBERED and len(value) < 100:
                    remembered[value] = found
            return found
        if value is None:
            return make(())
        if type(value) is list:
            if None in value:
                raise SkipImage("SRC113", f"value {value.index(None) + 1} of the list is null")
            return make([convert(each) for each in value])
        return make(convert(value))

    return made


class Column(NamedTuple):
    """A column and the feature that it becomes."""

    name: str
    kind: str
    """One of `tables.COLUMN_KINDS`, except ``skip``."""
    feature: str
    """The name of its feature. For a column of file names, this is the prefix of its features."""
    mapped: Mapped
    """The entry of the option `columns` that describes this column."""
    times: Literal["one", "optional", "list"]
    """Number of values per record."""
    classes: Sequence[str] = ()
    """If the column is a label, its class names, sorted by class number."""

    @property
    def features(self) -> list[str]:
        """The names of the features. For a file column, the only entry is the names' prefix."""
        if self.kind != "label":
            return [self.feature]
        # The class names stand beside the class numbers.
        head, found, _ = self.feature.rpartition("class/label")
        is_usual = found and (not head or head.endswith("/"))
        return [self.feature, f"{head}class/text" if is_usual else f"{self.feature}/text"]

    def schema(self) -> Iterator[str]:
        """The schema of its features, as `.pbtxt` text. Every example has these features."""
        if self.kind in FILE_KINDS:
            feature = json.dumps(self.feature, ensure_ascii=False)[1:-1]
            yield media_schema(cast(MediaKind, self.kind), feature)
            return
        every = "" if self.times == "one" else "presence { min_fraction: 1 min_count: 1 }"
        if self.kind == "label":
            bounds = f"min: 0 max: {max(len(self.classes) - 1, 0)}"
            domain = f"int_domain {{ {bounds} is_categorical: true }}"
            yield feature_schema(self.features[0], "INT", self.times, f"{every} {domain}")
            yield feature_schema(self.features[1], "BYTES", self.times, every)
        else:
            kind = {"int64": Kind.INT64, "float": Kind.FLOAT}.get(self.kind, Kind.BYTES)
            yield feature_schema(self.feature, kind, self.times, every)


def class_names(names: set[str]) -> list[str]:
    """Class names in order of their numbers: sorted by value if all are decimals, else by bytes."""
    if all(re.fullmatch(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,20})?", name) for name in names):
        return sorted(names, key=lambda name: (Decimal(name), name))
    return sorted(names, key=_bytes_of)


class Survey:
    """What the values of a column have in common. This decides the column's type."""

    def __init__(self, name: str, mapped: Sequence[Mapped], *, texts: bool, rounds: bool) -> None:
        self.name, self.mapped = name, mapped
        self._kinds = {each.kind for each in mapped}
        self._texts, self._rounds = texts, rounds
        self.rows = 0
        """Number of rows that had the column, with or without a value."""
        self.missing = self.lists = False
        self.classes: set[str] = set()
        self.first: Any = None
        self.marks: Counter[str] = Counter()
        """If the column has numbers, its cells that stand for missing values."""
        self.mark_line = 0
        self.kept = ""
        """Why a column of numbers is kept as text."""
        self._is_number: bool | None = None
        """Whether the first text that has a value looks like a number; None without such a text."""
        self._has_fractions = False
        self._flaws: dict[str, str] = {}
        """For each type of numbers, a message about the first value that it cannot hold."""
        self._types: set[type] = set()

    def add(self, values: Sequence[Any], places: Sequence[Place]) -> None:
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
                self.classes.update(_bytes_of(text_of(value)).decode() for value in values)
            except SkipImage as error:
                raise self._refusal(f"does not name classes: {error.detail}") from error
        elif "" in self._kinds and not self._texts:
            self._add_typed(values, places)
        elif self._kinds & {"", "int64", "float"} and str in types:
            self._add_texts(values, places)

    def _add_texts(self, values: Sequence[Any], places: Sequence[Place]) -> None:
        is_open = "" in self._kinds
        if len(self._flaws) == 2 and self._kinds == {""}:  # it is text
            return
        texts = [value for value in values if type(value) is str]
        lines = "\n".join(texts) + "\n"
        if lines.count("\n") == len(texts):
            is_short = _SHORT_INTEGERS.fullmatch(lines)
            if is_short or _SHORT_DECIMALS.fullmatch(lines):
                self._has_fractions = self._has_fractions or not is_short
                self._is_number = self._is_number is not False
                return
        for value, times in Counter(texts).items():
            if _is_missing("int64" if "int64" in self._kinds else "float", value):
                self.mark_line = self.mark_line or places[values.index(value)].line
                self.marks[value] += times
                self.missing = self.missing or not is_open
            elif is_open:
                if self._is_number is None:
                    self._is_number = bool(_LIKE_NUMBER.fullmatch(value))
                if not self._has_fractions and not _IS_INTEGER.fullmatch(value):
                    self._has_fractions = bool(_IS_DECIMAL.fullmatch(value))
                self._add_number(value, values, places)

    def _add_typed(self, values: Sequence[Any], places: Sequence[Place]) -> None:
        self._types.update(map(type, values))
        for value in values:
            if type(value) is float:
                is_held = float32(value) == value or not math.isfinite(value)
            else:
                is_held = type(value) is not int or abs(value) <= 1 << 24
            if not is_held:
                self._add_number(value, values, places)

    def _add_number(self, value: Any, values: Sequence[Any], places: Sequence[Place]) -> None:
        """For each type of numbers, remember the first value that it cannot hold exactly."""
        text = value if type(value) is str else repr(value)
        for kind in ("int64", "float"):
            if kind in self._flaws:
                continue
            if kind == "int64":
                is_held = bool(_IS_INTEGER.fullmatch(text)) and -(1 << 63) <= int(text) < 1 << 63
            else:
                is_held = bool(_IS_DECIMAL.fullmatch(text)) and comes_back(
                    text, rounds=self._rounds
                )
            if not is_held:
                line = places[values.index(value)].line
                self._flaws[kind] = f"line {line}, {kind} cannot hold {ticked(value)}"

    def kind(self) -> str:
        """The type of the column if no option states one."""
        number = "float" if self._has_fractions or float in self._types else "int64"
        flaw = self._flaws.get(number, "")
        if self._texts and self._is_number and not flaw:
            self.missing = self.missing or bool(self.marks)
            return number
        if self._texts:
            self.marks.clear()
            self.kept = flaw if self._is_number else ""
            return "text"
        kinds = self._types
        if kinds - {bool, int, float, str, bytes} or (len(kinds) > 1 and kinds != {int, float}):
            found = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise self._refusal(f"has values of types that cannot share a feature: {found}")
        if flaw:
            raise self._refusal(f"does not fit into a feature: {flaw}")
        if kinds & {int, bool, float}:
            return number
        return "bytes" if bytes in kinds else "text"

    def _refusal(self, why: str) -> RawDataError:
        return RawDataError(
            f"the column {ticked(self.name)} {why}",
            hint=f"--option 'columns=*,{safe(self.name, limit=30)}:skip' leaves it out, `:text` "
            "keeps its digits, --option decimals=round rounds fractions",
        )
