"""Matches against a plain count in memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.builtin.validators.duplicates.matches import Match, Matches, RunBuilder, read_in_order
from tfrecreg.core.storage.local import LocalStorage

SPLITS = ["dev", "dev", "test", "train", "train"]

shards = st.lists(st.lists(st.integers(0, 25), max_size=25), min_size=5, max_size=5)


def digest(number: int) -> bytes:
    return (number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128).to_bytes(16, "little")


def collect(storage: LocalStorage, contents: list[list[int]], limit: int, at_once: int) -> Matches:
    matches = Matches(SPLITS)
    runs = []
    for shard, numbers in enumerate(contents):
        builder = RunBuilder(storage, limit)
        for record, number in enumerate(numbers):
            builder.add(digest(number), record, 10 * record)
        made, pairs = builder.close()
        runs += [(shard, run) for run in made]
        matches.again(shard, pairs)
    for rows in read_in_order(storage, [run for _, run in runs], at_once):
        matches.add(runs, rows)
    return matches


@settings(max_examples=80)
@given(contents=shards, limit=st.integers(1, 30), at_once=st.integers(1, 60))
def test_counts_are_those_of_sets_in_memory(
    tmp_path_factory: pytest.TempPathFactory, contents: list[list[int]], limit: int, at_once: int
) -> None:
    matches = collect(LocalStorage(tmp_path_factory.mktemp("runs")), contents, limit, at_once)
    by_split: dict[str, Counter[int]] = defaultdict(Counter)
    for split, numbers in zip(SPLITS, contents, strict=True):
        by_split[split].update(numbers)
    extra = {split: sum(have.values()) - len(have) for split, have in by_split.items()}
    assert {split: seen.count for split, seen in matches.within()} == {
        split: count for split, count in extra.items() if count
    }
    common = {
        (one, other): len(by_split[one].keys() & by_split[other].keys())
        for one, other in combinations(["dev", "test", "train"], 2)
    }
    assert {(one, other): seen.count for one, other, seen in matches.across()} == {
        pair: count for pair, count in common.items() if count
    }
    for split, seen in matches.within():
        assert len(seen.matches) == min(seen.count, 20)
        assert len(set(seen.matches)) == len(seen.matches)
        for match in seen.matches:
            check(contents, match)
            assert SPLITS[match.shard] == SPLITS[match.other_shard] == split
            assert (match.other_shard, match.other_record) < (match.shard, match.record)
    for one, other, seen in matches.across():
        assert len(seen.matches) == min(seen.count, 20)
        for match in seen.matches:
            check(contents, match)
            assert (SPLITS[match.shard], SPLITS[match.other_shard]) == (one, other)


def check(contents: list[list[int]], match: Match) -> None:
    """What is said to be the same is the same."""
    own, other = contents[match.shard], contents[match.other_shard]
    assert own[match.record] == other[match.other_record]
    assert match.offset == 10 * match.record


def test_a_place_is_in_the_split_that_is_not_train(tmp_path) -> None:
    matches = collect(LocalStorage(tmp_path), [[7], [], [], [1, 7], []], 9, 9)
    ((one, other, seen),) = matches.across()
    assert (one, other, seen.matches) == ("dev", "train", [Match(0, 0, 0, 3, 1)])


def test_where_all_is_the_same_there_is_one_row_a_run(tmp_path) -> None:
    contents = [[4] * 1000, [], [], [4] * 500, [4] * 500]
    matches = collect(LocalStorage(tmp_path), contents, 100, 10)
    assert [(split, seen.count) for split, seen in matches.within()] == [
        ("dev", 999),
        ("train", 999),
    ]
    assert [(*pair, seen.count) for *pair, seen in matches.across()] == [("dev", "train", 1)]
