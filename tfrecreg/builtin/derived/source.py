"""The source `tfrecreg` takes records from other datasets, and may change classes and features.

The listing finds records through the indexes of the parents, and `example` reads each record. A
record has the same bytes as in its parent, unless its classes or features change.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.derived.parents import (
    Ancestor,
    DerivedOptions,
    choose_features,
    find_parents,
    renamed_labels,
    renames,
    share_of,
)
from tfrecreg.builtin.derived.schemas import (
    Classes,
    UnfitRecord,
    change_classes,
    classes_in,
    merge_classes,
    merge_schemas,
)
from tfrecreg.core.build.sources.deal import Deal, ListedEntry, deal_strata, key_hash
from tfrecreg.core.build.sources.interface import Item, RawFile, Remark, Skipped, Source, Written
from tfrecreg.core.example.decode import decode_or_none, decode_with_form
from tfrecreg.core.example.model import Example
from tfrecreg.core.records.framing import OVERHEAD, sound_payload
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.records.index import Index
from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.records.reading.offsets import RecordOffsets, indexed_offsets
from tfrecreg.core.registry.manifest import ParentVersion, ShardEntry
from tfrecreg.core.storage.interface import Reader
from tfrecreg.core.values.errors import DamagedRecordError, RawDataError, StorageError
from tfrecreg.core.values.text import count

_Numbers = npt.NDArray[np.int64]
"""Record numbers in a shard, in ascending order."""

_SAMPLE = b"tfrecreg derived sample v1\0"
_LIMIT = b"tfrecreg derived limit v1\0"
_HASHES = 1 << 64
_TOGETHER = 4 << 20
"""Approximate size in bytes of the payloads that are read at once to find classes."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The records that are taken from one shard."""

    parent: int
    shard: int
    index: Index
    numbers: _Numbers


class RecordSelection:
    """Chooses the records, and counts the records whose classes are all left out."""

    def __init__(
        self, parents: Sequence[Ancestor], classes: Classes, options: DerivedOptions
    ) -> None:
        self._parents = parents
        self._classes = classes
        self._options = options
        self._share = int(share_of(options.sample) * _HASHES)
        drops = any(
            number is None
            for changes in classes.by_parent
            for change in changes
            for number in change.numbers.values()
        )
        self._reads_classes = drops or options.limit is not None
        self.left_out: Counter[str] = Counter()
        """Per split, the number of records whose classes are all left out."""

    def taken(self) -> Iterator[Taken]:
        if self._options.limit is not None:
            yield from self._limited(self._sampled(), self._options.limit)
            return
        for each in self._sampled():
            if self._reads_classes:
                classes = self._classes_of(each)
                kept = [number for number, found in classes if found is not None]
                yield replace(each, numbers=np.array(kept, np.int64))
            else:
                yield each

    def _sampled(self) -> Iterator[Taken]:
        for place, parent in enumerate(self._parents):
            matching: list[_Numbers] | None = None
            if self._options.where is not None:
                # Needs DuckDB, which only a condition uses.
                from tfrecreg.builtin.query.where import matching_records

                matching = matching_records(parent.target(), self._options.where)
            for number, shard in enumerate(parent.shards):
                index = parent.index(shard)
                numbers = np.arange(len(index)) if matching is None else matching[number]
                if self._share < _HASHES:
                    hashes = (key_hash(_SAMPLE, index.key(each)) for each in numbers.tolist())
                    drawn = [each < self._share for each in hashes]
                    numbers = numbers[np.array(drawn, bool)]
                yield Taken(place, number, index, numbers)

    def _limited(self, found: Iterable[Taken], limit: int) -> Iterator[Taken]:
        """Up to `limit` records per class and split: the records whose keys have the lowest hashes.

        A record of several classes is taken if one of these classes is below `limit`. Records
        without a class are limited as if they had one common class.
        """
        every: list[Taken] = []
        splits: dict[str, list[tuple[int, int, int, frozenset[tuple[str, int]]]]] = {}
        for each in found:
            split = self._parents[each.parent].shards[each.shard].split
            for number, classes in self._classes_of(each):
                if classes is not None:
                    order = key_hash(_LIMIT, each.index.key(number))
                    splits.setdefault(split, []).append((order, len(every), number, classes))
            every.append(each)
        chosen: dict[int, list[int]] = {}
        for candidates in splits.values():
            full: Counter[tuple[str, int]] = Counter()
            for _, place, number, classes in sorted(candidates, key=lambda each: each[:3]):
                counted = classes or {("", 0)}
                if any(full[each] < limit for each in counted):
                    full.update(counted)
                    chosen.setdefault(place, []).append(number)
        for place, each in enumerate(every):
            yield replace(each, numbers=np.array(sorted(chosen.get(place, ())), np.int64))

    def _classes_of(self, taken: Taken) -> Iterator[tuple[int, frozenset[tuple[str, int]] | None]]:
        """The number and the classes of each record. None means that the record is left out."""
        parent = self._parents[taken.parent]
        shard = parent.shards[taken.shard]
        changes = self._classes.by_parent[taken.parent]
        with parent.records(shard, indexed_offsets((shard.bytes, 0), taken.index)) as records:
            for numbers in _together(taken):
                for number, payload in zip(numbers, records.read_each(numbers), strict=True):
                    if isinstance(payload, DamagedRecordError):
                        raise parent.damaged(shard, payload.message, number)
                    classes = classes_in(decode_or_none(payload) or {}, changes)
                    if classes is None:
                        self.left_out[shard.split] += 1
                    yield number, None if classes is None else frozenset(classes)


