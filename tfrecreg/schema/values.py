"""Checking the values of one feature against its domain, quickly where they are fine.

A check is made once a rule and called once a record. What is in order costs a few C-level calls;
only what is not is looked at value by value, so that the first culprit can be named.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from math import inf, isfinite, isinf, isnan
from typing import Any, NamedTuple

from tfrecreg.example import Feature
from tfrecreg.schema.contract import FeatureRule
from tfrecreg.schema.model import BoolDomain, FloatDomain, IntDomain, TimeDomain
from tfrecreg.schema.times import is_packed_time, time_pattern
from tfrecreg.text import safe

__all__ = ["Outside", "ValueCheck", "value_check"]


class Outside(NamedTuple):
    """Some values of a feature in one record are not what they should be."""

    not_finite: bool
    """They are NaN or infinite where that is reported; else they are outside the domain."""
    values: int
    """How many."""
    detail: str
    """The first of them, and where it is."""


ValueCheck = Callable[[Feature], "tuple[Outside, ...]"]
"""Looks at the values of a feature that has the rule's kind; empty where all are fine."""

_MANY = 64
"""Floats from which NumPy is quicker than tuples."""

_INT64 = 2**63
_INTEGER = re.compile(rb"[ \t\n\v\f\r]*([+-]?[0-9]{1,40})[ \t\n\v\f\r]*")
_DECIMAL = re.compile(rb"[ \t\n\v\f\r]*([+-]?[0-9a-zA-Z.+-]{1,400})[ \t\n\v\f\r]*")


def value_check(rule: FeatureRule) -> ValueCheck | None:
    """The check that `rule` asks for; None where any values will do."""
    domain = rule.domain
    if rule.is_picture:
        return None if rule.max_bytes is None else _picture_check(rule.max_bytes)
    if isinstance(domain, frozenset):
        return _member_check(domain)
    if isinstance(domain, BoolDomain):
        return _member_check(_truths(domain) if rule.kind == "BYTES" else frozenset({0, 1}))
    if isinstance(domain, IntDomain):
        low = -_INT64 if domain.min is None else domain.min
        high = _INT64 if domain.max is None else domain.max
        if rule.kind == "BYTES":
            return _each_check(_whole_text(low, high))
        return _whole_check(low, high) if (domain.min, domain.max) != (None, None) else None
    if isinstance(domain, FloatDomain):
        judge = _FloatJudge(domain)
        return judge.check_text if rule.kind == "BYTES" else judge.check
    if isinstance(domain, TimeDomain):
        return _time_check(domain, rule.kind == "BYTES")
    return None


def _time_check(domain: TimeDomain, text: bool) -> ValueCheck | None:
    if text:
        pattern = time_pattern(domain.string_format)
        if pattern is None:
            return None
        matches = pattern.fullmatch
        return _each_check(lambda value: matches(value) is not None)
    # Any number is a number of seconds.
    return _each_check(is_packed_time) if domain.integer_format == "PACKED_64_NANOS" else None


def _outside(values: Iterable[Any], good: Callable[[Any], bool]) -> tuple[Outside, ...]:
    listed = list(values)
    wrong = [number for number, value in enumerate(listed) if not good(value)]
    return (_described(listed, wrong, False),) if wrong else ()


def _described(values: list[Any], wrong: list[int], not_finite: bool) -> Outside:
    first = values[wrong[0]]
    if isinstance(first, bytes):
        shown = f"`{safe(first.decode('utf-8', 'surrogateescape'), limit=60)}`"
    else:
        shown = f"{first:.9g}" if isinstance(first, float) else str(first)
    detail = f"found {shown}"
    if len(values) > 1:
        detail += f", value {wrong[0]} of {len(values)}"
    if len(wrong) > 1:
        detail += f"; {len(wrong)} such values"
    return Outside(not_finite, len(wrong), detail)


