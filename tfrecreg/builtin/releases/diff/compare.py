"""Compares the records of two versions feature by feature. Each comparison is a pass over records.

A pass is a function of two arguments: the readers of both sides, and the places to read. It keeps
no state, so its results are the same, in the same order, for any number of processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.builtin.releases.diff.match import (
    DIGEST,
    PLACE,
    SPLIT,
    WIDTH,
    IndexRows,
    Matched,
    Pairs,
    Places,
    Unmatched,
    in_order,
    record_of,
    shard_of,
    split_numbers,
)
from tfrecreg.core.example.decode import canonical, decode_or_none
from tfrecreg.core.example.model import Example, Feature, Kind, encode
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.registry.side import Side
from tfrecreg.core.schema.definition import IntDomain, StringDomain
from tfrecreg.core.values.errors import MissingFileError, StorageError, TfrecregError
from tfrecreg.core.values.progress import Progress, working
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

_Digests = npt.NDArray[np.uint8]
"""Digests of records or of their images, shape (records, 16). A record without an image has zeros.
"""

_OPEN = 64
"""Maximum number of shards open at once."""


class UnreadError(Exception):
    """A record cannot be read, or does not match its index."""

    def __init__(self, reason: str, *, missing: bool = False) -> None:
        self.reason = reason
        self.missing = missing


class Payloads:
    """Reads records by place. It keeps 32 bytes for each record of the shards that it reads."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._shards: dict[int, tuple[Records, _Digests] | UnreadError] = {}
        self._open: dict[int, Records] = {}

    def read(self, place: int) -> tuple[int, Example | None]:
        """The size in bytes of the payload at a place, and the features of the record. The features
        are None if the record is not a `tf.train.Example`, or has unknown fields.
        """
        shard, number = shard_of(place), record_of(place)
        records, digests = self._shard(shard)
        try:
            payload = records[number]
        except TfrecregError as error:
            _let_machine_fail(error)
            raise UnreadError(error.message) from None
        expected = digests[number].tobytes()
        example = decode_or_none(payload)
        # The features determine the payload only for a pure Example.
        if example is not None and record_digest(encode(example)) == expected:
            return len(payload), example
        if record_digest(canonical(payload)) == expected:
            return len(payload), None
        path = self._side.manifest.shards[shard].path
        raise UnreadError(f"record {number} of `{path}` does not match its index")

    def close(self) -> None:
        """Close the open shards."""
        for records in self._open.values():
            records.close()
        self._open.clear()

    def _shard(self, shard: int) -> tuple[Records, _Digests]:
        found = self._shards.get(shard)
        if found is None:
            found = self._shards[shard] = self._find(shard)
        if isinstance(found, UnreadError):
            raise found.with_traceback(None)
        if shard not in self._open:
            self._open[shard] = found[0]
            if len(self._open) > _OPEN:
                self._open.pop(next(iter(self._open))).close()
        return found

    def _find(self, shard: int) -> tuple[Records, _Digests] | UnreadError:
        try:
            index, records = self._side.index(shard), self._side.records(shard)
        except TfrecregError as error:
            _let_machine_fail(error)
            return UnreadError(error.message)
        if records is None or index is None:
            reason = f"the bytes of `{self._side.name}` are not on this machine"
            return UnreadError(reason, missing=True)
        if len(records) != len(index):
            path = self._side.manifest.shards[shard].path
            records.close()
            return UnreadError(
                f"`{path}` has {len(records)} records, but its index has {len(index)}"
            )
        return records, index.digests.copy()


