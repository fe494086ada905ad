"""Sorted runs: what went in comes out, in order, whatever the limits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.builtin.validators.duplicates.matches import (
    RUN_ROW,
    Pair,
    Run,
    RunBuilder,
    at_hand,
    read_in_order,
    stored,
)
from tfrecreg.core.storage.local import LocalStorage


def digest(number: int) -> bytes:
    """As digests are: spread over the whole range."""
    return (number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128).to_bytes(16, "little")


def build(
    storage: LocalStorage | None, numbers: list[int], limit: int
) -> tuple[list[Run], list[Pair]]:
    builder = RunBuilder(storage, limit)
    for record, number in enumerate(numbers):
        builder.add(digest(number), 3 * record, 100 * record)
    return builder.close()


def halves(number: int) -> tuple[int, int]:
    high, low = np.frombuffer(digest(number), "<u8").tolist()
    return high, low


@settings(max_examples=60)
@given(
    numbers=st.lists(st.integers(0, 30), max_size=80),
    limit=st.integers(1, 50),
    at_once=st.integers(1, 40),
)
def test_every_fingerprint_comes_out_in_order_with_all_its_records(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], limit: int, at_once: int
) -> None:
    storage = LocalStorage(tmp_path_factory.mktemp("runs"))
    runs, _ = build(storage, numbers, limit)
    assert sum(run.rows for run in runs) == sum(
        len(set(numbers[start : start + limit])) for start in range(0, len(numbers), limit)
    )
    last = (-1, -1)
    found: dict[tuple[int, int], int] = {}
    for ranges in read_in_order(storage, runs, at_once):
        assert len(ranges) == len(runs)
        keys = [(row["high"].item(), row["low"].item()) for rows in ranges for row in rows]
        if keys:
            assert min(keys) > last
            last = max(keys)
        for run, rows in zip(runs, ranges, strict=True):
            own = [(row["high"].item(), row["low"].item()) for row in rows]
            assert own == sorted(own)
            for key, row in zip(own, rows, strict=True):
                found[key] = found.get(key, 0) + row["copies"].item()
                record = run.first + row["record"].item()
                assert halves(numbers[record // 3]) == key
                assert row["offset"].item() == 100 * (record // 3)
    assert found == {halves(number): numbers.count(number) for number in set(numbers)}


def test_no_range_takes_much_more_than_8_mib() -> None:
    count = 3 << 18
    rows = np.zeros(count, RUN_ROW)
    rows["high"] = np.arange(count, dtype="<u8") * (2**64 // count)  # spread, as digests are
    ranges = read_in_order(LocalStorage("/nowhere"), [Run(0, count, "", rows.tobytes())])
    assert max(found.nbytes for (found,) in ranges) < 9 << 20


def test_the_first_records_that_are_again_there_are_named_with_the_first_of_them(
    tmp_path: Path,
) -> None:
    _, pairs = build(LocalStorage(tmp_path), [1, 2, 1, 3, 2, 1], 100)
    assert pairs == [Pair(6, 200, 0), Pair(12, 400, 3), Pair(15, 500, 0)]
    _, pairs = build(LocalStorage(tmp_path), [5] * 100, 100)
    assert pairs == [Pair(3 * n, 100 * n, 0) for n in range(1, 21)]
    _, pairs = build(LocalStorage(tmp_path), [5] * 100, 10)
    assert [pair.record for pair in pairs[:10]] == [3 * n for n in (*range(1, 10), 11)]


def test_without_a_folder_the_rows_are_in_the_run_and_can_be_put_into_one(tmp_path: Path) -> None:
    runs, _ = build(None, [1, 2, 1], 100)
    (run,) = runs
    assert (run.rows, run.path, len(run.data)) == (2, "", 2 * RUN_ROW.itemsize)
    storage = LocalStorage(tmp_path)
    kept = stored(storage, run)
    assert kept.path
    assert not kept.data
    assert at_hand(storage, kept) == run
    one, other = next(read_in_order(storage, [run])), next(read_in_order(storage, [kept]))
    assert one[0].tobytes() == other[0].tobytes() == run.data


def test_rows_that_are_not_as_many_as_the_run_says_are_no_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a run of 3 rows has 32 bytes"):
        stored(LocalStorage(tmp_path), Run(0, 3, "", bytes(32)))


def test_records_too_far_apart_for_one_run_make_two(tmp_path: Path) -> None:
    builder = RunBuilder(LocalStorage(tmp_path))
    builder.add(digest(1), 5, 0)
    builder.add(digest(1), 5 + 2**32, 1 << 40)
    runs, pairs = builder.close()
    assert [(run.first, run.rows) for run in runs] == [(5, 1), (5 + 2**32, 1)]
    assert pairs == []
