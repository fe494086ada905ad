"""What a gate expects of the answer to a question::

    [gates.default.expect.enough-of-each-class]
    query = "SELECT label, count(*) AS n FROM records WHERE split = 'train' GROUP BY label"
    at_least = 100

Without `equals`, `at_least` and `at_most`, no row may answer the question.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from msgspec import Meta

from tfrecreg.core.values.config import CONFIG_NAME
from tfrecreg.core.values.findings import Severity
from tfrecreg.core.values.text import safe
from tfrecreg.core.values.typed_values import KeyPath, read_table

_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
"""A bare key of TOML: a fingerprint has it, and a waiver may have globs."""


def _number(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("should be a number")
    return value


def _scalar(value: object) -> str | bool | int | float:
    return value if isinstance(value, str | bool) else _number(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """`[gates.<gate>.expect.<name>]`."""

    query: Annotated[str, Meta(min_length=1)]
    """One SELECT."""
    equals: Annotated[Any, _scalar] = None
    """What the last column has in each row: a number, a text or a truth value."""
    at_least: Annotated[Any, _number] = None
    at_most: Annotated[Any, _number] = None
    severity: Severity = Severity.ERROR
    message: str = ""
    """What holds, for people; it comes before what was expected and found."""

    def __post_init__(self) -> None:
        bounds = (self.at_least, self.at_most)
        if self.equals is not None and bounds != (None, None):
            raise ValueError("has `equals` and a limit: give one of them")
        if None not in bounds and self.at_least > self.at_most:
            raise ValueError("has an `at_least` above its `at_most`")
        if not self.query.strip():
            raise ValueError("has an empty `query`")

    @property
    def compares(self) -> bool:
        """Whether the last column of each row is compared; else no row may come."""
        return (self.equals, self.at_least, self.at_most) != (None, None, None)

    @property
    def expected(self) -> str:
        """What is expected, in words."""
        if self.equals is not None:
            return value_words(self.equals, exact=True)
        low, high = (value_words(each, exact=True) for each in (self.at_least, self.at_most))
        if self.at_least is None or self.at_most is None:
            return f"at least {low}" if self.at_most is None else f"at most {high}"
        return f"{low} to {high}"

    def holds(self, value: object) -> bool:
        """Whether a value of the last column is as expected. NULL never is, and neither is NaN."""
        if isinstance(value, Decimal):
            value = int(value) if value == value.to_integral_value() else float(value)
        if self.equals is not None:
            # In Python true equals 1.
            alike = isinstance(value, bool) == isinstance(self.equals, bool)
            return alike and bool(value == self.equals)
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            return False
        low, high = self.at_least, self.at_most
        return (low is None or value >= low) and (high is None or value <= high)


def where_expected(name: str) -> KeyPath:
    """Where an expectation is written, for messages."""
    return KeyPath(CONFIG_NAME, "expect", name)


def read_expectations(tables: Mapping[str, Any]) -> dict[str, Expectation]:
    """The expectations of a gate by name, in the order of their names."""
    found: dict[str, Expectation] = {}
    for name in sorted(tables):
        path = where_expected(name)
        if not _NAME.fullmatch(name):
            raise path.error("should have a name of letters, digits, `-` and `_`")
        found[name] = read_table(Expectation, tables[name], path)
    return found


def value_words(value: object, *, exact: bool = False) -> str:
    """A value of an answer, short and escaped."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, float):
        return repr(value) if exact else f"{value:.7g}"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, str):
        return f"`{safe(value, limit=60)}`"
    return safe(str(value), limit=60)
