"""Computes which record of which member is at a place of a mixture. It uses only integers.

``docs/formats.md`` has the formula. It never changes after 1.0, since saved states depend on it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import gcd, isfinite, isqrt
from numbers import Rational, Real
from typing import Any, Literal, TypeAlias

import numpy as np
from blake3 import blake3

from tfrecreg.builtin.training.block_order import Permutation, RecordNumbers
from tfrecreg.core.values.errors import UsageError

_PREFIX = "tfrecreg mixture v1"
_CANDIDATES = 256
"""How many numbers near the golden ratio are compared."""
_FEW = 20
_TABLE_PLACES = 1 << 17
"""An epoch with more places is not kept as a table."""
_TABLE_AFTER = 256
"""Before a table is made, this many places and a sixteenth of the epoch are computed singly."""


class Mixing:
    """Gives the record at each place. Records are numbered across all members. Picklable."""

    def __init__(self, records: Sequence[int], counts: Sequence[int], seed: int) -> None:
        self.records, self.counts, self.seed = tuple(records), tuple(counts), seed
        self.places = sum(counts)
        """Number of places in an epoch."""
        self.starts = (0, *accumulate(records))
        """The number of the first record of each member, and the total."""
        self._first_places = (0, *accumulate(counts))
        self._step = golden_step(self.places)
        self._asked = 0
        self._table = (-1, np.empty(0, np.int64))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_asked": 0, "_table": (-1, np.empty(0, np.int64))}

    def __call__(self, places: RecordNumbers) -> RecordNumbers:
        """The records at these places."""
        found = np.empty_like(places)
        epochs, inside = np.divmod(places, self.places)
        for epoch in np.unique(epochs).tolist():
            rows = np.flatnonzero(epochs == epoch)
            table = self._kept(epoch, len(rows))
            found[rows] = (
                self._numbers(epoch, inside[rows]) if table is None else table[inside[rows]]
            )
        return found

    def _numbers(self, epoch: int, inside: RecordNumbers) -> RecordNumbers:
        found = np.empty_like(inside)
        turned = (inside * self._step + self._turn(epoch)) % self.places
        members = np.searchsorted(self._first_places, turned, side="right") - 1
        for member in np.unique(members).tolist():
            rows = np.flatnonzero(members == member)
            draws = turned[rows] - self._first_places[member] + epoch * self.counts[member]
            found[rows] = self._drawn(member, draws) + self.starts[member]
        return found

    def _kept(self, epoch: int, asked: int) -> RecordNumbers | None:
        """The records of an epoch as a table; None if a table would not save time yet."""
        if self._table[0] != epoch:
            self._asked += asked
            if self.places > _TABLE_PLACES or self._asked < _TABLE_AFTER + self.places // 16:
                return None
            self._asked = 0
            every = np.arange(self.places, dtype=np.int64)
            self._table = (epoch, self._numbers(epoch, every))
        kept, table = self._table
        return table if kept == epoch else None  # another thread may have replaced it

    def one(self, place: int) -> int:
        """The record at one place."""
        epoch, inside = divmod(place, self.places)
        table = self._kept(epoch, 1)
        if table is not None:
            return int(table[inside])
        turned = (inside * self._step + self._turn(epoch)) % self.places
        member = bisect_right(self._first_places, turned) - 1
        draw = turned - self._first_places[member] + epoch * self.counts[member]
        round_, at = divmod(draw, self.records[member])
        return self._permutation(member, round_).one(at) + self.starts[member]

    def member(self, number: int) -> tuple[int, int]:
        """The member that a record belongs to, and the number of the record within that member."""
        member = bisect_right(self.starts, number) - 1
        return member, number - self.starts[member]

    def times(self, member: int, epochs: range) -> RecordNumbers:
        """How often each record of a member is used in successive epochs."""
        count, records = self.counts[member], self.records[member]
        first, stop = epochs.start * count, epochs.stop * count
        whole = max(0, stop // records - -(-first // records))
        found = np.full(records, whole, np.int64)
        for round_ in {first // records, stop // records}:
            low = max(first - round_ * records, 0)
            high = min(stop - round_ * records, records)
            if low < high and high - low < records:
                places = np.arange(low, high, dtype=np.int64)
                found[self._permutation(member, round_)(places)] += 1
        return found

    def _drawn(self, member: int, draws: RecordNumbers) -> RecordNumbers:
        found = np.empty_like(draws)
        rounds, inside = np.divmod(draws, self.records[member])
        for round_ in np.unique(rounds).tolist():
            rows = np.flatnonzero(rounds == round_)
            permutation, wanted = self._permutation(member, round_), inside[rows]
            # An array takes as long as some twenty single numbers, however short it is.
            few = len(rows) < _FEW
            found[rows] = (
                list(map(permutation.one, wanted.tolist())) if few else permutation(wanted)
            )
        return found

    def _permutation(self, member: int, round_: int) -> Permutation:
        seed = _number(f"{_PREFIX}\nmember\n{self.seed}\n{member}\n")
        return _permutation(self.records[member], seed, round_)

    def _turn(self, epoch: int) -> int:
        return _number(f"{_PREFIX}\nepoch\n{self.seed}\n{epoch}\n") % self.places


@lru_cache(maxsize=1024)
def _permutation(records: int, seed: int, round_: int) -> Permutation:
    return Permutation(records, seed, round_)


@lru_cache(maxsize=1024)
def _number(text: str) -> int:
    return int.from_bytes(blake3(text.encode("ascii")).digest(8), "little")


def golden_step(places: int) -> int:
    """The step of a rotation of `places` places: coprime to `places`, and near the golden ratio.

    Tries 256 numbers near the golden ratio, and takes the first one with the least sum of partial
    quotients. The smaller this sum, the more even the rotation.
    """
    golden = (isqrt(5 * places * places) - places) // 2
    nearby = (each for each in range(golden, golden + _CANDIDATES) if gcd(each, places) == 1)
    return min(nearby, key=lambda step: _quotients(step % places, places))


def _quotients(step: int, places: int) -> int:
    """The sum of the partial quotients of step / places."""
    total = 0
    while step:
        quotient, rest = divmod(places, step)
        total += quotient
        places, step = step, rest
    return total


EpochEnd: TypeAlias = Literal["first_exhausted", "all_exhausted"]

MOST_PLACES = 2**31 - 1
"""Maximum number of places in an epoch. The product of two places has to fit into 64 bits."""
_ROOT_BITS = 48
"""Bits after the binary point of n^(1/T)."""
_MOST_TEMPERATURE = 1000
_STEPS_OF_TEMPERATURE = 100


def exact_weight(weight: object, name: str) -> Fraction:
    """Convert a weight to the exact fraction that was written, for example 0.7 to 7/10."""
    exact = Fraction(0)
    if isinstance(weight, bool):
        pass  # Python would take a bool for 0 or 1
    elif isinstance(weight, Rational):
        exact = Fraction(weight)
    elif isinstance(weight, Real) and isfinite(weight):
        # The shortest text of a float is the same on every machine, and is what a person wrote.
        exact = Fraction(repr(float(weight)))
    if exact <= 0:
        raise UsageError(f"the weight of `{name}` should be a number above 0, found {weight!r}")
    return exact


def temperature_weights(records: Sequence[int], temperature: float) -> list[Fraction]:
    """n^(1/T) for each n of `records`, rounded down to 48 bits after the binary point."""
    steps = 0
    if 0 < temperature <= _MOST_TEMPERATURE:
        steps = round(temperature * _STEPS_OF_TEMPERATURE)
    exact = Fraction(steps, _STEPS_OF_TEMPERATURE)
    if not steps or float(exact) != float(temperature):
        raise UsageError(
            f"`temperature` should be between 0.01 and {_MOST_TEMPERATURE}, with at most two "
            f"decimals, found {temperature!r}"
        )
    power, root = exact.denominator, exact.numerator
    one = 1 << _ROOT_BITS
    return [Fraction(_root(each**power << (_ROOT_BITS * root), root), one) for each in records]


def _root(number: int, degree: int) -> int:
    """The largest integer whose `degree`-th power is at most `number`, by Newton's method."""
    guess = 1 << -(-number.bit_length() // degree)  # at least the root
    while True:
        better = ((degree - 1) * guess + number // guess ** (degree - 1)) // degree
        if better >= guess:
            return guess
        guess = better


def member_counts(
    names: Sequence[str],
    records: Sequence[int],
    weights: Sequence[Fraction],
    stop: EpochEnd = "first_exhausted",
    size: int | None = None,
) -> list[int]:
    """The number of places that each member gets in an epoch."""
    total = sum(weights)
    if size is not None:
        exact = [size * weight / total for weight in weights]
        counts = [int(each) for each in exact]
        by_remainder = sorted(range(len(exact)), key=lambda at: counts[at] - exact[at])
        for at in by_remainder[: size - sum(counts)]:
            counts[at] += 1
    else:
        rounds = [Fraction(each) / weight for each, weight in zip(records, weights, strict=True)]
        last = min(rounds) if stop == "first_exhausted" else max(rounds)
        counts = [int(last * weight) for weight in weights]
    return expect_places(names, counts)


def expect_places(names: Sequence[str], counts: list[int]) -> list[int]:
    """Return the counts. Refuse a member without a place, and an epoch with too many places."""
    for name, count in zip(names, counts, strict=True):
        if count < 1:
            raise UsageError(f"`{name}` has no place in an epoch of {sum(counts)}")
    if sum(counts) > MOST_PLACES:
        raise UsageError(
            f"an epoch of a mixture can have at most {MOST_PLACES:,} places, found {sum(counts):,}"
        )
    return counts
