"""A value of a row as a number, a text or a feature. Nothing is rounded but what `float` asks for.

Values are texts (CSV), or what JSON and Parquet have: integers, floats, booleans, texts, bytes,
lists of these.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from tfrecreg.api import Feature, MediaKind, bytes_feature, float_feature, int64_feature, safe

INTEGER = re.compile(r"[+-]?[0-9]{1,400}(?:\.0*)?")
DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_WORDS = {"nan": math.nan, "inf": math.inf, "+inf": math.inf, "-inf": -math.inf}
_FLOAT = struct.Struct("<f")
_LONGEST = 400
_MISSING = frozenset(
    {
        *("", "-", "?", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan"),
        *("1.#IND", "1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    }
)
"""Cells of a column of numbers that pandas reads as missing values, and `-` and `?`."""
MOST_CLASSES = 100_000


class CellError(ValueError):
    """A value does not fit the type of its column; the message shows it."""


_MEDIA: Mapping[str, MediaKind] = {
    "file": "file",
    "image": "image",
    "audio": "audio",
    "video": "video",
}


class TableColumn(NamedTuple):
    """A column and what becomes of it."""

    name: str
    kind: str
    """One of `table_options.COLUMN_KINDS`, but for ``skip``."""
    feature: str
    """The name of its feature; what the names begin with where it names files."""
    pattern: str = ""
    """The path of a file, with ``{}`` for the value."""
    missing: bool = False
    """Whether a row has no value."""
    lists: bool = False
    """Whether a row has a list."""

    @property
    def media(self) -> MediaKind:
        """The kind of the files that it names."""
        return _MEDIA[self.kind]

    @property
    def text_feature(self) -> str:
        """The feature of the class names beside that of the class numbers."""
        head, found, _ = self.feature.rpartition("class/label")
        if found and (not head or head.endswith("/")):
            return f"{head}class/text"
        return f"{self.feature}/text"

    def path(self, value: Any, folder: str = "") -> str:
        """The path of the file that a value names, from a folder on."""
        return folder + self.pattern.replace("{}", text_of(value)).removeprefix("./")


def ticked(value: object) -> str:
    """A value in a message."""
    return f"`{safe(str(value), limit=60)}`"


def int64_of(value: Any) -> int:
    """An integer without loss."""
    if type(value) is str:
        if not INTEGER.fullmatch(value.strip()):
            raise CellError(f"expected an integer, found {ticked(value)}")
        value = int(value.partition(".")[0])
    elif isinstance(value, float) and value.is_integer():
        value = int(value)
    elif not isinstance(value, int):
        raise CellError(f"expected an integer, found {ticked(value)}")
    if not -(1 << 63) <= value < 1 << 63:
        raise CellError(f"{ticked(value)} is beyond int64")
    return int(value)


def float_of(value: Any) -> float:
    """A number that float32 holds, or a fraction that is rounded to the next one."""
    if type(value) is str:
        found = _WORDS.get(value.lower())
        if found is not None:
            return found
        text = value.strip()
        if len(text) > _LONGEST or not DECIMAL.fullmatch(text):
            raise CellError(f"expected a number, found {ticked(text)}")
        number: float | int = int(text) if _WHOLE.fullmatch(text) else float(text)
    elif isinstance(value, (int, float)):
        number = value
    else:
        raise CellError(f"expected a number, found {ticked(value)}")
    held = float32(number)
    if held is None:
        raise CellError(f"float32 does not hold {ticked(value)}: expected at most 3.4028235e38")
    is_rounded = held != number and _is_whole(number)
    if (number and not held) or (is_rounded and not comes_back(str(value))):
        raise CellError(f"float32 does not hold {ticked(value)}, it would become {held!r}")
    return held


def _is_whole(number: float) -> bool:
    return isinstance(number, int) or (math.isfinite(number) and number.is_integer())


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
    if len(text) > 60:
        return False
    if text in ("nan", "NaN"):
        return True
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
        raise CellError(f"expected a text, found {_plural(value)}")
    return str(value)


def _plural(value: object) -> str:
    return "bytes" if isinstance(value, bytes) else "a list or an object"


def bytes_of(value: Any) -> bytes:
    """A value as bytes: those of its text in UTF-8, where it has none of its own."""
    if isinstance(value, bytes):
        return value
    try:
        return text_of(value).encode()
    except UnicodeEncodeError as error:
        raise CellError(f"a lone surrogate at character {error.start + 1}") from error


def without_nulls(values: list[Any]) -> list[Any]:
    """The values of a list."""
    if None in values:
        raise CellError(f"value {values.index(None) + 1} of the list is null")
    return values


def is_missing(kind: str, text: str) -> bool:
    """Whether a cell of a column of numbers means that there is none; `nan` is a float."""
    if kind not in ("int64", "float") or text.strip() not in _MISSING:
        return False
    return kind == "int64" or text.lower() not in _WORDS


FeatureMaker = Callable[[Any], Feature]

_SHORT = re.compile(r"-?[0-9.]{1,7}")
"""Numbers that float32 holds, if they are numbers."""
_REMEMBERED = 1024
"""Texts of a column whose features are kept: most columns repeat a few."""


def feature_maker(kind: str) -> FeatureMaker:
    """The function that makes a feature of a value, of a list of them, or of none."""
    make, convert = _MAKERS[kind]
    quick = _QUICK.get(kind)
    remembered: dict[str, Feature] = {}

    def made(value: Any) -> Feature:
        if type(value) is str:
            known = remembered.get(value)
            if known is not None:
                return known
            found = quick(value) if quick is not None else None
            if found is None:
                found = make(() if is_missing(kind, value) else convert(value))
            if len(remembered) < _REMEMBERED and len(value) < 100:
                remembered[value] = found
            return found
        if value is None:
            return make(())
        if type(value) is list:
            return make([convert(each) for each in without_nulls(value)])
        return make(convert(value))

    return made


def _quick_int(text: str) -> Feature | None:
    return int64_feature(int(text)) if len(text) < 19 and _DIGITS(text) else None


def _quick_float(text: str) -> Feature | None:
    if not _SHORT.fullmatch(text):
        return None
    try:
        return float_feature(float(text))
    except ValueError:  # two dots; the error about it is made elsewhere
        return None


def _quick_text(text: str) -> Feature | None:
    try:
        return bytes_feature(text.encode())
    except UnicodeEncodeError:
        return None


_DIGITS = re.compile(r"[0-9]+").fullmatch
_QUICK: Mapping[str, Callable[[str], Feature | None]] = {
    "int64": _quick_int,
    "float": _quick_float,
    "text": _quick_text,
    "bytes": _quick_text,
}
_MAKERS: Mapping[str, tuple[Callable[[Any], Feature], Callable[[Any], Any]]] = {
    "int64": (int64_feature, int64_of),
    "float": (float_feature, float_of),
    "text": (bytes_feature, bytes_of),
    "bytes": (bytes_feature, bytes_of),
}
