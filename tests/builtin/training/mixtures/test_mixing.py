"""Which record is at a place: as often as the shares say, evenly, and always the same."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecreg.builtin.training.block_order import Permutation
from tfrecreg.builtin.training.mixtures.mixing import Mixing, golden_step

GOLDEN = [
    [96, 0, 0, 7, 4, 50, 2, 1, 86, 3, 64, 6, 2],
    [80, 3, 0, 72, 1, 65, 7, 1, 40, 0, 2, 6, 4],
]
LARGE, STEP = 958390049968, 1327217931
MEMBERS = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 200)), min_size=1, max_size=5)


def made(members: list[tuple[int, int]], seed: int = 7) -> Mixing:
    return Mixing([each[0] for each in members], [each[1] for each in members], seed)


def epoch_of(mixing: Mixing, epoch: int) -> list[int]:
    first = epoch * mixing.places
    found: list[int] = mixing(np.arange(first, first + mixing.places)).tolist()
    return found


@pytest.mark.medium
@given(members=MEMBERS, seed=st.integers(-(2**70), 2**70), epoch=st.integers(0, 10**6))
def test_an_epoch_has_each_record_as_often_as_it_says(
    members: list[tuple[int, int]], seed: int, epoch: int
) -> None:
    mixing = made(members, seed)
    found = Counter(epoch_of(mixing, epoch))
    for at, (records, count) in enumerate(members):
        times = mixing.times(at, range(epoch, epoch + 1))
        assert times.sum() == count
        assert times.max() - times.min() <= (1 if epoch == 0 else 2)
        start = mixing.starts[at]
        assert [found.pop(start + record, 0) for record in range(records)] == times.tolist()
    assert not found


@pytest.mark.medium
@given(members=MEMBERS, epochs=st.integers(0, 9), first=st.integers(0, 5))
def test_several_epochs_go_on_where_one_ends(
    members: list[tuple[int, int]], epochs: int, first: int
) -> None:
    mixing = made(members)
    found = Counter[int]()
    for epoch in range(first, first + epochs):
        found.update(epoch_of(mixing, epoch))
    for at, (records, _) in enumerate(members):
        times = mixing.times(at, range(first, first + epochs)).tolist()
        assert times == [found[mixing.starts[at] + record] for record in range(records)]
        if first == 0:
            assert max(times) - min(times) <= 1


def test_places_never_change() -> None:
    mixing = Mixing([5, 3, 100], [7, 2, 4], 1)
    assert golden_step(13) == 8
    assert epoch_of(mixing, 0) == GOLDEN[0]
    assert epoch_of(mixing, 3) == GOLDEN[1]
    large = Mixing([10**12, 10**6], [2**31 - 2, 1], 5)
    assert large.one(10**18) == LARGE
    assert golden_step(2**31 - 1) == STEP


def test_the_formula_in_plain_integers() -> None:
    """`docs/formats.md` has it."""
    from blake3 import blake3

    def number(text: str) -> int:
        return int.from_bytes(blake3(text.encode()).digest(8), "little")

    records, counts, seed = [9, 40], [30, 20], 3
    mixing = Mixing(records, counts, seed)
    step = golden_step(50)
    for place in range(150):
        epoch, inside = divmod(place, 50)
        turn = number(f"tfrecreg mixture v1\nepoch\n{seed}\n{epoch}\n")
        q = (step * inside + turn) % 50
        member = int(q >= 30)
        round_, at = divmod(epoch * counts[member] + q - 30 * member, records[member])
        key = number(f"tfrecreg mixture v1\nmember\n{seed}\n{member}\n")
        expected = Permutation(records[member], key, round_)(np.array([at]))[0] + 9 * member
        assert mixing.one(place) == expected


@pytest.mark.parametrize("shares", [(1, 1), (7, 3), (98, 1, 1), (5, 4, 3, 2, 1)])
@pytest.mark.parametrize("places", [1000, 4096, 99_991])
def test_places_in_a_row_have_the_proportions(shares: tuple[int, ...], places: int) -> None:
    """Of any so many places in a row, no member is ten away from its share."""
    counts = [share * places // sum(shares) for share in shares]
    mixing = Mixing([10**6] * len(shares), counts, 4)
    every = np.arange(mixing.places)
    members = np.searchsorted(mixing.starts, mixing(every), side="right") - 1
    for member, count in enumerate(counts):
        before = np.concatenate([[0], np.cumsum(members == member)])
        for length in (10, 64, 100, 256, 990):
            inside = before[length:] - before[:-length]
            assert np.abs(inside - length * count / mixing.places).max() < 10
