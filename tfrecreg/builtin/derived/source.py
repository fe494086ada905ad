"""The source `tfrecreg`: records of other datasets, unchanged or with other classes and features.

The listing finds the records by the indexes of the parents, and `example` reads one by its place.
A record whose classes and features stay has the bytes that it has in its parent.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from tfrecreg.builtin.derived.parents import (
    Ancestor,
    DerivedOptions,
    ParentShard,
    ancestor_target,
    choose_features,
    damaged_record,
    find_parents,
    renamed,
    renamed_labels,
    renames,
)
from tfrecreg.builtin.derived.schemas import (
    Classes,
    UnfitRecord,
    change_classes,
    merge_classes,
    merge_schemas,
)
from tfrecreg.builtin.derived.selection import RecordSelection, located_records
from tfrecreg.core.build.sources.deal import ClassListing, Deal, ListedEntry, deal_strata
from tfrecreg.core.build.sources.interface import Item, RawFile, Remark, Skipped, Source, Written
from tfrecreg.core.example.decode import decode_fast, decode_fully
from tfrecreg.core.example.model import Example, NotAnExampleError, encode
from tfrecreg.core.records.framing import (
    FOOTER_BYTES,
    HEADER_BYTES,
    OVERHEAD,
    header_length,
    masked_crc,
)
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.records.index import load_index
from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.registry.manifest import ParentVersion
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.interface import Readable, Reader
from tfrecreg.core.values.errors import DamagedRecordError, RawDataError, StorageError
from tfrecreg.core.values.text import count, safe

_PLACE = struct.Struct("<HIIqq16s")
_OPEN = 32
"""Maximum number of files that a worker holds open."""
_RECORDS_OPEN = 4
"""Maximum number of gzip shards whose members a worker holds."""


class RecordPlace(NamedTuple):
    """Where a record is, and what it is."""

    parent: int
    """Number of the parent, from 0."""
    shard: int
    """Number of the shard in the parent, from 0."""
    number: int
    """Number of the record in the shard, from 0."""
    offset: int
    """Byte of the decompressed stream where it starts."""
    length: int
    """Bytes of its payload."""
    digest: bytes
    """Its digest by the index."""

    def pack(self) -> bytes:
        """The state of an item."""
        return _PLACE.pack(*self)

    @classmethod
    def unpack(cls, state: bytes) -> RecordPlace:
        """From the state of an item."""
        return cls(*_PLACE.unpack(state))


class ParentReader:
    """Reads records, and holds some files open."""

    def __init__(self, raw: Readable) -> None:
        self._raw = raw
        self._files: OrderedDict[str, Reader] = OrderedDict()
        self._records: OrderedDict[str, Records] = OrderedDict()

    def __del__(self) -> None:
        for file in self._files.values():
            file.close()
        for records in self._records.values():
            records.close()

    def read(self, parent: Ancestor, place: RecordPlace) -> tuple[Example, str]:
        """A record, verified by its checksums and by the digest in the index, and what is strange
        about it.
        """
        shard = parent.shards[place.shard]
        try:
            payload = (
                self._of_gzip(shard)[place.number]
                if shard.gzip
                else _framed(self._file(shard), place)
            )
        except DamagedRecordError as error:
            raise damaged_record(parent, shard, place.number, error.message) from None
        except StorageError as error:
            raise RawDataError(
                f"the parent `{parent.name}` cannot be read: {error.message}", hint=error.hint
            ) from error
        if payload is None:
            raise damaged_record(parent, shard, place.number, "its checksums do not hold")
        example, form, problem = _decoded(payload)
        if record_digest(form) != place.digest:
            why = "it is not the record that the index names"
            raise damaged_record(parent, shard, place.number, why)
        return example, problem

    def _file(self, shard: ParentShard) -> Reader:
        file = self._files.pop(shard.path, None)
        if file is None:
            file = self._raw.open(shard.path)
            if len(self._files) >= _OPEN:
                self._files.popitem(last=False)[1].close()
        self._files[shard.path] = file
        return file

    def _of_gzip(self, shard: ParentShard) -> Records:
        records = self._records.pop(shard.path, None)
        if records is None:
            index = load_index(self._raw, shard.index, blake3_hex=shard.index_blake3)
            records = located_records(self._raw, shard, index)
            if len(self._records) >= _RECORDS_OPEN:
                self._records.popitem(last=False)[1].close()
        self._records[shard.path] = records
        return records


def _decoded(payload: bytes) -> tuple[Example, bytes, str]:
    """The features of a payload, its canonical form, and why it cannot be a record of a build."""
    found = decode_fast(payload)
    if found is not None:
        features, ordered = found
        return features, payload if ordered else encode(features), ""
    try:
        features, unknown = decode_fully(payload)
    except NotAnExampleError:
        return {}, payload, "it is not a `tf.train.Example`"
    if unknown:
        return features, payload, "it has fields that `tf.train.Example` does not have"
    return features, encode(features), ""


def _framed(file: Reader, place: RecordPlace) -> bytes | None:
    """The payload of a record; None if its frame or its checksums are not what they should be."""
    frame = file.read_at(place.offset, place.length + OVERHEAD)
    payload = frame[HEADER_BYTES : HEADER_BYTES + place.length]
    footer = frame[HEADER_BYTES + place.length :]
    is_whole = len(footer) == FOOTER_BYTES and header_length(frame[:HEADER_BYTES]) == place.length
    sound = is_whole and masked_crc(payload) == int.from_bytes(footer, "little")
    return payload if sound else None


@dataclass(frozen=True, slots=True)
class _Plan:
    """The effect of the options on these parents. Picklable."""

    parents: tuple[Ancestor, ...]
    classes: Classes
    chosen: Mapping[str, str]
    """The new name of each feature that is kept."""

    @property
    def keeps_features(self) -> bool:
        known = {name for each in self.parents for name in each.features}
        return all(self.chosen.get(name) == name for name in known)


class DerivedSource(Source):
    """Versions of other datasets of a registry. See :class:`~tfrecreg.api.Source`."""

    Options: ClassVar[type[Any]] = DerivedOptions
    needs_local: ClassVar[bool] = True

    def __init__(self, raw: Readable, options: DerivedOptions) -> None:
        super().__init__(raw, options)
        self._plan: _Plan | None = None
        self._keeps_features = False
        self._reader = ParentReader(raw)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.raw, self.options), {"_plan": self._loaded()}

    def __setstate__(self, state: dict[str, _Plan]) -> None:
        self._plan = state["_plan"]
        self._keeps_features = self._plan.keeps_features

    def raw_files(self) -> Iterator[RawFile]:
        for parent in self._loaded().parents:
            for shard in parent.shards:
                yield RawFile(shard.path, stored=shard.size, decoded=shard.stream)

    def parents(self) -> Sequence[ParentVersion]:
        """The versions that it reads, for the manifest."""
        return [each.version for each in self._loaded().parents]

    def notes(self) -> Sequence[str]:
        """The parents that are yanked, one line each."""
        return [each.note for each in self._loaded().parents if each.note]

    def labels(self) -> Mapping[str, Sequence[str]]:
        plan = self._loaded()
        return renamed_labels(plan.classes.labels, plan.chosen)

    def schema(self) -> str:
        plan = self._loaded()
        return merge_schemas(plan.parents, plan.classes, plan.chosen)

    def describe(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for each in self._loaded().parents:
            records = count(sum(shard.records for shard in each.shards), "record")
            found[f"parent {each.name}"] = f"{records}, content {each.version.content[:16]}…"
        return found

    def items(self) -> Iterator[Item | Skipped | Remark]:
        deal = self.options.deal
        if self.options.stratify is not None:
            yield from deal_strata(deal, self._with_classes(self.options.stratify))
        elif deal.split:
            yield from Deal(deal).listed(self._entries())
        else:
            yield from self._entries()

    def _with_classes(self, expression: str) -> ClassListing:
        """What is listed, and the value of an expression in SQL for an item."""
        from tfrecreg.builtin.query.where import record_texts  # DuckDB, for strata alone

        parents = self._loaded().parents
        texts = [record_texts(ancestor_target(self.raw, each), expression) for each in parents]
        changed = renames("classes", self.options.classes, alone=False)

        def listing() -> Iterator[tuple[ListedEntry, str | None]]:
            for entry in self._entries():
                if not isinstance(entry, Item):
                    yield entry, None
                    continue
                place = RecordPlace.unpack(entry.state)
                text = texts[place.parent][place.shard][place.number]
                yield entry, changed.get(text or "") or text

        return listing

    def _entries(self) -> Iterator[ListedEntry]:
        plan = self._loaded()
        selection = RecordSelection(self.raw, plan.parents, plan.classes, self.options)
        keys = _Keys(plan.parents) if len(plan.parents) > 1 and not self.options.prefix else None
        found = False
        for taken in selection.taken():
            parent = plan.parents[taken.parent]
            split = parent.shards[taken.shard].split
            offsets = taken.index.offsets()
            for number in taken.numbers.tolist():
                key = taken.index.key(number)
                if keys is not None:
                    keys.add(split, key, taken.parent)
                length = int(taken.index.lengths[number])
                digest = taken.index.digests[number].tobytes()
                place = RecordPlace(
                    taken.parent, taken.shard, number, int(offsets[number]), length, digest
                )
                found = True
                yield Item(split, self._prefixed(parent, key), length, place.pack())
        for split, times in sorted(selection.left_out.items()):
            what = f"{count(times, 'record')} of classes that `classes` leaves out"
            yield Remark(split, "", "SRC103", what, times)
        if not found:
            raise RawDataError(
                "no record of the parents is selected: "
                + ", ".join(f"`{each.name}`" for each in plan.parents),
                hint="widen `where`, `sample` or `classes`; `tfrecreg query` shows what is there",
            )

    def example(self, item: Item) -> Example | Written | Skipped:
        plan = self._loaded()
        place = RecordPlace.unpack(item.state)
        example, problem = self._reader.read(plan.parents[place.parent], place)
        if problem:
            return Skipped(item.split, item.key, "SRC102", problem)
        try:
            changed, left_out = change_classes(example, plan.classes.by_parent[place.parent])
        except UnfitRecord as error:
            return Skipped(item.split, item.key, error.code, error.detail)
        if not self._keeps_features:
            changed = renamed(changed, plan.chosen)
        if not left_out:
            return changed
        what = f"{count(left_out, 'object')} of classes that `classes` leaves out"
        return Written(changed, [Remark(item.split, item.key, "SRC104", what, left_out)])

    def _loaded(self) -> _Plan:
        if self._plan is None:
            parents = tuple(map(_with_declared, find_parents(self.raw, self.options.inputs)))
            known = {name for each in parents for name in each.features}
            self._plan = _Plan(
                parents=parents,
                classes=merge_classes(parents, self.options.classes),
                chosen=choose_features(self.options.features, known),
            )
            self._keeps_features = self._plan.keeps_features
        return self._plan

    def _prefixed(self, parent: Ancestor, key: str) -> str:
        return f"{parent.dataset}/{key}" if self.options.prefix else key


class _Keys:
    """Refuses two records with one key: 16 bytes are kept of each."""

    def __init__(self, parents: Sequence[Ancestor]) -> None:
        self._parents = parents
        self._owners: dict[bytes, int] = {}

    def add(self, split: str, key: str, parent: int) -> None:
        name = f"{split}\0{key}".encode("utf-8", "surrogateescape")
        owner = self._owners.setdefault(record_digest(name), parent)
        if owner != parent:
            first, second = self._parents[owner], self._parents[parent]
            raise RawDataError(
                f"the parents `{first.name}` and `{second.name}` both have the key "
                f"`{safe(key, limit=200)}` in the split `{split}`",
                hint="--option prefix=yes puts the name of its dataset before each key",
            )


def _with_declared(parent: Ancestor) -> Ancestor:
    """A parent whose features include those that its schema declares, and no record has."""
    declared = (each.name for each in parse_schema(parent.schema, parent.name).features)
    return replace(parent, features=tuple(dict.fromkeys((*parent.features, *declared))))