def _let_machine_fail(error: TfrecregError) -> None:
    """Raise the error if the machine caused it, because a retry may succeed. Such an error says
    nothing about the data, but a release would record it forever.
    """
    machine = isinstance(error, StorageError) and isinstance(error.__cause__, OSError)
    if machine and not isinstance(error, MissingFileError):
        raise error


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordChange:
    """The differences between two records."""

    added: tuple[str, ...] = ()
    """Names of the features that only the second record has, sorted."""
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Features whose kind or values differ. The empty name stands for the whole payload, if one of
    the records is not an Example.
    """
    labels: tuple[tuple[str, str, str], ...] = ()
    """Each tuple contains a feature, the old label and the new label."""
    size: int = 0
    """Bytes of the payloads that were read."""
    unread: str = ""
    """Why a record could not be read; empty if both records were read."""
    missing: bool = False
    """Whether the record is unread because its bytes are not on this machine."""


@dataclass(frozen=True, slots=True)
class LabelMaps:
    """The features that are labels, and the class names on each side."""

    features: tuple[str, ...]
    before: Mapping[str, Sequence[str]]
    after: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, before: Side, after: Side) -> LabelMaps:
        """The features that a schema declares as labels or classes, or that have class names."""
        names = {*before.manifest.labels, *after.manifest.labels}
        for side in (before, after):
            if side.schema is not None:
                names.update(side.schema.labels())
                for each in side.schema.features:
                    domain = each.domain
                    if isinstance(domain, IntDomain | StringDomain) and domain.is_categorical:
                        names.add(each.name)
        return cls(tuple(sorted(names)), before.manifest.labels, after.manifest.labels)

    def changes(self, before: Example, after: Example) -> Iterator[tuple[str, str, str]]:
        """For each label that differs, yield the feature, the label before, and the label after."""
        for name in self.features:
            old, new = before.get(name), after.get(name)
            if old is None or new is None or old == new:
                continue
            shown = _label(old, self.before.get(name, ())), _label(new, self.after.get(name, ()))
            yield name, *shown


def _label(feature: Feature, names: Sequence[str]) -> str:
    """A single value, with the name of its class. If there are several values, the text says only
    how many.
    """
    if feature.count != 1:
        return f"({feature.count} values)"
    (value,) = feature.values
    if isinstance(value, bytes):
        text = value[: 4 * _LABEL_CHARACTERS].decode("utf-8", "surrogateescape")
        return text[:_LABEL_CHARACTERS]
    if isinstance(value, int) and 0 <= value < len(names) and names[value] != str(value):
        return f"{value} ({names[value]})"
    return str(value)


_LABEL_CHARACTERS = 100


def read_changes(readers: Readers, pairs: Pairs, *, labels: LabelMaps) -> list[RecordChange]:
    """A pass that returns the differences of each pair."""
    return [
        _change(readers, int(first), int(second), labels)
        for first, second in zip(pairs.before, pairs.after, strict=True)
    ]


def _change(readers: Readers, first: int, second: int, labels: LabelMaps) -> RecordChange:
    try:
        (before_size, old), (after_size, new) = readers[0].read(first), readers[1].read(second)
    except UnreadError as error:
        return RecordChange(unread=error.reason, missing=error.missing)
    size = before_size + after_size
    if old is None or new is None:
        return RecordChange(changed=("",), size=size)
    return RecordChange(
        added=tuple(sorted(name for name in new if name not in old)),
        removed=tuple(sorted(name for name in old if name not in new)),
        changed=tuple(sorted(name for name in old if name in new and old[name] != new[name])),
        labels=tuple(labels.changes(old, new)),
        size=size,
    )


def images_of(before: Side, after: Side) -> tuple[str, ...]:
    """The sorted names of the features that hold encoded images in both schemas."""
    if before.schema is None or after.schema is None:
        return ()
    return tuple(sorted({*before.schema.images()} & {*after.schema.images()}))


def image_digest(example: Example, images: Sequence[str]) -> bytes:
    """16 bytes that identify the images of a record; zeros if it has no image."""
    hasher, found = blake3(), False
    for name in images:
        feature = example.get(name)
        if feature is None or feature.kind is not Kind.BYTES:
            continue
        for value in feature.values:
            if value:
                found = True
                hasher.update(len(value).to_bytes(8, "little"))
                hasher.update(value)
        hasher.update(b"\xff" * 8)
    return hasher.digest(16) if found else bytes(16)


_MOST = 10_000
"""At most this many features and this many label changes are counted separately."""
OTHERS = "…"
"""This name stands for all other features."""


@dataclass(slots=True)
class FeatureCounts:
    """In how many examples a feature differs."""

    added: int = 0
    removed: int = 0
    changed: int = 0
    """Number of examples in which the kind or the values of the feature differ."""


@dataclass(slots=True)
class Tallied:
    """Result of comparing paired records."""

    compared: int = 0
    """Number of pairs in which both records were read."""
    kept: int = 0
    """Number of pairs in which all features of the first record are unchanged in the second."""
    unread: int = 0
    """Number of pairs with a record that could not be read."""
    reason: str = ""
    """Reason for the first unread record."""
    missing: bool = False
    """Whether the record is unread because its bytes are not on this machine."""
    features: dict[str, FeatureCounts] = field(default_factory=dict)
    """Counts by feature name. The empty name stands for payloads that are not Examples."""
    relabelled: int = 0
    """Number of pairs in which a label differs."""
    labels: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """How often each change occurs. A change has a feature, the old label and the new label."""
    more_labels: int = 0
    """Number of all other label changes, which are not counted separately."""

    def add(self, change: RecordChange) -> None:
        """Count the differences in a pair of records."""
        if change.unread:
            if not self.unread:
                self.reason, self.missing = change.unread, change.missing
            self.unread += 1
            return
        self.compared += 1
        self.kept += not (change.removed or change.changed)
        self.relabelled += bool(change.labels)
        for name in change.added:
            self._counts(name).added += 1
        for name in change.removed:
            self._counts(name).removed += 1
        for name in change.changed:
            self._counts(name).changed += 1
        for label in change.labels:
            if label in self.labels or len(self.labels) < _MOST:
                self.labels[label] += 1
            else:
                self.more_labels += 1

    def _counts(self, name: str) -> FeatureCounts:
        if name not in self.features and len(self.features) >= _MOST:
            name = OTHERS
        return self.features.setdefault(name, FeatureCounts())


R = TypeVar("R")

Readers = tuple[Payloads, Payloads]
Pass = Callable[[Readers, Pairs], R]
"""A function that workers can import by its name, or a `functools.partial` of one."""

_NOWHERE: Places = np.empty(0, np.uint64)

_TASK_SECONDS = 0.2
"""Approximate time of a task on one core."""
_PAIR_SECONDS = 25e-6
"""Approximate time to compare two small records."""
_BYTE_SECONDS = 1e-9
"""Approximate additional time per byte of the records."""


_Task = tuple[Pass[R], Side, Side, Pairs]
"""A pass over some records of two sides. The numbers of shards in the places refer to the sides in
the task. Picklable."""


class Reading:
    """Reads the records of two sides. Closing it closes the files of this process."""

    def __init__(self, before: Side, after: Side, engine: Engine | None = None) -> None:
        self.readers: Readers = Payloads(before), Payloads(after)
        """The readers of this process."""
        self._sides = before, after
        self._engine = engine or LocalEngine(1)
        size = _mean_bytes(before) + _mean_bytes(after)
        self._seconds = _PAIR_SECONDS + _BYTE_SECONDS * size
        self._piece = max(1, round(_TASK_SECONDS / self._seconds))

    def run(self, function: Pass[R], *groups: Pairs) -> Generator[tuple[int, Pairs, R], None, None]:
        """The results of a pass over groups of records, in order.

        The engine runs all groups together, so its workers start only once.
        """
        pieces = [
            (number, group[at : at + self._piece])
            for number, group in enumerate(groups)
            for at in range(0, len(group), self._piece)
        ]
        if not pieces:
            return  # an engine would connect to its workers in vain
        engine = self._engine.for_work(len(each) * self._seconds for each in groups)
        # These readers keep the indexes that earlier pieces needed.
        results = engine.run_here(lambda: (function(self.readers, piece) for _, piece in pieces))
        tasks = (_task(function, self._sides, piece) for _, piece in pieces)
        with closing(results or engine.run(read_there, tasks)) as found:
            for (number, piece), result in zip(pieces, found, strict=True):
                yield number, piece, result

    def close(self) -> None:
        """Close the files of this process. Reading opens them again."""
        for reader in self.readers:
            reader.close()


def read_there(task: _Task[R]) -> R:
    """Run one pass over some records, in a worker."""
    function, before, after, pairs = task
    with closing(Reading(before, after)) as reading:
        return function(reading.readers, pairs)


def _task(function: Pass[R], sides: tuple[Side, Side], piece: Pairs) -> _Task[R]:
    """A task for the places in `piece`, with only their shards. The shards get new numbers."""
    sent = []
    for side, places in zip(sides, (piece.before, piece.after), strict=True):
        numbers, positions = np.unique(places >> np.uint64(32), return_inverse=True)
        records = places & np.uint64(0xFFFFFFFF)
        renumbered = (positions.astype(np.uint64) << np.uint64(32)) | records
        sent.append((side.only(numbers.tolist()), renumbered))
    (before, old), (after, new) = sent
    return function, before, after, Pairs(old, new)


def _mean_bytes(side: Side) -> float:
    splits = side.manifest.splits
    records = sum(split.records for split in splits)
    return sum(split.payload_bytes for split in splits) / records if records else 0.0


def follow_images(
    before: Side, after: Side, matched: Matched, reading: Reading, progress: Progress
) -> Matched:
    """Find the partners of removed and added examples by their images.

    An ImageFolder names its records by paths, so an image that moves from one split to another gets
    another key. The content of the record often changes as well, because it contains the file name.
    Only the bytes of the image stay the same.

    Different images in two splits are two examples even if their keys are equal, because keys may
    be positions. If the bytes of a record are missing, only keys are compared.
    """
    images, pairs = images_of(before, after), matched.moved_changed
    gone, new = matched.removed, matched.added
    if not images or not (len(pairs) or (len(gone) and len(new))):
        return matched
    first, second = np.concatenate((gone, pairs.before)), np.concatenate((new, pairs.after))
    groups = Pairs(first, _NOWHERE), Pairs(_NOWHERE, second)
    parts: list[list[_Digests]] = [[], []]
    run = reading.run(partial(digest_images, images=images), *groups)
    with working(progress, "comparing images", len(first) + len(second)), closing(run) as results:
        for group, piece, found in results:
            if found is None:
                return matched
            digests, size = found
            parts[group].append(digests)
            progress.advance(len(piece), size)
    of_first, of_second = (np.concatenate([np.empty((0, 16), np.uint8), *each]) for each in parts)
    old, theirs = of_first[len(gone) :], of_second[len(new) :]
    other = old.any(axis=1) & theirs.any(axis=1) & (old != theirs).any(axis=1)
    of_gone, of_new = (
        np.concatenate((each[:count], each[count:][other]))
        for each, count in ((of_first, len(gone)), (of_second, len(new)))
    )
    gone = np.concatenate((gone, pairs[other].before))
    new = np.concatenate((new, pairs[other].after))
    splits = split_numbers(before, after)
    left = Unmatched(_rows(before, splits, gone, of_gone), _rows(after, splits, new, of_new))
    renamed, moved = left.pair(SPLIT, DIGEST), left.pair(DIGEST)
    pairs = pairs[~other]
    return replace(
        matched,
        renamed_changed=renamed,
        moved_changed=in_order(
            np.concatenate((pairs.before, moved.before)), np.concatenate((pairs.after, moved.after))
        ),
        removed=_except(gone, renamed.before, moved.before),
        added=_except(new, renamed.after, moved.after),
    )


def _rows(side: Side, splits: dict[str, int], places: Places, digests: _Digests) -> IndexRows:
    """Rows of the records that have images, with digests of the images, not of the records."""
    has_image = digests.any(axis=1)
    places = places[has_image]
    rows = np.zeros((len(places), WIDTH), np.uint8)
    numbers = np.array([splits[shard.split] for shard in side.manifest.shards], ">u2")
    shards = (places >> np.uint64(32)).astype(np.intp)
    rows[:, SPLIT] = numbers[shards].view(np.uint8).reshape(-1, 2)
    rows[:, DIGEST] = digests[has_image]
    rows[:, PLACE] = places.astype(">u8").view(np.uint8).reshape(-1, 8)
    return rows


def digest_images(
    readers: Readers, places: Pairs, *, images: Sequence[str]
) -> tuple[_Digests, int] | None:
    """A pass over the images of one side. It returns their digests and the number of bytes that it
    read. It returns None if a record cannot be read.
    """
    digests, size = bytearray(), 0
    for reader, side in zip(readers, (places.before, places.after), strict=True):
        for place in side.tolist():
            try:
                payload_size, example = reader.read(place)
            except UnreadError:
                return None
            size += payload_size
            digests += image_digest(example or {}, images)
    return np.frombuffer(bytes(digests), np.uint8).reshape(-1, 16), size


def _except(places: Places, *found: Places) -> Places:
    return np.sort(places[~np.isin(places, np.concatenate(found))])
