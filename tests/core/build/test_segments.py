"""The plan cuts segments. A shard joined from them has the bytes of a shard made whole."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tfrecreg.core.build.plan import SEGMENT_BYTES, PlannedShard
from tfrecreg.core.build.shard import (
    BuildTask,
    Stage,
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
    return PlannedShard("train", "shard", items)


def whole(folder: Path, source: Any, shard: PlannedShard, compression: Any = "none") -> BuildTask:
    """The task of a whole shard."""
    stage = Stage(LocalStorage(folder))
    return BuildTask(
        stage=stage, source=packed(source), plan="plan", compression=compression, shard=shard
    )


def segments(task: BuildTask) -> list[BuildTask]:
    """The tasks of the segments of a shard."""
    return [
        replace(task, shard=replace(task.shard, items=items), segment=number)
        for number, items in enumerate(task.shard.segments())
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
    one, two = (whole(tmp_path / name, Noise(), shard, compression) for name in ("one", "two"))
    tasks = segments(two)
    assert len(tasks) == 10
    made, joined = make_shard(one), join_segments(two, map(make_segment, tasks))
    assert made == joined
    assert made.entry.records < 200
    assert made.notes.remarks
    for path in (shard.path, shard.index):
        assert one.stage.folder.read(path) == two.stage.folder.read(path)
    assert not list(two.stage.segments.list())


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_shard_of_nothing_but_skipped_items_is_the_same_either_way(tmp_path, compression) -> None:
    shard = planned([1])  # the item 0 is skipped
    one, two = (whole(tmp_path / name, Noise(), shard, compression) for name in ("one", "two"))
    (task,) = segments(two)
    made = make_shard(one)
    assert made == join_segments(two, [make_segment(task)])
    assert made.entry.records == 0


def test_a_segment_that_became_shorter_is_refused_and_no_shard_appears(tmp_path) -> None:
    shard = planned([SEGMENT_BYTES // 20] * 30)
    task = whole(tmp_path, Noise(), shard)
    made = make_segment(segments(task)[0])
    path = tmp_path / "segments" / "shard.0"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StorageError, match=r"`shard.0` has \d+ bytes, but \d+ were written"):
        join_segments(task, [made])
    assert not list(task.stage.folder.list())


@dataclass
class Broken:
    def example(self, item: Item):
        raise ZeroDivisionError("by zero")


def test_a_segment_whose_source_fails_leaves_no_file(tmp_path) -> None:
    (task,) = segments(whole(tmp_path, Broken(), planned([1])))
    with pytest.raises(PluginError, match="the source `broken` failed on `00000`"):
        make_segment(task)
    assert not list(task.stage.segments.list())
