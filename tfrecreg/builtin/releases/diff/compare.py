"""Two records, feature by feature, in passes over the records of two versions.

A pass is a function of the readers of both sides and of some places. It keeps no state, so that its
results, taken in order, are the same in any number of processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.builtin.releases.diff.match import Pairs, Places, record_of, shard_of
from tfrecreg.core.example.decode import canonical, decode_or_none
from tfrecreg.core.example.model import Example, Feature, Kind, encode
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.registry.shardset.side import Side
from tfrecreg.core.schema.definition import IntDomain, SchemaFeature, StringDomain
from tfrecreg.core.values.errors import MissingFileError, StorageError, TfrecregError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

_Digests = npt.NDArray[np.uint8]
"""Shape (records, 16): of the records of a shard."""

_OPEN = 64
"""Maximum number of shards open at once."""


class UnreadError(Exception):
    """A record cannot be had, or is not the one that the index is of."""

    def __init__(self, reason: str, *, missing: bool = False) -> None:
        self.reason = reason
        self.missing = missing


@dataclass(frozen=True, slots=True)
class Read:
    """One record."""

    size: int
    """Bytes of the payload."""
    example: Example | None
    """None where it is not a `tf.train.Example`, or one with fields that no Example has."""


class Payloads:
    """Reads records by place. Holds 32 bytes for each record of the shards that it reads of."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._shards: dict[int, tuple[Records, _Digests]] = {}
        self._refused: dict[int, tuple[str, bool]] = {}
        self._open: list[int] = []

    def read(self, place: int) -> Read:
        """The record at a place."""
        shard, number = shard_of(place), record_of(place)
        records, digests = self._shard(shard)
        try:
            payload = records[number]
        except TfrecregError as error:
            _let_machine_fail(error)
            raise UnreadError(error.message) from None
        expected = digests[number].tobytes()
        example = decode_or_none(payload)
        # Only for a pure Example do the features determine the payload.
        if example is not None and record_digest(encode(example)) == expected:
            return Read(len(payload), example)
        if record_digest(canonical(payload)) == expected:
            return Read(len(payload), None)
        path = self._side.manifest.shards[shard].path
        raise UnreadError(f"record {number} of `{path}` does not match its index")

    def close(self) -> None:
        """Close the open shards."""
        for records, _ in self._shards.values():
            records.close()
        self._open.clear()

    def _shard(self, shard: int) -> tuple[Records, _Digests]:
        if shard not in self._shards and shard not in self._refused:
            self._find(shard)
        if shard in self._refused:
            reason, missing = self._refused[shard]
            raise UnreadError(reason, missing=missing)
        if shard not in self._open:
            self._open.append(shard)
            if len(self._open) > _OPEN:
                self._shards[self._open.pop(0)][0].close()
        return self._shards[shard]

    def _find(self, shard: int) -> None:
        try:
            index, records = self._side.index(shard), self._side.records(shard)
        except TfrecregError as error:
            _let_machine_fail(error)
            self._refused[shard] = error.message, False
            return
        if records is None or index is None:
            reason = f"the bytes of `{self._side.name}` are not on this machine"
            self._refused[shard] = reason, True
        elif len(records) != len(index):
            path = self._side.manifest.shards[shard].path
            reason = f"`{path}` has {len(records)} records, and its index {len(index)}"
            self._refused[shard] = reason, False
        else:
            self._shards[shard] = records, index.digests.copy()


def _let_machine_fail(error: TfrecregError) -> None:
    """Raise errors of the machine, which another try may not have: they say nothing about the data,
    and a release keeps its differences for good.
    """
    machine = isinstance(error, StorageError) and isinstance(error.__cause__, OSError)
    if machine and not isinstance(error, MissingFileError):
        raise error


PAYLOAD = ""
"""Stands for the whole payload if one of the two is not an Example."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordChange:
    """What differs between two records."""

    added: tuple[str, ...] = ()
    """Features that only the second one has, by name, sorted."""
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Features whose kind or values differ. The empty name stands for the payload as a whole, if
    one of the two is not an Example.
    """
    labels: tuple[tuple[str, str, str], ...] = ()
    """Feature, label before, label after."""

    @property
    def keeps_all(self) -> bool:
        """Whether all features of the first one are unchanged in the second."""
        return not self.removed and not self.changed


@dataclass(frozen=True, slots=True)
class LabelMaps:
    """The features that are labels, and the class names on each side."""

    features: tuple[str, ...]
    before: Mapping[str, Sequence[str]]
    after: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, before: Side, after: Side) -> LabelMaps:
        """Those that the schemas say are labels or classes, and those that have names."""
        names = {*before.manifest.labels, *after.manifest.labels}
        for side in (before, after):
            if side.schema is not None:
                names.update(side.schema.labels())
                names.update(each.name for each in side.schema.features if _is_class(each))
        return cls(tuple(sorted(names)), before.manifest.labels, after.manifest.labels)

    def changes(self, before: Example, after: Example) -> Iterator[tuple[str, str, str]]:
        """Feature, label before, label after, for each label that differs."""
        for name in self.features:
            old, new = before.get(name), after.get(name)
            if old is None or new is None or old == new:
                continue
            shown = _label(old, self.before.get(name, ())), _label(new, self.after.get(name, ()))
            yield name, *shown


def _is_class(feature: SchemaFeature) -> bool:
    domain = feature.domain
    return isinstance(domain, IntDomain | StringDomain) and domain.is_categorical


