"""Matching the rows of two indexes, held against a slow and plain account of the same."""

from __future__ import annotations

import tracemalloc
from collections import Counter

import numpy as np
import pytest
from diff_support import example, put_build, put_release, side
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.builtin.releases.diff.match import (
    DIGEST,
    KEY,
    PLACE,
    SPLIT,
    WIDTH,
    IndexRows,
    Unmatched,
    example_places,
    match,
)
from tfrecreg.builtin.releases.diff.verdict import per_split

RECORDS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 4), max_size=6)
SPLITS = st.fixed_dictionaries({"test": RECORDS, "train": RECORDS})


def table(entries: list[tuple[int, int, int]]) -> IndexRows:
    """Rows of (split, key, digest); the place is the position."""
    made = np.zeros((len(entries), WIDTH), np.uint8)
    for number, (split, key, digest) in enumerate(entries):
        made[number, SPLIT] = np.frombuffer(split.to_bytes(2, "big"), np.uint8)
        made[number, KEY] = np.frombuffer(key.to_bytes(16, "little"), np.uint8)
        made[number, DIGEST] = np.frombuffer(digest.to_bytes(16, "little"), np.uint8)
        made[number, PLACE] = np.frombuffer(number.to_bytes(8, "big"), np.uint8)
    return made


ENTRIES = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 5), st.integers(0, 5)), max_size=40)


@pytest.mark.medium
@settings(max_examples=150)
@given(before=ENTRIES, after=ENTRIES)
@pytest.mark.parametrize("columns", [(SPLIT, KEY, DIGEST), (SPLIT, DIGEST), (DIGEST,), (KEY,)])
def test_rows_are_paired_one_to_one_as_often_as_possible(columns, before, after) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tfrecreg.builtin.releases.diff.match._MATCH_BLOCK", 3)
        left = Unmatched(table(before), table(after))
        pairs = left.pair(*columns)
    fields = [{SPLIT.start: 0, KEY.start: 1, DIGEST.start: 2}[each.start] for each in columns]

    def name(entry: tuple[int, int, int]) -> tuple[int, ...]:
        return tuple(entry[field] for field in fields)

    first, second = Counter(map(name, before)), Counter(map(name, after))
    assert len(pairs) == sum((first & second).values())
    for old, new in zip(pairs.before.tolist(), pairs.after.tolist(), strict=True):
        assert name(before[old]) == name(after[new])
    rest = [example_places(each).tolist() for each in (left.before, left.after)]
    assert sorted([*pairs.before.tolist(), *rest[0]]) == list(range(len(before)))
    assert sorted([*pairs.after.tolist(), *rest[1]]) == list(range(len(after)))
    # What is left is as it was.
    for each, entries in ((left.before, before), (left.after, after)):
        assert each.tobytes() == table(entries)[example_places(each).astype(int)].tobytes()


@pytest.mark.medium
@settings(max_examples=40)
@given(before=SPLITS, after=SPLITS, cut=st.integers(0, 6))
def test_examples_are_told_by_what_is_in_them(
    before, after, cut, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Nothing is lost exactly where each split still has all records that it had."""
    root = tmp_path_factory.mktemp("match")
    for records, release in ((before, True), (after, False)):
        splits = {}
        for split, entries in records.items():
            items = [(key, example(number)) for key, number in entries.items()]
            splits[split] = [dict(items[:cut]), dict(items[cut:])]
        put_build(root, splits)
        if release:
            put_release(root, "1.0.0")
    one, other = side(root, "d@1.0.0"), side(root, "d")
    found = match(one, other)
    lost = {
        split: Counter(before[split].values()) - Counter(after[split].values()) for split in before
    }
    nothing_lost = not any(lost.values())
    changed = len(found.changed) + len(found.moved) + len(found.moved_changed)
    assert (changed + len(found.removed) == 0) == nothing_lost
    assert len(found.removed) + changed == sum(sum(each.values()) for each in lost.values())
    gained = sum(
        sum((Counter(after[s].values()) - Counter(before[s].values())).values()) for s in after
    )
    assert len(found.added) + changed == gained
    for split, count in per_split(found.removed, one.manifest).items():
        assert count <= sum(lost[split].values())


@pytest.mark.medium
def test_memory_is_bounded_by_the_rows() -> None:
    """Of 200,000 rows a side that all differ: beside the rows hardly more than their places."""
    count = 200_000
    rng = np.random.default_rng(1)
    made = [rng.integers(0, 256, (count, WIDTH), np.uint8) for _ in range(2)]
    for each in made:
        each[:, SPLIT] = 0
        each[:, KEY] = made[0][:, KEY]
    tracemalloc.start()
    try:
        left = Unmatched(made.pop(), made.pop())
        assert len(left.pair(SPLIT, KEY, DIGEST)) == 0
        assert len(left.pair(SPLIT, KEY)) == count
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50 * count
