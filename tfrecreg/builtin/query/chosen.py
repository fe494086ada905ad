"""A visitor over the records for which a condition holds. No others are read."""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfrecreg.builtin.query.where import choosing_records
from tfrecreg.engines.interface import Engine
from tfrecreg.progress import Progress, working
from tfrecreg.records.access import Records
from tfrecreg.records.batch import RecordBatch, StreamEnd
from tfrecreg.records.framing import HEADER_BYTES, frame
from tfrecreg.records.reader import HOLD_LIMIT
from tfrecreg.scan.interface import Shard, Target, Visitor

_BLOCK_BYTES = 1 << 20
_BLOCK_RECORDS = 1 << 10
_WORTH_WORKERS = 50_000
"""Records above which workers gain more than their start costs."""


class _Task(NamedTuple):
    shard: Shard
    numbers: NDArray[np.int64]
    maker: bytes


def visit_chosen(
    target: Target,
    where: str,
    maker: Callable[[Shard], Visitor],
    engine: Engine,
    progress: Progress,
    *,
    doing: str,
    splits: Collection[str] | None = None,
) -> Iterator[tuple[Shard, Any]]:
    """The shards of a target, in their order, and the part that a visitor makes of the records of
    each for which a condition holds.

    The records of a batch need not follow each other: for the visitor they are numbered from 0 in
    their order, and the shard has no others.
    """
    with choosing_records(target, where, engine=engine, progress=progress) as found:
        pickled = pickle.dumps(maker)
        tasks = [
            _Task(shard, numbers, pickled)
            for shard, numbers in zip(target.shards, found, strict=True)
            if splits is None or shard.split in splits
        ]
        total = sum(len(each.numbers) for each in tasks)
        label = f"{doing} {target.name}"
        chosen = engine.for_work((float(len(each.numbers)) for each in tasks), _WORTH_WORKERS)
        with working(progress, label, total), closing(chosen.run(_visited, tasks)) as parts:
            for task, part in zip(tasks, parts, strict=True):
                progress.advance(len(task.numbers), 0)
                yield task.shard, pickle.loads(part)


def _visited(task: _Task) -> bytes:
    """The part of one shard, in a worker."""
    visitor: Visitor = pickle.loads(task.maker)(task.shard)
    shard, numbers, size = task.shard, task.numbers, 0
    if len(numbers):
        with Records(shard.path, storage=shard.storage, name=shard.name) as records:
            size = int(records.lengths[numbers].sum())
            for batch in _batches(records, numbers):
                visitor.batch(batch)
    end = StreamEnd("none", 0, 0, len(numbers), size, None, None)
    return pickle.dumps(visitor.close(end))


def _batches(records: Records, numbers: NDArray[np.int64]) -> Iterator[RecordBatch]:
    lengths, offsets = records.lengths[numbers], records.offsets[numbers]
    ends, start = np.cumsum(lengths), 0
    while start < len(numbers):
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + _BLOCK_BYTES, side="right"))
        stop = min(max(stop, start + 1), start + _BLOCK_RECORDS)
        first, block = start, slice(start, stop)
        start = stop
        memory, places = bytearray(), array("q")
        whole = bool(lengths[block][0] <= HOLD_LIMIT)  # a larger one is alone
        for payload in records.read_each(numbers[block].tolist()) if whole else ():
            if not isinstance(payload, bytes):
                raise payload
            head, foot = frame(payload)
            places.append(len(memory) + HEADER_BYTES)
            memory += b"".join((head, payload, foot))
        yield RecordBatch(
            first=first,
            offsets=array("q", offsets[block].tolist()),
            lengths=array("q", lengths[block].tolist()),
            starts=places,
            memory=bytes(memory),
            whole=whole,
        )