def _member_check(allowed: frozenset[Any]) -> ValueCheck:
    def check(feature: Feature) -> tuple[Outside, ...]:
        values = feature.values
        return () if allowed.issuperset(values) else _outside(values, allowed.__contains__)

    return check


def _truths(domain: BoolDomain) -> frozenset[bytes]:
    given = (domain.true_value, domain.false_value)
    return frozenset(value.encode() for value in given if value is not None)


def _whole_check(low: int, high: int) -> ValueCheck:
    def check(feature: Feature) -> tuple[Outside, ...]:
        values = feature.values
        if len(values) == 1:
            if low <= values[0] <= high:
                return ()
        elif not values or (low <= min(values) and max(values) <= high):
            return ()
        return _outside(values, lambda value: low <= value <= high)

    return check


def _whole_text(low: int, high: int) -> Callable[[bytes], bool]:
    def good(value: bytes) -> bool:
        match = _INTEGER.fullmatch(value)
        if match is None:
            return False
        number = int(match[1])
        return -_INT64 <= number < _INT64 and low <= number <= high

    return good


def _each_check(good: Callable[[Any], bool]) -> ValueCheck:
    return lambda feature: _outside(feature.values, good)


def _picture_check(limit: int) -> ValueCheck:
    def check(feature: Feature) -> tuple[Outside, ...]:
        sizes = feature.sizes
        if not sizes or max(sizes) <= limit:
            return ()
        count = sum(size > limit for size in sizes)
        return (Outside(False, count, f"found a picture of {max(sizes)} bytes"),)

    return check


class _FloatJudge:
    """A float domain: its bounds, and which values that are not finite it reports."""

    def __init__(self, domain: FloatDomain) -> None:
        self._low = -inf if domain.min is None else domain.min
        self._high = inf if domain.max is None else domain.max
        self._bounded = domain.min is not None or domain.max is not None
        said = bool(domain.disallow_nan or domain.disallow_inf)
        self._nan = domain.disallow_nan if said else domain.disallow_nan is None
        self._inf = domain.disallow_inf if said else domain.disallow_inf is None

    def check(self, feature: Feature) -> tuple[Outside, ...]:
        """For the kind FLOAT."""
        if feature.count < _MANY:
            values = feature.values
            # Doubles hold the sum of any number of float32, so it is finite where all of them are.
            if isfinite(sum(values)) and (
                not self._bounded
                or not values
                or (self._low <= min(values) and max(values) <= self._high)
            ):
                return ()
            return self._judge(list(values))
        import numpy as np  # heavy, and only large features need it

        array = np.frombuffer(feature.packed_floats, dtype="<f4")
        if np.isfinite(array).all() and (
            not self._bounded or (self._low <= array.min() and array.max() <= self._high)
        ):
            return ()
        return self._judge(array.tolist())

    def check_text(self, feature: Feature) -> tuple[Outside, ...]:
        """For the kind BYTES: numbers in decimal, as the domain's bounds rounded to float32."""
        return self._judge([_number(value) for value in feature.values])

    def _judge(self, values: list[Any]) -> tuple[Outside, ...]:
        beyond: list[int] = []
        not_finite: list[int] = []
        for number, value in enumerate(values):
            if isinstance(value, bytes):
                beyond.append(number)
            elif isnan(value):
                if self._nan:
                    not_finite.append(number)
            elif isinf(value) and self._inf:
                not_finite.append(number)
            elif not self._low <= value <= self._high:
                beyond.append(number)
        return tuple(
            _described(values, wrong, kind)
            for wrong, kind in ((beyond, False), (not_finite, True))
            if wrong
        )


def _number(value: bytes) -> float | bytes:
    """The number that `value` spells, or `value` where it spells none."""
    match = _DECIMAL.fullmatch(value)
    if match is None:
        return value
    try:
        number = float(match[1])
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return -inf if number < 0 else inf
    except ValueError:
        return value
