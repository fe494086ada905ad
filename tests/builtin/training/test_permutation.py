"""A permutation that is computed: each number once, whatever the size, and always the same."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecreg.builtin.training.block_order import Permutation


@given(size=st.integers(0, 3000), seed=st.integers(-(2**70), 2**70), epoch=st.integers(0, 10**6))
def test_every_number_comes_once(size: int, seed: int, epoch: int) -> None:
    found = Permutation(size, seed, epoch)(np.arange(size))
    assert sorted(found.tolist()) == list(range(size))


@given(
    size=st.integers(1, 2**62 - 1),
    places=st.lists(st.integers(0, 2**62), min_size=1, max_size=50),
)
def test_numbers_of_huge_sizes_are_in_range_and_differ(size: int, places: list[int]) -> None:
    distinct = sorted({each % size for each in places})
    found = Permutation(size, 5, 0)(np.array(distinct, np.int64)).tolist()
    assert len(set(found)) == len(distinct)
    assert all(0 <= each < size for each in found)


def reference(size: int, seed: int, epoch: int, place: int) -> int:
    """The formula of `docs/formats.md`, in plain integers."""
    from math import ceil, isqrt

    from blake3 import blake3

    a = isqrt(size) + (isqrt(size) ** 2 < size)
    b = ceil(size / a)
    text = f"tfrecreg order v1\n{seed}\n{epoch}\n{size}\n"
    data = blake3(text.encode()).digest(128)
    keys = [int.from_bytes(data[at : at + 8], "little") for at in range(0, 128, 8)]

    def mixed(half: int, key: int) -> int:
        z = (half + key) % 2**64
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return (z ^ (z >> 31)) >> 2

    while True:
        left, right = place % a, place // a
        for number in range(0, 16, 2):
            left = (left + mixed(right, keys[number])) % a
            right = (right + mixed(left, keys[number + 1])) % b
        place = left + a * right
        if place < size:
            return place


@pytest.mark.parametrize("size", [1, 2, 7, 1000, 60_000, 10**9])
def test_the_numbers_are_those_of_the_documented_formula(size: int) -> None:
    places = [place for place in (0, 1, 2, 5, 999, 59_999, 10**9 - 1) if place < size]
    found = Permutation(size, 7, 3)(np.array(places)).tolist()
    assert found == [reference(size, 7, 3, place) for place in places]


def test_the_formula_never_changes() -> None:
    assert Permutation(10, 0, 0)(np.arange(10)).tolist() == [0, 2, 9, 4, 3, 1, 8, 6, 5, 7]
    assert Permutation(10**9, 42, 7)(np.arange(4)).tolist() == [
        75580229,
        341892078,
        551983245,
        816085497,
    ]


@pytest.mark.parametrize("size", [3, 4, pytest.param(5, marks=pytest.mark.slow)])
def test_small_permutations_are_equally_frequent(size: int) -> None:
    """Of 100 seeds for each permutation; 40 % off would be four standard deviations."""
    every = list(permutations(range(size)))
    seeds = range(100 * len(every))
    counts = Counter(tuple(Permutation(size, seed, 0)(np.arange(size)).tolist()) for seed in seeds)
    assert set(counts) == set(every)
    square = sum((counts[each] - 100) ** 2 / 100 for each in every)
    assert square < len(every) + 5 * (2 * len(every)) ** 0.5
