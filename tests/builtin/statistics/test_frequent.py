"""Counts of values: exact while they fit, within bounds after that."""

from __future__ import annotations

import pickle
import random
from collections import Counter

import pytest

from tfrecreg.builtin.statistics.sketches import ValueCounts


def counted(values: list[bytes | int], max_bytes: int, parts: int = 3) -> ValueCounts:
    whole = ValueCounts(max_bytes)
    for start in range(parts):
        part = ValueCounts(max_bytes)
        mine = values[start::parts]
        for at in range(0, len(mine), 100):  # one by one takes a quarter of a minute
            part.add("x", Counter(mine[at : at + 100]).items())
        whole.merge(pickle.loads(pickle.dumps(part)))
    return whole


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("make", [lambda number: b"%d" % number, lambda number: number])
def test_what_does_not_is_within_the_bounds(parts: int, make) -> None:
    rng = random.Random(3)
    values = [make(-1)] * 6_000 + [make(-2)] * 2_000 + [make(number) for number in range(50_000)]
    rng.shuffle(values)
    found = counted(values, 1 << 18, parts)
    assert found.sketched == ("x",)
    ((_, frequent),) = found.features()
    assert abs(frequent.unique - 50_002) <= 0.03 * 50_002
    counts = {value: count for count, value in frequent.top}
    for value, count in ((make(-1), 6_000), (make(-2), 2_000)):
        assert 0 <= count - counts[value] <= len(values) / 1024
