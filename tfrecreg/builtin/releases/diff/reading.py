"""The passes over records: in this process, or as tasks of an engine.

A pass is a function of the readers of both sides and of some places. It keeps no state, so that its
results, taken in order, are the same in any number of processes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np

from tfrecreg.builtin.releases.diff.compare import Payloads
from tfrecreg.builtin.releases.diff.match import Pairs, Places
from tfrecreg.core.registry.shardset.side import Side
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

R = TypeVar("R")

Readers = tuple[Payloads, Payloads]
Pass = Callable[[Readers, Pairs], R]
"""Importable by name, or a `functools.partial` of such a function: workers import it."""

_NOWHERE: Places = np.empty(0, np.uint64)

_STEP = 100
"""Pairs added to a task at a time."""
_TASK = 2000
"""Cost of a task, in pairs of small records: about 0.2 seconds on one core."""
_SHARD = 40
"""Cost of a shard, in the same unit: a task reads the index of each shard that it needs."""
_PAIR_BYTES = 30_000
"""Bytes that take as long to read and compare as a pair of small records takes besides."""
_FEW = 20_000
"""Cost below which no processes of this machine are started: each takes half a second to start."""
_MOST = 20_000
"""Maximum number of pairs in a task. It bounds a task and its result, which lists every pair."""


@dataclass(frozen=True, slots=True)
class ReadTask(Generic[R]):
    """A pass over some records. Picklable."""

    function: Pass[R]
    before: Side
    after: Side
    pairs: Pairs
    """Their shards are numbered as in these sides."""


class Reading:
    """Reads the records of two sides. To be closed, for the files of this process."""

    def __init__(self, before: Side, after: Side, engine: Engine | None = None) -> None:
        self.readers: Readers = Payloads(before), Payloads(after)
        """Of this process."""
        self._sides = before, after
        self._engine = engine or LocalEngine(1)
        self._cost = 1 + (_mean_bytes(before) + _mean_bytes(after)) / _PAIR_BYTES

    def run(self, function: Pass[R], *groups: Pairs) -> Generator[tuple[int, Pairs, R], None, None]:
        """The results of a pass over groups of records, in order.

        All groups are one run of the engine, whose workers start once.
        """
        bounds = [
            (number, start, end)
            for number, group in enumerate(groups)
            for start, end in pairwise(self._bounds(group))
        ]
        if not bounds:
            return  # an engine would connect to its workers for nothing
        pieces = ((number, _cut(groups[number], start, end)) for number, start, end in bounds)
        engine = self._engine.for_work((_length(each) * self._cost for each in groups), _FEW)
        if engine.is_local and engine.jobs == 1:
            # These readers keep the indexes that were read for earlier pieces.
            for number, piece in pieces:
                yield number, piece, function(self.readers, piece)
            return
        tasks = (self._task(function, piece) for _, piece in pieces)
        with closing(engine.run(read_there, tasks)) as results:
            for (number, start, end), result in zip(bounds, results, strict=True):
                yield number, _cut(groups[number], start, end), result

    def _task(self, function: Pass[R], piece: Pairs) -> ReadTask[R]:
        first, second = self._sides
        before, old = _sent(first, piece.before)
        after, new = _sent(second, piece.after)
        return ReadTask(function, before, after, Pairs(old, new))

    def _bounds(self, pairs: Pairs) -> list[int]:
        """The starts of the pieces, and the end of the last one."""
        count = _length(pairs)
        bounds, touched = [0], set[tuple[int, int]]()
        for start in range(0, count, _STEP):
            end = min(start + _STEP, count)
            touched.update(_shards(_cut(pairs, start, end)))
            length = end - bounds[-1]
            if self._cost * length >= max(_TASK, _SHARD * len(touched)) or length >= _MOST:
                bounds.append(end)
                touched.clear()
        return bounds if bounds[-1] == count else [*bounds, count]

    def close(self) -> None:
        """Close the files of this process. Reading opens them again."""
        for reader in self.readers:
            reader.close()


def alone(places: Places, *, after: bool) -> Pairs:
    """Places of one side, which have no partners."""
    return Pairs(_NOWHERE, places) if after else Pairs(places, _NOWHERE)


def read_there(task: ReadTask[R]) -> R:
    """In a worker: one pass over some records."""
    with closing(Reading(task.before, task.after)) as reading:
        return task.function(reading.readers, task.pairs)


def _sent(side: Side, places: Places) -> tuple[Side, Places]:
    """A side with the shards of these places only, and where the places are in it."""
    numbers, positions = np.unique(places >> np.uint64(32), return_inverse=True)
    records = places & np.uint64(0xFFFFFFFF)
    renumbered = (positions.astype(np.uint64) << np.uint64(32)) | records
    return side.only(numbers.tolist()), renumbered


def _length(pairs: Pairs) -> int:
    return max(len(pairs.before), len(pairs.after))


def _cut(pairs: Pairs, start: int, end: int) -> Pairs:
    return Pairs(pairs.before[start:end], pairs.after[start:end])


def _shards(pairs: Pairs) -> Iterator[tuple[int, int]]:
    """The shards of the places: number of the side, number of the shard."""
    for side, places in enumerate((pairs.before, pairs.after)):
        for shard in np.unique(places >> np.uint64(32)).tolist():
            yield side, shard


def _mean_bytes(side: Side) -> float:
    splits = side.manifest.splits
    records = sum(split.records for split in splits)
    return sum(split.payload_bytes for split in splits) / records if records else 0.0
