"""Checks of the values of one feature against its domain.

Each feature has one check, a function that is called for each record. If all values are valid, it
makes only a few calls of C functions.

Time formats may have the specifiers of Python's `time.strptime` that mean the same in every locale.
Names of months and days are English.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from math import inf, isfinite, isinf, isnan
from typing import Any, NamedTuple

from tfrecreg.core.example.model import Feature
from tfrecreg.core.schema.definition import (
    BoolDomain,
    FloatDomain,
    ImageDomain,
    IntDomain,
    SchemaFeature,
    StringDomain,
    TimeDomain,
)
from tfrecreg.core.values.text import safe_value


class InvalidValues(NamedTuple):
    """The invalid values of one feature in one record: outside the domain, or not finite."""

    not_finite: bool
    """True if the values are NaN or infinite, False if they are outside the domain."""
    total: int
    detail: str
    """The first of these values, and its position."""


ValueCheck = Callable[[Feature], "tuple[InvalidValues, ...]"]
"""Checks the values of a feature that has the declared kind. Returns () if all are valid."""

_MANY = 64
"""With this many floats or more, NumPy is faster than tuples."""

_INT64 = 2**63
_INTEGER = re.compile(rb"[ \t\n\v\f\r]*([+-]?[0-9]{1,40})[ \t\n\v\f\r]*")
_DECIMAL = re.compile(rb"[ \t\n\v\f\r]*([+-]?[0-9a-zA-Z.+-]{1,400})[ \t\n\v\f\r]*")


def value_check(feature: SchemaFeature) -> ValueCheck | None:
    """The check of the domain of a feature; None if any value passes."""
    domain, is_text = feature.checked_domain, feature.kind == "BYTES"
    match domain:
        case ImageDomain(max_bytes=limit) if limit is not None:
            return _size_check(limit)
        case StringDomain():
            return _member_check(domain.allowed)
        case BoolDomain():
            return _member_check(domain.allowed if is_text else frozenset({0, 1}))
        case IntDomain():
            low = -_INT64 if domain.min is None else domain.min
            high = _INT64 if domain.max is None else domain.max
            if is_text:

                def is_within(value: bytes) -> bool:
                    number = whole_number(value)
                    return number is not None and low <= number <= high

                return _each(is_within)
            return _range_check(low, high) if (domain.min, domain.max) != (None, None) else None
        case FloatDomain():
            return _float_check(domain, is_text)
        case TimeDomain(string_format=form) if is_text:
            pattern = time_pattern(form)
            return None if pattern is None else _each(pattern.fullmatch)
        case TimeDomain(integer_format="PACKED_64_NANOS"):  # otherwise any number is a time
            return _each(is_packed_time)
    return None


def whole_number(value: bytes) -> int | None:
    """The int64 that `value` spells in decimal; None if `value` does not spell an int64."""
    match = _INTEGER.fullmatch(value)
    number = None if match is None else int(match[1])
    return None if number is None or not -_INT64 <= number < _INT64 else number


def decimal_number(value: bytes) -> float | None:
    """The float32 that `value` spells; None if `value` does not spell a float32."""
    match = _DECIMAL.fullmatch(value)
    if match is None:
        return None
    try:
        number = float(match[1])
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return -inf if number < 0 else inf
    except ValueError:
        return None


def _size_check(limit: int) -> ValueCheck:
    def check(feature: Feature) -> tuple[InvalidValues, ...]:
        sizes = feature.sizes
        if not sizes or max(sizes) <= limit:
            return ()
        count = sum(size > limit for size in sizes)
        return (InvalidValues(False, count, f"found an image of {max(sizes)} bytes"),)

    return check


def _member_check(allowed: frozenset[Any]) -> ValueCheck:
    def check(feature: Feature) -> tuple[InvalidValues, ...]:
        values = feature.values
        return () if allowed.issuperset(values) else _invalid(values, allowed.__contains__)

    return check


def _range_check(low: int, high: int) -> ValueCheck:
    def check(feature: Feature) -> tuple[InvalidValues, ...]:
        values = feature.values
        if len(values) == 1:
            if low <= values[0] <= high:
                return ()
        elif not values or (low <= min(values) and max(values) <= high):
            return ()
        return _invalid(values, lambda value: low <= value <= high)

    return check


def _each(is_valid: Callable[[Any], object]) -> ValueCheck:
    return lambda feature: _invalid(feature.values, is_valid)


def _invalid(values: Sequence[Any], is_valid: Callable[[Any], object]) -> tuple[InvalidValues, ...]:
    wrong = [number for number, value in enumerate(values) if not is_valid(value)]
    return (_described(values, wrong, False),) if wrong else ()


def _described(values: Sequence[Any], wrong: list[int], not_finite: bool) -> InvalidValues:
    first = values[wrong[0]]
    if isinstance(first, bytes):
        shown = f"`{safe_value(first)}`"
    else:
        shown = f"{first:.9g}" if isinstance(first, float) else str(first)
    detail = f"found {shown}"
    if len(values) > 1:
        detail += f", value {wrong[0]} of {len(values)}"
    if len(wrong) > 1:
        detail += f"; {len(wrong)} such values"
    return InvalidValues(not_finite, len(wrong), detail)


def _float_check(domain: FloatDomain, is_text: bool) -> ValueCheck:
    """Check bounds, and report numbers that are not finite."""
    low = -inf if domain.min is None else domain.min
    high = inf if domain.max is None else domain.max
    bounded = domain.min is not None or domain.max is not None
    strict = bool(domain.disallow_nan or domain.disallow_inf)
    tells_nan = domain.disallow_nan if strict else domain.disallow_nan is None
    tells_inf = domain.disallow_inf if strict else domain.disallow_inf is None

    def judge(values: Sequence[Any]) -> tuple[InvalidValues, ...]:
        beyond: list[int] = []
        not_finite: list[int] = []
        for number, value in enumerate(values):
            if isinstance(value, bytes):
                beyond.append(number)
            elif isnan(value):
                if tells_nan:
                    not_finite.append(number)
            elif isinf(value) and tells_inf:
                not_finite.append(number)
            elif not low <= value <= high:
                beyond.append(number)
        kinds = ((beyond, False), (not_finite, True))
        return tuple(_described(values, wrong, kind) for wrong, kind in kinds if wrong)

    def text(feature: Feature) -> tuple[InvalidValues, ...]:
        numbers = [(decimal_number(value), value) for value in feature.values]
        return judge([value if number is None else number for number, value in numbers])

    def floats(feature: Feature) -> tuple[InvalidValues, ...]:
        if feature.count < _MANY:
            values = feature.values
            # Doubles hold the sum of any number of float32, so the sum is finite if all values are.
            if isfinite(sum(values)) and (
                not bounded or not values or (low <= min(values) and max(values) <= high)
            ):
                return ()
            return judge(values)
        import numpy as np  # heavy, and only large features need it

        array = np.frombuffer(feature.packed_floats, dtype="<f4")
        fine = np.isfinite(array).all() and (
            not bounded or (low <= array.min() and array.max() <= high)
        )
        return () if fine else judge(array.tolist())

    return text if is_text else floats


_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip

_SPECIFIERS = {
    "a": "|".join(name[:3] for name in _DAYS),
    "A": "|".join(_DAYS),
    "b": "|".join(name[:3] for name in _MONTHS),
    "B": "|".join(_MONTHS),
    "d": "3[01]|[12][0-9]|0[1-9]|[1-9]",
    "e": " ?[1-9]|3[01]|[12][0-9]|0[1-9]",
    "f": "[0-9]{1,6}",
    "h": "|".join(name[:3] for name in _MONTHS),
    "H": "2[0-3]|[01][0-9]|[0-9]",
    "I": "1[0-2]|0[1-9]|[1-9]",
    "j": "36[0-6]|3[0-5][0-9]|[12][0-9]{2}|0[1-9][0-9]|00[1-9]|[1-9][0-9]|0[1-9]|[1-9]",
    "m": "1[0-2]|0[1-9]|[1-9]",
    "M": "[0-5][0-9]|[0-9]",
    "n": r"\s+",
    "p": "[AaPp][Mm]",
    "s": "-?[0-9]{1,20}",
    "S": "6[01]|[0-5][0-9]|[0-9]",
    "t": r"\s+",
    "U": "5[0-3]|[0-4][0-9]|[0-9]",
    "w": "[0-6]",
    "W": "5[0-3]|[0-4][0-9]|[0-9]",
    "y": "[0-9]{2}",
    "Y": "[0-9]{4}",
    "z": r"[+-][0-9]{2}:?[0-9]{2}(?::?[0-9]{2}(?:\.[0-9]{1,6})?)?|Z",
    "Z": "[A-Za-z]{1,5}",
    "%": "%",
}

_SHORT = {"D": "%m/%d/%y", "F": "%Y-%m-%d", "R": "%H:%M", "T": "%H:%M:%S"}
"""Specifiers that abbreviate other specifiers."""

_SPECIFIER = re.compile(r"%(.?)", re.DOTALL)


def time_pattern(form: str) -> re.Pattern[bytes] | None:
    """A regular expression for texts in a time format; None if the format cannot be checked. The
    31st of April also matches.
    """
    form = _SPECIFIER.sub(lambda match: _SHORT.get(match[1], match[0]), form)
    parts = _SPECIFIER.split(form)  # text and letters in turn
    if not form or not _SPECIFIERS.keys() >= set(parts[1::2]):
        return None
    patterns = (
        f"(?:{_SPECIFIERS[part]})" if number % 2 else re.escape(part)
        for number, part in enumerate(parts)
    )
    return re.compile("".join(patterns).encode())


def is_packed_time(number: int) -> bool:
    """Whether a number is a time of day in the format `PACKED_64_NANOS`, ZetaSQL's layout of TIME.

    Its 47 bits are, from the top, 5 for the hour, 6 for the minute, 6 for the second and 30 for the
    nanoseconds.
    """
    hours, rest = divmod(number, 1 << 42)
    minutes, rest = divmod(rest, 1 << 36)
    seconds, nanos = divmod(rest, 1 << 30)
    return 0 <= hours < 24 and minutes < 60 and seconds < 60 and nanos < 10**9
