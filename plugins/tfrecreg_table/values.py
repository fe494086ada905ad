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
from typing import Any

from tfrecreg.api import Feature, bytes_feature, float_feature, int64_feature, safe

_INTEGER = re.compile(r"[+-]?[0-9]{1,400}(?:\.0*)?")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,400}\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?")
_SHORT_INTEGER = re.compile(r"[0-9]{1,18}")
_SHORT_DECIMAL = re.compile(r"[0-9]{1,5}(?:\.[0-9]{1,2})?")
"""Most numbers, which int64 or float32 hold."""
_WHOLE = re.compile(r"[+-]?[0-9]+")
_WORDS = {"nan": math.nan, "inf": math.inf, "+inf": math.inf, "-inf": -math.inf}
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

FeatureMaker = Callable[[Any], Feature]


class CellError(ValueError):
    """A value does not fit the type of its column; the message shows it."""


def ticked(value: object) -> str:
    """A value in a message."""
    return f"`{safe(str(value), limit=60)}`"


def int64_of(value: Any) -> int:
    """An integer without loss."""
    if type(value) is str and _SHORT_INTEGER.fullmatch(value):
        return int(value)
    number = value
    if type(value) is str and _INTEGER.fullmatch(value.strip()):
        number = int(value.partition(".")[0])
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    if not isinstance(number, int):
        raise CellError(f"expected an integer, found {ticked(value)}")
    if not -(1 << 63) <= number < 1 << 63:
        raise CellError(f"{ticked(value)} is beyond int64")
    return int(number)


def float_of(value: Any) -> float:
    """A number that float32 holds, or a fraction that is rounded to the next one."""
    number = value
    if type(value) is str:
        if _SHORT_DECIMAL.fullmatch(value):
            return float(value)
        found = _WORDS.get(value.lower())
        if found is not None:
            return found
        text = value.strip()
        if _DECIMAL.fullmatch(text):
            number = int(text) if _WHOLE.fullmatch(text) else float(text)
    if not isinstance(number, (int, float)):
        raise CellError(f"expected a number, found {ticked(value)}")
    held = float32(number)
    if held is None:
        raise CellError(f"float32 does not hold {ticked(value)}: expected at most 3.4028235e38")
    is_whole = isinstance(number, int) or number.is_integer()
    is_rounded = held != number and is_whole and not comes_back(str(value).strip())
    if is_rounded or (number and not held):
        raise CellError(f"float32 does not hold {ticked(value)}, it would become {held!r}")
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
    if isinstance(value, bytes):
        raise CellError("expected a text, found bytes")
    if isinstance(value, (list, tuple, dict)):
        raise CellError("expected a text, found a list or an object")
    return str(value)


def bytes_of(value: Any) -> bytes:
    """A value as bytes: those of its text in UTF-8, where it has none of its own."""
    return value if isinstance(value, bytes) else text_of(value).encode()


def without_nulls(values: list[Any]) -> list[Any]:
    """The values of a list."""
    if None in values:
        raise CellError(f"value {values.index(None) + 1} of the list is null")
    return values


def is_missing(kind: str, text: str) -> bool:
    """Whether a cell of a column of numbers means that there is none; `nan` is a float."""
    if kind not in ("int64", "float") or text.strip().lower() not in _MISSING:
        return False
    return kind == "int64" or text.lower() not in _WORDS


def feature_maker(kind: str) -> FeatureMaker:
    """The function that makes a feature of a value, of a list of them, or of none."""
    make, convert = _MAKERS[kind]
    remembered: dict[str, Feature] = {}

    def made(value: Any) -> Feature:
        if type(value) is str:
            found = remembered.get(value)
            if found is None:
                try:
                    found = make(convert(value))
                except CellError:
                    if not is_missing(kind, value):
                        raise
                    found = make(())
                if len(remembered) < _REMEMBERED and len(value) < 100:
                    remembered[value] = found
            return found
        if value is None:
            return make(())
        if type(value) is list:
            return make([convert(each) for each in without_nulls(value)])
        return make(convert(value))

    return made


_MAKERS: Mapping[str, tuple[Callable[[Any], Feature], Callable[[Any], Any]]] = {
    "int64": (int64_feature, int64_of),
    "float": (float_feature, float_of),
    "text": (bytes_feature, bytes_of),
    "bytes": (bytes_feature, bytes_of),
}