def _together(taken: Taken) -> Iterator[list[int]]:
    """Groups of record numbers. The payloads of a group add up to about :data:`_TOGETHER` bytes."""
    ends = np.cumsum(taken.index.lengths[taken.numbers], dtype=np.int64)
    firsts = np.flatnonzero(np.diff(ends // _TOGETHER)) + 1
    return (group.tolist() for group in np.split(taken.numbers, firsts))


_PLACE = struct.Struct("<HIIqq16s")
_OPEN = 32
"""Maximum number of shards that a worker keeps open."""
_GZIP_OPEN = 4
"""The same for gzip shards, because each holds a member and the list of its members."""


class RecordPlace(NamedTuple):
    """Where a record is, and its digest: the state of an item."""

    parent: int
    shard: int
    number: int
    offset: int
    """Offset of the record in the decompressed stream."""
    length: int
    digest: bytes
    """The digest of the record, from the index."""


class ParentReader:
    """Reads records of the parents, and keeps the most recently used shards open."""

    def __init__(self, parents: Sequence[Ancestor]) -> None:
        self._parents = parents
        self._open: dict[tuple[int, int], Reader | Records] = {}
        self._offsets: dict[tuple[int, int], RecordOffsets] = {}
        """The offsets in each gzip shard that was opened, because reading its index takes long."""

    def __del__(self) -> None:
        for each in self._open.values():
            each.close()

    def read(self, place: RecordPlace) -> tuple[Example, str]:
        """The features of a record, and the reason why a build cannot store it (empty if it can).
        The checksums of the record and its digest in the index are verified.
        """
        parent = self._parents[place.parent]
        shard = parent.shards[place.shard]
        try:
            payload = self._payload(parent, shard, place)
        except DamagedRecordError as error:
            raise parent.damaged(shard, error.message, place.number) from None
        except StorageError as error:
            raise RawDataError(
                f"the parent `{parent.name}` cannot be read: {error.message}", hint=error.hint
            ) from error
        if payload is None:
            raise parent.damaged(shard, "its checksums do not match", place.number)
        example, form, unknown = decode_with_form(payload)
        if record_digest(form) != place.digest:
            raise parent.damaged(shard, "it is not the record that the index lists", place.number)
        if example is None:
            return {}, "it is not a `tf.train.Example`"
        return example, "it has fields that `tf.train.Example` does not have" if unknown else ""

    def _payload(self, parent: Ancestor, shard: ShardEntry, place: RecordPlace) -> bytes | None:
        """The payload; None if its frame or a checksum is wrong."""
        key = place.parent, place.shard
        file = self._open.pop(key, None)
        if file is None:
            if parent.manifest.compression == "gzip":
                offsets = self._offsets.get(key)
                if offsets is None:
                    offsets = indexed_offsets((shard.bytes, 0), parent.index(shard))
                    self._offsets[key] = offsets
                file = parent.records(shard, offsets)
            else:
                file = parent.raw.open(parent.path(shard))
            most = _GZIP_OPEN if parent.manifest.compression == "gzip" else _OPEN
            while len(self._open) >= most:
                self._open.pop(next(iter(self._open))).close()
        self._open[key] = file
        if isinstance(file, Records):
            return file[place.number]
        frame = file.read_at(place.offset, place.length + OVERHEAD)
        return sound_payload(frame, 0, place.length)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What the options mean for these parents. Picklable."""

    parents: tuple[Ancestor, ...]
    classes: Classes
    chosen: Mapping[str, str]
    """The new name of each kept feature."""


class DerivedSource(Source):
    """Versions of other datasets of a registry. See :class:`~tfrecreg.api.Source`."""

    Options: ClassVar[type[Any]] = DerivedOptions
    needs_local: ClassVar[bool] = True

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.raw, self.options), {"plan": self.plan}

    @cached_property
    def plan(self) -> _Plan:
        """The plan, which is computed only once, in the parent process."""
        parents = find_parents(self.raw, self.options.inputs)
        known = {name for each in parents for name in each.features}
        chosen = choose_features(self.options.features, known)
        return _Plan(parents, merge_classes(parents, self.options.classes), chosen)

    @cached_property
    def _reader(self) -> ParentReader:
        return ParentReader(self.plan.parents)

    def raw_files(self) -> Iterator[RawFile]:
        for parent in self.plan.parents:
            for shard in parent.shards:
                path = parent.path(shard)
                yield RawFile(path, stored=shard.bytes, decoded=parent.stream(shard))

    def parents(self) -> Sequence[ParentVersion]:
        return [each.version for each in self.plan.parents]

    def notes(self) -> Sequence[str]:
        return [each.note for each in self.plan.parents if each.note]

    def labels(self) -> Mapping[str, Sequence[str]]:
        return renamed_labels(self.plan.classes.labels, self.plan.chosen)

    def schema(self) -> str:
        return merge_schemas(self.plan.parents, self.plan.classes, self.plan.chosen)

    def describe(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for each in self.plan.parents:
            records = count(sum(shard.records for shard in each.shards), "record")
            found[f"parent {each.name}"] = f"{records}, content {each.version.content[:16]}…"
        return found

    def items(self) -> Iterator[Item | Skipped | Remark]:
        deal = self.options.deal
        if self.options.stratify is not None:
            classes = self._with_classes(self.options.stratify)
            yield from deal_strata(deal, classes, self._entries())
        elif deal.split:
            yield from Deal(deal).listed(self._entries())
        else:
            yield from self._entries()

    def _with_classes(self, expression: str) -> Iterator[tuple[ListedEntry, str | None]]:
        """Yield each entry with its class. The class of an item is the value of the SQL expression,
        renamed according to the option `classes`. Other entries have the class None.
        """
        from tfrecreg.builtin.query.where import record_texts  # DuckDB, for strata alone

        texts = [record_texts(each.target(), expression) for each in self.plan.parents]
        changed = renames("classes", self.options.classes, alone=False)
        for entry in self._entries():
            if not isinstance(entry, Item):
                yield entry, None
                continue
            place = RecordPlace(*_PLACE.unpack(entry.state))
            text = texts[place.parent][place.shard][place.number]
            yield entry, changed.get(text or "") or text

    def _entries(self) -> Iterator[ListedEntry]:
        parents = self.plan.parents
        selection = RecordSelection(parents, self.plan.classes, self.options)
        owners: dict[bytes, int] = {}  # by 16 bytes of a key, which two parents may have
        found = False
        for taken in selection.taken():
            parent = parents[taken.parent]
            split = parent.shards[taken.shard].split
            offsets = taken.index.offsets()
            for number in taken.numbers.tolist():
                key = taken.index.key(number)
                if self.options.prefix:
                    key = f"{parent.manifest.dataset}/{key}"
                elif len(parents) > 1:
                    name = record_digest(f"{split}\0{key}".encode("utf-8", "surrogateescape"))
                    owner = owners.setdefault(name, taken.parent)
                    if owner != taken.parent:
                        raise RawDataError(
                            f"the parents `{parents[owner].name}` and `{parent.name}` both have "
                            f"the key `{key}` in the split `{split}`: `--option prefix=yes` puts "
                            "the names of datasets before keys"
                        )
                length = int(taken.index.lengths[number])
                offset, digest = int(offsets[number]), taken.index.digests[number].tobytes()
                place = RecordPlace(taken.parent, taken.shard, number, offset, length, digest)
                found = True
                yield Item(split, key, length, _PLACE.pack(*place))
        for split, times in sorted(selection.left_out.items()):
            what = f"{count(times, 'record')} of classes that `classes` leaves out"
            yield Remark(split, "", "SRC015", what, times)
        if not found:
            raise RawDataError(
                "no record of the parents is selected: "
                + ", ".join(f"`{each.name}`" for each in parents)
            )

    def example(self, item: Item) -> Example | Written | Skipped:
        plan = self.plan
        place = RecordPlace(*_PLACE.unpack(item.state))
        example, problem = self._reader.read(place)
        if problem:
            return Skipped(item.split, item.key, "SRC110", problem)
        try:
            changed, left_out = change_classes(example, plan.classes.by_parent[place.parent])
        except UnfitRecord as error:
            return Skipped(item.split, item.key, "SRC113", str(error))
        if self.options.features:
            chosen = plan.chosen
            changed = {chosen[name]: each for name, each in changed.items() if name in chosen}
        if not left_out:
            return changed
        what = f"{count(left_out, 'object')} of classes that `classes` leaves out"
        return Written(changed, [Remark(item.split, item.key, "SRC015", what, left_out)])
