"""Counts the kinds of a shard's payloads, and arranges the records of a batch in tables. All
validators share the tables and digests of a batch.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.core.check.scan.interface import Shard, Target
from tfrecreg.core.example.columns import Column, Slot
from tfrecreg.core.example.kinds import PayloadKind
from tfrecreg.core.example.model import Example, Feature, Kind
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.records.batch_columns import divide_batch
from tfrecreg.core.records.hashing import DIGEST_BYTES
from tfrecreg.core.registry.manifest import adopted_kind
from tfrecreg.core.values.findings import MAX_LOCATIONS, Location
from tfrecreg.core.values.text import hex_start

if TYPE_CHECKING:
    from tfrecreg.core.schema.definition import Schema

NOT_AN_EXAMPLE = "the payload should be a tf.train.Example"
"""The message of `SCH001`."""

TOO_LARGE = "too_large"
"""Stands for the unknown kind of records that are too large for memory."""

_SHOWN = 8
"""Number of bytes of a payload that a finding shows."""


@dataclass(slots=True)
class PayloadCounts:
    """Counts of the payloads of a shard. Plain data, small."""

    kinds: dict[str, int] = field(default_factory=dict)
    """Number of payloads by value of :class:`PayloadKind`, or :data:`TOO_LARGE`."""
    others: list[Location] = field(default_factory=list)
    """The first records that are not Examples."""

    def add(self, shard: Shard, batch: RecordBatch) -> None:
        """Count a batch of the shard."""
        if not batch.whole:
            self.kinds[TOO_LARGE] = self.kinds.get(TOO_LARGE, 0) + len(batch)
            return
        for position, kind in enumerate(batch.kinds):
            if kind is not None:
                self.count(shard, batch, position, kind)

    def count(self, shard: Shard, batch: RecordBatch, position: int, kind: PayloadKind) -> None:
        """Count the record at `position` of a batch as `kind`."""
        self.kinds[kind.value] = self.kinds.get(kind.value, 0) + 1
        if kind is not PayloadKind.EXAMPLE and len(self.others) < MAX_LOCATIONS:
            self.others.append(other_location(shard, batch, position, kind))


def other_location(shard: Shard, batch: RecordBatch, position: int, kind: PayloadKind) -> Location:
    """The location of a record that is not an Example, with its actual kind."""
    start, length = batch.starts[position], batch.lengths[position]
    what = {PayloadKind.SEQUENCE_EXAMPLE: "a SequenceExample, ", PayloadKind.EVENT: "an event, "}
    head = hex_start(batch.memory[start : start + min(length, _SHOWN + 1)], _SHOWN)
    found = f"found {what.get(kind, '')}{length} byte{'' if length == 1 else 's'}: {head}"
    return shard.locate(batch, position, detail=found if length else "found no bytes")


def mostly_examples(kinds: Mapping[str, int]) -> bool:
    """Whether more than half of the records of known kind are Examples. If so, a record of another
    kind is probably a mistake. A short text can look like an Example, and so can a
    SequenceExample without lists.
    """
    known = sum(kinds.values()) - kinds.get(TOO_LARGE, 0)
    return 2 * kinds.get(PayloadKind.EXAMPLE.value, 0) > known


def no_schema_fits(target: Target, *, sequences: bool = False) -> str:
    """The reason why no schema can describe the records of `target`. Empty if the records may be
    Examples. With `sequences`, also empty if the records may be SequenceExamples. Records of files
    without a manifest count as Examples.
    """
    kind = adopted_kind(target.manifest)
    if kind is PayloadKind.EXAMPLE or (sequences and kind is PayloadKind.SEQUENCE_EXAMPLE):
        return ""
    return f"not applicable to {kind.plural}: a schema describes Examples"


def target_schema(target: Target) -> Schema:
    """The schema of `target`, parsed. Without a schema, one that declares nothing."""
    from tfrecreg.core.schema.proto import parse_schema  # few callers need it without a schema

    return parse_schema(target.schema or "", target.schema_path or "schema")


def described(kinds: Mapping[str, int]) -> str:
    """The counts in words: ``10 Examples, 3 SequenceExamples``."""
    known = [each.counted(kinds[each.value]) for each in PayloadKind if kinds.get(each.value)]
    large = kinds.get(TOO_LARGE)
    return ", ".join([*known, *([f"{large:,} too large to identify"] if large else [])])


_Ints = npt.NDArray[np.int64]


class Table(NamedTuple):
    """A table of some records of a batch. All records of a table have the same layout.

    In each record, a feature has one value. A feature of floats may have several, but the same
    number in all records.
    """

    positions: _Ints
    """Positions in the batch, ascending."""
    sample: Example
    """One of the records, decoded."""
    columns: Mapping[str, tuple[Slot, Column]]
    """Columns by feature, one row per record."""


class Tables:
    """The tables of a batch. Records that fit in no table are decoded one by one."""

    def __init__(self, batch: RecordBatch) -> None:
        # The batch refers to its tables. A reference back would keep its memory until a collection.
        self._batch: RecordBatch = weakref.proxy(batch)
        self._digests: dict[tuple[int, str], list[bytes]] = {}
        groups, rest = divide_batch(batch)
        self.tables = [Table(*each) for each in groups]
        self.rest = rest
        """Positions of the records that are not in a table."""

    def examples(self) -> Iterator[tuple[int, Example | None]]:
        """Position and content of the records that are not in a table."""
        if len(self.rest) == len(self._batch):
            yield from enumerate(self._batch.examples)
            return
        for position in self.rest:
            yield position, self._batch.example(position)

    def values(self, table: Table, name: str) -> Iterator[bytes]:
        """The values of a feature of bytes in a table, row by row."""
        memory = self._batch.memory
        _, column = table.columns[name]
        for start, stop in zip(column.start.tolist(), column.stop.tolist(), strict=True):
            yield memory[start:stop]

    def digests(self, table: Table, name: str) -> list[bytes]:
        """The blake3 digest (16 bytes) of each value in :meth:`values`, made once per batch."""
        key = id(table), name
        if key not in self._digests:
            self._digests[key] = [
                blake3(value).digest(DIGEST_BYTES) for value in self.values(table, name)
            ]
        return self._digests[key]


def value_digest(batch: RecordBatch, position: int, name: str, feature: Feature) -> bytes:
    """The blake3 digest (16 bytes) of a bytes feature's values, computed once per batch.

    The digest of a single value covers only its bytes, not its length.
    """
    known: dict[int, bytes] = batch.shared.setdefault((value_digest, name), {})
    digest = known.get(position)
    if digest is None:
        digest = known[position] = _digest(feature)
    return digest


def _digest(feature: Feature) -> bytes:
    if feature.count == 1:
        return blake3(feature.values[0]).digest(DIGEST_BYTES)
    hasher = blake3()
    for value in feature.values:
        hasher.update(len(value).to_bytes(8, "little"))
        hasher.update(value)
    return hasher.digest(DIGEST_BYTES)


def tables_of(batch: RecordBatch) -> Tables:
    """The tables of a batch whose records are in memory. Each call returns the same object."""
    known: Tables | None = batch.shared.get(tables_of)
    if known is None:
        known = batch.shared[tables_of] = Tables(batch)
    return known


def holds_bytes(table: Table, name: str) -> bool:
    """Whether a table has a feature of bytes with that name."""
    return name in table.columns and table.columns[name][0].kind is Kind.BYTES


def holds_integers(table: Table, name: str) -> bool:
    """Whether a table has a feature of integers with that name."""
    return name in table.columns and table.columns[name][0].kind is Kind.INT64
