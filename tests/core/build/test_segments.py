"""The plan cuts segments. A shard joined from them has the bytes of a shard made whole."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tfrecreg.core.build.plan import SEGMENT_BYTES, PlannedShard
from tfrecreg.core.build.shard import (
    BuildTask,
    Maker,
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


def segments(maker: Maker, shard: PlannedShard) -> list[BuildTask]:
    """The tasks of the segments of a shard."""
    return [
        BuildTask(maker, replace(shard, items=items), segment=number)
        for number, items in enumerate(shard.segments())
    ]


@pytest.mark.parametrize(
    "sizes",
    [[], [0], [5] * 10, [SEGMENT_BYTES] * 3, [1, 50 * SEGMENT_BYTES, 1], [0] * 20_000, [-7] * 3],
)
def test_segments_hold_every_item_once_and_in_order(sizes) -> None:
    shard = planned(sizes)
    found = list(shard.segments())
    assert tuple(item for segment in found for item in segment) == shard.items
    assert all(found) or not sizes


@dataclass
class Noise:
    """Every seventh item is skipped, every fifth remarked on; the third segment is skipped."""

    def example(self, item: Item):
        number = int(item.key)
        if number % 7 == 0 or 40 <= number < 60:
            return Skipped("train", item.key, "SRC110", "empty")
        example = {"x": bytes_feature(bytes((number * i) % 251 for i in range(number * 10)))}
        if number % 5:
            return example
        return Written(example, [Remark("train", item.key, "SRC116", "clipped", 2)])


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_joined_shard_is_the_shard_that_is_made_whole(tmp_path, compression) -> None:
    shard = planned([SEGMENT_BYTES // 20] * 200)
    source = packed(Noise())
    scratch = LocalStorage(tmp_path / "scratch")
    whole = Maker(LocalStorage(tmp_path / "whole"), source, "plan", compression)
    joined = Maker(LocalStorage(tmp_path / "joined"), source, "plan", compression, scratch=scratch)
    tasks = segments(joined, shard)
    assert len(tasks) == 10
    one = make_shard(BuildTask(whole, shard))
    two = join_segments(joined, shard, map(make_segment, tasks))
    assert one == two
    assert one.entry.records < 200
    assert one.notes.remarks
    for path in (shard.path, shard.index):
        assert (tmp_path / "whole" / path).read_bytes() == (tmp_path / "joined" / path).read_bytes()
    assert not list(scratch.list())


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_shard_of_nothing_but_skipped_items_is_the_same_either_way(tmp_path, compression) -> None:
    shard = planned([1])  # the item 0 is skipped
    source = packed(Noise())
    folders = [LocalStorage(tmp_path / name) for name in ("a", "b")]
    makers = [Maker(each, source, "plan", compression, scratch=each) for each in folders]
    (task,) = segments(makers[1], shard)
    one = make_shard(BuildTask(makers[0], shard))
    assert one == join_segments(makers[1], shard, [make_segment(task)])
    assert one.entry.records == 0


def test_a_segment_that_became_shorter_is_refused_and_no_shard_appears(tmp_path) -> None:
    shard = planned([SEGMENT_BYTES // 20] * 30)
    storage = LocalStorage(tmp_path)
    maker = Maker(storage, packed(Noise()), "plan", "none", scratch=storage)
    made = make_segment(segments(maker, shard)[0])
    path = tmp_path / "shard.0"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StorageError, match=r"`shard.0` has \d+ bytes, but \d+ were written"):
        join_segments(maker, shard, [made])
    assert not (tmp_path / "shard").exists()


@dataclass
class Broken:
    def example(self, item: Item):
        raise ZeroDivisionError("by zero")


def test_a_segment_whose_source_fails_leaves_no_file(tmp_path) -> None:
    storage = LocalStorage(tmp_path)
    maker = Maker(storage, packed(Broken()), "plan", "none", scratch=storage)
    (task,) = segments(maker, planned([1]))
    with pytest.raises(PluginError, match="the source `broken` failed on `00000`"):
        make_segment(task)
    assert not list(tmp_path.iterdir())
