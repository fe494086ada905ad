"""How many places of an epoch each member has."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tfrecreg.builtin.training.mixtures.mixing import (
    exact_weight,
    expect_places,
    member_counts,
    temperature_weights,
)
from tfrecreg.core.values.errors import UsageError

NAMES = ["a", "b", "c"]


def weights(*values: float) -> list[Fraction]:
    return [exact_weight(value, name) for value, name in zip(values, NAMES, strict=False)]


def test_a_weight_is_the_number_that_was_written() -> None:
    assert exact_weight(0.7, "a") == Fraction(7, 10)
    assert exact_weight(1e-3, "a") == Fraction(1, 1000)
    assert exact_weight(Fraction(1, 3), "a") == Fraction(1, 3)
    assert exact_weight(3, "a") == exact_weight(np.int64(3), "a") == 3
    assert exact_weight(np.float64(0.7), "a") == Fraction(7, 10)
    assert exact_weight(np.float32(0.5), "a") == Fraction(1, 2)


@pytest.mark.parametrize(
    ("records", "shares", "first", "every"),
    [
        ([700, 300], (0.7, 0.3), [700, 300], [700, 300]),
        ([600, 600], (0.7, 0.3), [600, 257], [1400, 600]),
        ([10, 1000], (1, 1), [10, 10], [1000, 1000]),
        ([100, 10, 1], (3, 2, 1), [3, 2, 1], [100, 66, 33]),
    ],
)
def test_an_epoch_ends_with_a_member(
    records: list[int], shares: tuple[float, ...], first: list[int], every: list[int]
) -> None:
    given = weights(*shares)
    assert member_counts(NAMES[: len(records)], records, given, "first_exhausted") == first
    assert member_counts(NAMES[: len(records)], records, given, "all_exhausted") == every


def test_a_size_is_shared_by_largest_remainder() -> None:
    assert member_counts(NAMES, [5, 5, 5], weights(1, 1, 1), size=11) == [4, 4, 3]
    assert member_counts(NAMES[:2], [5, 5], weights(0.7, 0.3), size=1001) == [701, 300]
    assert member_counts(NAMES, [1, 1, 1], weights(0.5, 0.3, 0.2), size=7) == [4, 2, 1]
    for size in range(20, 60):
        assert sum(member_counts(NAMES, [9, 9, 9], weights(0.61, 0.27, 0.12), size=size)) == size


@pytest.mark.medium
def test_temperatures() -> None:
    records = [100, 10_000, 1_000_000]
    assert temperature_weights(records, 1) == records
    assert temperature_weights(records, 2) == [10, 100, 1000]
    third = temperature_weights(records, 3)
    assert [round(float(each), 9) for each in third] == [4.641588834, 21.544346900, 100.0]
    assert [float(each) for each in temperature_weights(records, 0.5)] == [1e4, 1e8, 1e12]
    flat = [float(each) for each in temperature_weights(records, 1000)]
    assert 1 < max(flat) / min(flat) < 1.01


def test_a_temperature_is_a_root_in_integers_on_every_machine() -> None:
    """No logarithm and no power of floats has a say."""
    (found,) = temperature_weights([12_345], 3.3)
    assert found == Fraction(2444868935037403, 2**47)
    # The 33rd root of its tenth power: it and no larger one.
    scaled = int(found * 2**48)
    assert scaled**33 <= 12_345**10 << (48 * 33) < (scaled + 1) ** 33


def test_a_member_without_a_place_is_refused() -> None:
    with pytest.raises(UsageError, match="`b` has no place in an epoch of 3"):
        member_counts(NAMES[:2], [3, 1000], weights(0.999, 0.001))


def test_an_epoch_has_less_than_2_to_the_31_places() -> None:
    assert sum(expect_places(NAMES[:2], [2**31 - 2, 1])) == 2**31 - 1
    with pytest.raises(
        UsageError, match="can have at most 2,147,483,647 places, found 2,147,483,648"
    ):
        expect_places(NAMES[:2], [2**31 - 2, 2])
