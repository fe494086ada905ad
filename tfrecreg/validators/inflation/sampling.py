"""Which records of a shard are looked at closely: the same ones in every run."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["sampled"]

_BITS = 3


def sampled(first: int, stop: int) -> Iterator[int]:
    """Those of the numbers from `first` to before `stop` whose records are looked at, rising.

    They are the first eight, and then four of each doubling: so few are looked at of any shard
    (49 of 10,000), and nobody has to know how many there are.
    """
    number = first
    while number < stop:
        step = 1 << max(0, number.bit_length() - _BITS)
        number += -number % step
        if number < stop:
            yield number
        number += 1