def _label(feature: Feature, names: Sequence[str]) -> str:
    """One value with its name, or how many values there are."""
    if feature.count != 1:
        return f"({feature.count} values)"
    (value,) = feature.values
    if isinstance(value, bytes):
        return value[:_LABEL_BYTES].decode("utf-8", "surrogateescape")
    if isinstance(value, int) and 0 <= value < len(names) and names[value] != str(value):
        return f"{value} ({names[value]})"
    return str(value)


_LABEL_BYTES = 100


def compare(before: Read, after: Read, labels: LabelMaps) -> RecordChange:
    """What differs between two records."""
    old, new = before.example, after.example
    if old is None or new is None:
        return RecordChange(changed=(PAYLOAD,))
    return RecordChange(
        added=tuple(sorted(name for name in new if name not in old)),
        removed=tuple(sorted(name for name in old if name not in new)),
        changed=tuple(sorted(name for name in old if name in new and old[name] != new[name])),
        labels=tuple(labels.changes(old, new)),
    )


def images_of(before: Side, after: Side) -> tuple[str, ...]:
    """The features that hold encoded images on both sides, by their schemas, sorted."""
    if before.schema is None or after.schema is None:
        return ()
    return tuple(sorted({*before.schema.images()} & {*after.schema.images()}))


def image_digest(read: Read, images: Sequence[str]) -> bytes | None:
    """16 bytes that name the images of a record; None where it has none."""
    if read.example is None:
        return None
    hasher, found = blake3(), False
    for name in images:
        feature = read.example.get(name)
        if feature is None or feature.kind is not Kind.BYTES:
            continue
        for value in feature.values:
            if value:
                found = True
                hasher.update(len(value).to_bytes(8, "little"))
                hasher.update(value)
        hasher.update(b"\xff" * 8)
    return hasher.digest(16) if found else None


_MOST = 10_000
"""Maximum number of distinct features, and of pairs of labels, that are counted separately."""
OTHERS = "…"
"""Stands for the features beyond these."""


@dataclass(slots=True)
class FeatureCounts:
    """In how many of the examples that changed a feature …"""

    added: int = 0
    """… came, …"""
    removed: int = 0
    """… went, …"""
    changed: int = 0
    """… and has another kind or other values."""


@dataclass(slots=True)
class Tallied:
    """Result of comparing the records of pairs."""

    compared: int = 0
    """Pairs whose records were both read."""
    kept: int = 0
    """Number of pairs in which all features of the first are unchanged in the second."""
    unread: int = 0
    """Number of pairs with a record that could not be read."""
    reason: str = ""
    """Reason for the first of these."""
    missing: bool = False
    """Whether that is because the bytes are not on this machine."""
    features: dict[str, FeatureCounts] = field(default_factory=dict)
    """Counts by feature name. The empty name stands for payloads that are not Examples."""
    relabelled: int = 0
    """Number of pairs in which a label differs."""
    labels: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Feature, label before, label after."""
    more_labels: int = 0
    """Changes of labels beyond those that are counted separately."""
    size: int = 0
    """Bytes of the payloads that were read."""
    is_full: bool = False
    """Whether something was not counted separately: adding it to others would count otherwise."""

    def add(self, change: RecordChange) -> None:
        """Count the differences in one pair."""
        self.compared += 1
        self.kept += change.keeps_all
        self.relabelled += bool(change.labels)
        for kind in ("added", "removed", "changed"):
            for name in getattr(change, kind):
                counts = self._counts(name)
                setattr(counts, kind, getattr(counts, kind) + 1)
        for label in change.labels:
            self._count_label(label, 1)

    def add_all(self, more: Tallied) -> None:
        """Add the counts of the pairs that follow, which must not be full."""
        assert not more.is_full
        if not self.unread:
            self.reason, self.missing = more.reason, more.missing
        self.compared += more.compared
        self.kept += more.kept
        self.relabelled += more.relabelled
        self.unread += more.unread
        self.size += more.size
        for name, theirs in more.features.items():
            counts = self._counts(name)
            counts.added += theirs.added
            counts.removed += theirs.removed
            counts.changed += theirs.changed
        for label, times in more.labels.items():
            self._count_label(label, times)

    def _count_label(self, label: tuple[str, str, str], times: int) -> None:
        if label in self.labels or len(self.labels) < _MOST:
            self.labels[label] += times
        else:
            self.more_labels += times
            self.is_full = True

    def _counts(self, name: str) -> FeatureCounts:
        if name not in self.features and len(self.features) >= _MOST:
            name = OTHERS
            self.is_full = True
        return self.features.setdefault(name, FeatureCounts())


def changes_of(
    pairs: Pairs, readers: tuple[Payloads, Payloads], labels: LabelMaps
) -> Iterator[tuple[RecordChange | UnreadError, int]]:
    """The differences of each pair, and the bytes that were read."""
    for first, second in zip(pairs.before, pairs.after, strict=True):
        try:
            before, after = readers[0].read(int(first)), readers[1].read(int(second))
        except UnreadError as error:
            yield error, 0
        else:
            yield compare(before, after, labels), before.size + after.size


def tally(
    pairs: Pairs,
    readers: tuple[Payloads, Payloads],
    labels: LabelMaps,
    into: Tallied,
    progress: Progress = SILENT,
) -> None:
    """Count the differences in pairs."""
    for change, size in changes_of(pairs, readers, labels):
        if isinstance(change, UnreadError):
            into.unread += 1
            if into.unread == 1:
                into.reason, into.missing = change.reason, change.missing
        else:
            into.add(change)
        into.size += size
        progress.advance(1, size)


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
_MOST_RECORDS = 20_000
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
            if self._cost * length >= max(_TASK, _SHARD * len(touched)) or length >= _MOST_RECORDS:
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
