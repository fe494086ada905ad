"""Counting different values, as far as a contract asks and memory allows."""

from __future__ import annotations

from typing import Any, ClassVar

from blake3 import blake3

from tfrecreg.example import Feature
from tfrecreg.schema.model import ValueCount

__all__ = ["MAX_DISTINCT", "Distinct"]

MAX_DISTINCT = 100_000
"""Different values of a feature that are told apart, at some 100 bytes each."""

_AT_LEAST = 100

_DIGEST = 16
"""Bytes by which longer strings are known: so many do not meet."""


class Distinct:
    """The different values of one feature. Picklable and mergeable; its size is bounded.

    Args:
        bounds: what is asked of their number: there is no need to count much further.
    """

    __slots__ = ("_limit", "_seen")

    plain_type: ClassVar[Any] = tuple[int, list[int], list[bytes]]

    def __init__(self, bounds: ValueCount) -> None:
        wanted = max(bounds.min or 0, bounds.max or 0)
        # Twice as many are worth a number in a report; more are only many.
        self._limit = min(2 * wanted + _AT_LEAST, MAX_DISTINCT)
        self._seen: set[bytes | int] = set()

    @property
    def count(self) -> int:
        """How many were told apart."""
        return len(self._seen)

    @property
    def is_full(self) -> bool:
        """Whether there may be more than :attr:`count`."""
        return len(self._seen) >= self._limit

    def plain(self) -> tuple[int, list[int], list[bytes]]:
        """All of it as plain data: how many are told apart, the numbers, and the strings."""
        numbers = sorted(value for value in self._seen if isinstance(value, int))
        strings = sorted(value for value in self._seen if isinstance(value, bytes))
        return self._limit, numbers, strings

    @classmethod
    def of_plain(cls, plain: tuple[int, list[int], list[bytes]]) -> Distinct:
        """Made again from :meth:`plain`.

        Raises:
            ValueError: it would not have given that.
        """
        limit, numbers, strings = plain
        made = cls(ValueCount())
        made._limit = limit
        made._seen = {*numbers, *strings}
        if not 0 < limit <= MAX_DISTINCT or len(made._seen) > limit:
            raise ValueError(f"{len(made._seen)} values of at most {limit}")
        return made

    def add(self, feature: Feature) -> None:
        """See the values of one more example."""
        if not self.is_full:
            self._take({_short(value) for value in feature.values})

    def merge(self, other: Distinct) -> None:
        """Take in what was seen elsewhere."""
        if not self.is_full:
            self._take(other._seen)

    def verdict(self, bounds: ValueCount) -> bool | None:
        """Whether their number is within `bounds`; None where there are too many to tell."""
        known = self.count
        if bounds.max is not None and known > bounds.max:
            return False
        if not self.is_full:
            return known >= (bounds.min or 0)
        # There are at least as many as were told apart.
        return True if bounds.max is None and known >= (bounds.min or 0) else None

    def _take(self, values: set[bytes | int]) -> None:
        for value in values:
            if self.is_full:
                return
            self._seen.add(value)


def _short(value: bytes | int) -> bytes | int:
    if isinstance(value, int) or len(value) <= _DIGEST:
        return value
    # One byte longer than any value that is kept as it is.
    return b"\0" + blake3(value).digest(_DIGEST)
