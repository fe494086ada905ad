"""Damaged records that several processes leave out count together, and all processes know them."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests_support import flip

import tfrecreg
from tfrecreg.core.values.errors import RefusedError, StorageError

from .conftest import Write, payload

RECORDS = 100
DAMAGED = (3, 77)
"""One in each half."""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def shard(write: Write, temporary: Path) -> Path:
    path = write("x.tfrecord", [payload(number) for number in range(RECORDS)])
    offsets = tfrecreg.Records(path).offsets
    for number in DAMAGED:
        flip(path, int(offsets[number]) + 14)
    os.utime(path, (1e9, 1e9))
    return path


def skipping(shard: Path, most: int) -> tfrecreg.DataSource:
    return tfrecreg.data_source(shard, raw=True, damaged="skip", max_damaged=most)


def skipped(source: tfrecreg.DataSource) -> list[int]:
    return [each.record for each in source.skipped]


def half(source: tfrecreg.DataSource, number: int) -> int | str:
    """What a worker process does: how many records it has, or why it stopped."""
    try:
        return len(source.__getitems__(range(50 * number, 50 * number + 50)))
    except RefusedError as error:
        return error.message


def apart(way: str, do: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a process of its own."""
    with multiprocessing.get_context(way).Pool(1) as pool:
        return pool.apply(do, arguments)


def refusal(shard: Path, record: int) -> str:
    return (
        f"2 damaged records of `{shard}` were left out, but `max_damaged` allows 1; the last: "
        f"record {record} of `{shard}`, at byte "
    )


WAYS = ["fork", pytest.param("spawn", marks=pytest.mark.slow)]


@pytest.mark.parametrize("way", WAYS)
def test_the_limit_holds_over_all_processes(shard: Path, way: str) -> None:
    source = skipping(shard, 1)
    assert apart(way, half, source, 0) == 49
    assert skipped(source) == [3]
    assert str(apart(way, half, source, 1)).startswith(refusal(shard, 77))
    assert skipped(source) == [3, 77]
    assert source.skipped[1].reason.startswith("CRC002: data checksum should be ")
    with pytest.raises(RefusedError, match="2 damaged records of"):
        source.__getitems__([3])


@pytest.mark.parametrize("way", WAYS)
def test_what_the_limit_allows_is_known_to_all(shard: Path, way: str) -> None:
    source = skipping(shard, 2)
    assert [apart(way, half, source, number) for number in (0, 1)] == [49, 49]
    assert skipped(source) == [3, 77]
    assert len(list(source)) == 98


def test_parts_count_with_the_whole(shard: Path) -> None:
    source = skipping(shard, 1)
    first, second = source.even_splits(2)
    assert len(list(first)) == 49
    with pytest.raises(RefusedError, match="`max_damaged` allows 1"):
        list(second)
    assert skipped(source) == skipped(first) == skipped(source[40:]) == [3, 77]


@pytest.mark.medium
def test_of_processes_that_pass_the_limit_together_one_is_told(shard: Path) -> None:
    context = multiprocessing.get_context("fork")
    for _ in range(5):
        source = skipping(shard, 1)
        barrier, results = context.Barrier(2), context.SimpleQueue()

        def work(
            number: int,
            source: tfrecreg.DataSource = source,
            barrier: Any = barrier,
            results: Any = results,
        ) -> None:
            barrier.wait()
            results.put(half(source, number))

        processes = [context.Process(target=work, args=(number,)) for number in (0, 1)]
        for each in processes:
            each.start()
        found = [results.get() for _ in processes]
        for each in processes:
            each.join()
        assert any(isinstance(each, str) for each in found)
        assert skipped(source) == [3, 77]


def test_sources_that_are_opened_apart_count_apart(shard: Path) -> None:
    first, second = skipping(shard, 1), skipping(shard, 1)
    assert half(first, 0) == half(second, 1) == 49
    assert (skipped(first), skipped(second)) == ([3], [77])


def test_the_list_is_a_temporary_file_that_goes_with_the_source(
    shard: Path, temporary: Path
) -> None:
    tfrecreg.data_source(shard, raw=True)
    assert list(temporary.iterdir()) == []
    source = skipping(shard, 2)
    (file,) = temporary.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    part, copy = source[:50], pickle.loads(pickle.dumps(source))
    assert apart("fork", half, source, 0) == 49
    del source
    gc.collect()
    assert file.exists()
    del part
    gc.collect()
    assert list(temporary.iterdir()) == []
    assert half(copy, 1) == 49
    assert skipped(copy) == [3, 77]


@pytest.mark.parametrize("what", ["nothing", "a link"])
def test_a_source_of_another_day_begins_a_list_of_its_own(
    shard: Path, temporary: Path, what: str
) -> None:
    source = skipping(shard, 1)
    assert half(source, 0) == 49
    data = pickle.dumps(source)
    (file,) = temporary.iterdir()
    content = file.read_bytes()
    file.unlink()
    other = temporary / "other"
    other.write_bytes(content)
    if what == "a link":
        file.symlink_to(other)
    copy = pickle.loads(data)
    assert skipped(copy) == []
    assert half(copy, 1) == 49
    assert skipped(copy) == [77]
    assert other.read_bytes() == content
    assert skipped(source) == [3]


def test_a_list_that_cannot_be_made(
    shard: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(StorageError) as caught:
        skipping(shard, 1)
    assert caught.value.message == (
        f"the list of damaged records in `{tmp_path}/none` cannot be read or written: "
        "No such file or directory"
    )
    assert caught.value.hint == "`TMPDIR` names another folder for temporary files"
    assert caught.value.exit_code == 3


def test_a_list_that_cannot_be_written(shard: Path) -> None:
    resource = pytest.importorskip("resource")
    source = skipping(shard, 9)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
        with pytest.raises(StorageError) as caught:
            half(source, 0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert caught.value.message.startswith("the list of damaged records in `")
    assert caught.value.message.endswith("` cannot be read or written: File too large")
