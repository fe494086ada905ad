from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from tfrecreg.builtin.statistics.sketches import CAPACITY, Quantiles, ranked


def of(numbers: np.ndarray, parts: int = 1, batch: int = 1000) -> Quantiles:
    """The numbers, in so many parts that were merged in order."""
    whole = Quantiles()
    for part in np.array_split(numbers, parts):
        one = Quantiles()
        for start in range(0, len(part), batch):
            one.add(part[start : start + batch].astype(np.float64))
        whole.merge(pickle.loads(pickle.dumps(one)))
    return whole


@pytest.mark.parametrize("parts", [1, 7])
def test_few_distinct_numbers_are_counted_exactly(parts: int) -> None:
    numbers = np.random.default_rng(1).integers(-5, 4000, 100_000)
    values, counts = of(numbers, parts).counts()
    expected = np.unique(numbers, return_counts=True)
    assert np.array_equal(values, expected[0])
    assert np.array_equal(counts, expected[1])
    ordered = np.sort(numbers)
    for buckets in (1, 2, 10, 7):
        places = [min(len(ordered) * k // buckets, len(ordered) - 1) for k in range(buckets + 1)]
        assert ranked(values, counts, buckets).tolist() == ordered[places].tolist()


@pytest.mark.parametrize("parts", [1, 2, 13])
@pytest.mark.parametrize("order", ["any", "ascending", "descending"])
def test_ranks_keep_within_the_bound(parts: int, order: str) -> None:
    numbers = np.random.default_rng(2).normal(size=300_000)
    if order != "any":
        numbers.sort()
    if order == "descending":
        numbers = numbers[::-1]
    values, counts = of(numbers, parts).counts()
    assert counts.sum() == len(numbers)
    assert len(values) < 8 * CAPACITY
    ordered = np.sort(numbers)
    bound = (1 + math.log2(len(numbers) / CAPACITY)) / (CAPACITY - 1)
    for number, value in enumerate(ranked(values, counts, 100)):
        rank = np.searchsorted(ordered, value, "right") / len(ordered)
        assert abs(rank - number / 100) <= bound + counts.max() / len(numbers), number
