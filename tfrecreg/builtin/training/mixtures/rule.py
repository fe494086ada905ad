"""How many places of an epoch each member of a mixture has: integer arithmetic alone."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isfinite
from numbers import Rational, Real
from typing import Literal, TypeAlias

from tfrecreg.core.values.errors import UsageError

EpochEnd: TypeAlias = Literal["first_exhausted", "all_exhausted"]
EPOCH_ENDS = ("first_exhausted", "all_exhausted")

MOST_PLACES = 2**31 - 1
"""Of an epoch: the product of two places has to fit into 64 bits."""
_ROOT_BITS = 48
"""Bits behind the binary point of n^(1/T)."""
_MOST_TEMPERATURE = 1000
_STEPS_OF_TEMPERATURE = 100


def exact_weight(weight: object, name: str) -> Fraction:
    """A weight as the number that was written: 0.7 is 7/10."""
    exact = Fraction(0)
    if isinstance(weight, bool):
        pass  # Python would take it for 0 or 1
    elif isinstance(weight, Rational):
        exact = Fraction(weight)
    elif isinstance(weight, Real) and isfinite(weight):
        # The shortest text of a float is the same on every machine, and what a person wrote.
        exact = Fraction(repr(float(weight)))
    if exact <= 0:
        raise UsageError(
            f"the weight of `{name}` should be a number above 0, found {weight!r}",
            hint="leave out a member that should not be read",
        )
    return exact


def temperature_weights(records: Sequence[int], temperature: float) -> list[Fraction]:
    """n^(1/T) of each number of records n, rounded down to 48 bits behind the point."""
    steps = 0
    if 0 < temperature <= _MOST_TEMPERATURE:
        steps = round(temperature * _STEPS_OF_TEMPERATURE)
    exact = Fraction(steps, _STEPS_OF_TEMPERATURE)
    if not steps or float(exact) != float(temperature):
        raise UsageError(
            f"`temperature` should be between 0.01 and {_MOST_TEMPERATURE}, with two decimals at "
            f"most, found {temperature!r}",
            hint="`temperature=1` mixes by size, a larger one more equally",
        )
    power, root = exact.denominator, exact.numerator
    one = 1 << _ROOT_BITS
    return [Fraction(_root(each**power << (_ROOT_BITS * root), root), one) for each in records]


def _root(number: int, degree: int) -> int:
    """The largest integer whose power is not above `number`, by Newton's method."""
    if degree == 1 or number == 0:
        return number
    guess = 1 << -(-number.bit_length() // degree)  # not below the root
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
    """The places of each member in an epoch."""
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
    """The counts, if they make an epoch."""
    for name, count in zip(names, counts, strict=True):
        if count < 1:
            raise UsageError(
                f"`{name}` has no place in an epoch of {sum(counts)}",
                hint="`size=…` makes epochs longer; or leave the member out",
            )
    if sum(counts) > MOST_PLACES:
        raise UsageError(
            f"an epoch of a mixture has {MOST_PLACES:,} places at most, here {sum(counts):,}",
            hint="`size=…` makes epochs shorter; the next one goes on where one ends",
        )
    return counts
