"""Making all shards of a plan: whole ones where there are many, in segments where there are few."""

from __future__ import annotations

import pickle
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import TypeVar

from tfrecreg.core.build.plan import Plan, PlannedShard
from tfrecreg.core.build.request import Prepared
from tfrecreg.core.build.shard import (
    BUILD,
    BuildTask,
    MadeSegment,
    MadeShard,
    Maker,
    SegmentTask,
    StageSink,
    close_source,
    join_segments,
    keep_shard,
    make_part,
)
from tfrecreg.core.build.sources.interface import Item, Remark, Skipped
from tfrecreg.core.build.state import remove_leftovers
from tfrecreg.core.storage.interface import Entry, Storage
from tfrecreg.core.values.progress import Progress, working
from tfrecreg.core.workers.interface import WORTH_SECONDS, Engine

SEGMENTS = "segments"
"""Folder of a stage: pieces of shards."""

ListedItem = TypeVar("ListedItem", bound=Item | Skipped | Remark)

_ITEM_SECONDS, _BYTE_SECONDS = 60e-6, 3e-9
"""About what an item and a byte cost: a digit that becomes a PNG, a JPEG that is stored
unchanged.
"""
_SHARDS_PER_JOB = 2
"""This many shards per worker keep all of them busy to the end. With segments every byte is written
twice, so they are for less.
"""


def engine_for_build(plan: Plan, engine: Engine) -> Engine:
    """`engine`, or this very process for a build so small that local workers do not pay."""
    work = (seconds for shard in plan.shards for seconds in _work(shard))
    return engine.for_work(work, WORTH_SECONDS)


def _work(shard: PlannedShard) -> Iterator[float]:
    """Seconds that the items of a shard cost."""
    if shard.size is None:
        yield from map(_seconds, shard.items)
    else:
        yield len(shard.items) * _ITEM_SECONDS + max(shard.size, 0) * _BYTE_SECONDS


def warming(listed: Iterable[ListedItem], engine: Engine) -> Iterator[ListedItem]:
    """Yield the items, and start the workers once there are enough items to need them.

    The planning goes on meanwhile, and takes about as long as a worker takes for its imports.
    """
    work = 0.0
    entries = iter(listed)
    for entry in entries:
        yield entry
        if isinstance(entry, Item):
            work += _seconds(entry)
            if work > WORTH_SECONDS:
                engine.warm(make_part)
                break
    yield from entries


def _seconds(item: Item) -> float:
    return _ITEM_SECONDS + max(item.size, 0) * _BYTE_SECONDS


def clear_killed(stage: Storage) -> None:
    """Remove unfinished files of killed writers from a stage that has no other writers."""
    remove_leftovers(stage.below(BUILD))
    stage.remove(SEGMENTS)


def make_all(
    plan: Plan,
    prepared: Prepared,
    sink: StageSink,
    *,
    stage: Storage,
    segments: str = SEGMENTS,
    engine: Engine,
    progress: Progress,
) -> tuple[list[MadeShard], int]:
    """Every shard of the plan, in its order, and how many of them were finished already."""
    maker, scratch = (
        _maker(sink.folder, prepared, plan, indexed=sink.indexed),
        stage.below(segments),
    )
    kept = sink.finished(plan.shards)
    todo = [shard for shard in plan.shards if shard.path not in kept]
    made: list[MadeShard] = []
    try:
        # Closed, so that after an interrupt no worker goes on writing.
        with (
            working(progress, f"building {plan.dataset}", plan.items),
            closing(_fresh(maker, prepared, scratch, todo, engine, progress)) as fresh,
        ):
            for shard in plan.shards:
                done = kept.get(shard.path)
                if done is None:
                    done = next(fresh)
                    sink.finish(shard, done)
                else:
                    progress.advance(done.entry.records, done.entry.bytes)
                made.append(done)
    finally:
        close_source()
    stage.remove(segments)
    return made, len(plan.shards) - len(todo)


def _maker(folder: Storage, prepared: Prepared, plan: Plan, *, indexed: bool = True) -> Maker:
    source = pickle.dumps(prepared.source)
    return Maker(folder, source, plan.digest, prepared.settings.compression, prepared.raw, indexed)


def _fresh(
    maker: Maker,
    prepared: Prepared,
    scratch: Storage,
    todo: Sequence[PlannedShard],
    engine: Engine,
    progress: Progress,
) -> Generator[MadeShard, None, None]:
    whole = engine.jobs == 1 or len(todo) >= _SHARDS_PER_JOB * engine.jobs
    cuts = {shard.path: not whole and shard.base is None for shard in todo}
    tasks = (
        task for shard in todo for task in _tasks(maker, prepared, scratch, shard, cuts[shard.path])
    )
    with closing(engine.run(make_part, tasks)) as parts:
        for shard in todo:
            if cuts[shard.path]:
                mine = islice(_counted(parts, progress), sum(1 for _ in shard.segments()))
                yield join_segments(maker, scratch, shard, mine)
            else:
                made = next(parts)
                assert isinstance(made, MadeShard)
                progress.advance(made.entry.records, made.entry.bytes)
                yield made


def _tasks(
    maker: Maker, prepared: Prepared, scratch: Storage, shard: PlannedShard, cut: bool
) -> Iterator[BuildTask | SegmentTask]:
    if not cut:
        yield _whole(maker, prepared, shard)
        return
    for number, items in enumerate(shard.segments()):
        objects = _objects(prepared, items)
        path = f"{shard.path}.{number}"
        yield SegmentTask(maker, scratch, path, items, objects, is_first=number == 0)


def _whole(maker: Maker, prepared: Prepared, shard: PlannedShard) -> BuildTask:
    return BuildTask(maker, shard, _objects(prepared, shard.items))


def _objects(prepared: Prepared, items: Iterable[Item]) -> tuple[Entry, ...]:
    """The raw objects of these items that can be fetched ahead, in their order."""
    if prepared.raw is None or not prepared.source.locates:
        return ()
    paths = (prepared.source.raw_path(item.split, item.key) for item in items)
    return prepared.raw.objects(path for path in paths if path is not None)


def _counted(parts: Iterator[MadeShard | MadeSegment], progress: Progress) -> Iterator[MadeSegment]:
    for made in parts:
        assert isinstance(made, MadeSegment)
        progress.advance(len(made.segment.lengths), made.segment.bytes)
        yield made


def unchanged(
    plan: Plan, prepared: Prepared, staged: Storage, engine: Engine, progress: Progress
) -> set[str]:
    """The paths of planned shards that equal the base's, found by making their records.

    Writes nothing; raises as :func:`make_all` does.
    """
    maker = _maker(staged, prepared, plan)
    candidates = [shard for shard in plan.shards if shard.base is not None]
    try:
        kept = engine.map(
            keep_shard,
            (_whole(maker, prepared, shard) for shard in candidates),
            cost=lambda task, _: (len(task.shard.items), 0),
            label=f"comparing {plan.dataset}",
            total=sum(len(shard.items) for shard in candidates),
            progress=progress,
        )
    finally:
        close_source()
    return {shard.path for shard, made in zip(candidates, kept, strict=True) if made is not None}
