"""Segments are cut by the plan alone, and joined to the very bytes of a shard made whole."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import pytest

from tfrecreg.core.build.plan import SEGMENT_BYTES, PlannedShard
from tfrecreg.core.build.shard import (
    BuildTask,
    Maker,
    SegmentTask,
    join_segments,
    make_segment,
    make_shard,
)
from tfrecreg.core.build.sources.guarded import GuardedSource
from tfrecreg.core.build.sources.interface import Item, Remark, Skipped, Written
from tfrecreg.core.example.values import bytes_feature
from tfrecreg.core.plugins.guard import PluginId
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import PluginError, StorageError


def packed(source: Any) -> bytes:
    """A source as it travels to a worker."""
    return pickle.dumps(GuardedSource(source, PluginId("source", type(source).__name__.lower())))


def planned(sizes: list[int]) -> PlannedShard:
    items = tuple(Item("train", f"{number:05d}", size) for number, size in enumerate(sizes))
    return PlannedShard("train", 0, "shard", "index/shard.index", items)


@pytest.mark.parametrize(
    "sizes",
    [[], [0], [5] * 10, [SEGMENT_BYTES] * 3, [1, 50 * SEGMENT_BYTES, 1], [0] * 20_000, [-7] * 3],
)
def test_segments_hold_every_item_once_and_in_order(sizes) -> None:
    shard = planned(sizes)
    segments = list(shard.segments())
    assert tuple(item for segment in segments for item in segment) == shard.items
    assert all(segments) or not sizes


@dataclass
class Noise:
    """Every seventh item is skipped, every fifth remarked on; the third segment is skipped."""

    def example(self, item: Item):
        number = int(item.key)
        if number % 7 == 0 or 40 <= number < 60:
            return Skipped("train", item.key, "SRC002", "empty")
        example = {"x": bytes_feature(bytes((number * i) % 251 for i in range(number * 10)))}
        if number % 5:
            return example
        return Written(example, [Remark("train", item.key, "SRC024", "clipped", 2)])


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_joined_shard_is_the_shard_that_is_made_whole(tmp_path, compression) -> None:
    shard = planned([SEGMENT_BYTES // 20] * 200)
    source = packed(Noise())
    whole = Maker(LocalStorage(tmp_path / "whole"), source, "plan", compression)
    joined = Maker(LocalStorage(tmp_path / "joined"), source, "plan", compression)
    scratch = LocalStorage(tmp_path / "scratch")
    tasks = [
        SegmentTask(joined, scratch, f"{number}", items)
        for number, items in enumerate(shard.segments())
    ]
    assert len(tasks) == 10
    one = make_shard(BuildTask(whole, shard))
    two = join_segments(joined, scratch, shard, map(make_segment, tasks))
    assert one == two
    assert one.entry.records < 200
    assert one.remarks
    for path in (shard.path, shard.index):
        assert (tmp_path / "whole" / path).read_bytes() == (tmp_path / "joined" / path).read_bytes()
    assert not list(scratch.list())


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_shard_of_nothing_but_skipped_items_is_the_same_either_way(tmp_path, compression) -> None:
    shard = planned([1])  # the item 0 is skipped
    source = packed(Noise())
    folders = [LocalStorage(tmp_path / name) for name in ("a", "b")]
    makers = [Maker(folder, source, "plan", compression) for folder in folders]
    (items,) = shard.segments()
    task = SegmentTask(makers[1], folders[1], "segment", items)
    one = make_shard(BuildTask(makers[0], shard))
    assert one == join_segments(makers[1], folders[1], shard, [make_segment(task)])
    assert one.entry.records == 0


def test_a_segment_that_became_shorter_is_refused_and_no_shard_appears(tmp_path) -> None:
    shard = planned([SEGMENT_BYTES // 20] * 30)
    storage = LocalStorage(tmp_path)
    maker = Maker(storage, packed(Noise()), "plan", "none")
    items = next(iter(shard.segments()))
    made = make_segment(SegmentTask(maker, storage, "segment", items))
    path = tmp_path / "segment"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StorageError, match=r"`segment` has \d+ bytes, \d+ were written"):
        join_segments(maker, storage, shard, [made])
    assert not (tmp_path / "shard").exists()


@dataclass
class Broken:
    def example(self, item: Item):
        raise ZeroDivisionError("by zero")


def test_a_segment_whose_source_fails_leaves_no_file(tmp_path) -> None:
    maker = Maker(LocalStorage(tmp_path), packed(Broken()), "plan", "none")
    task = SegmentTask(maker, LocalStorage(tmp_path), "segment", planned([1]).items)
    with pytest.raises(PluginError, match="the source `broken` failed on `00000`"):
        make_segment(task)
    assert not list(tmp_path.iterdir())
