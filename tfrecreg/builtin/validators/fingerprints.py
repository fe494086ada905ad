"""Writes the fingerprints of one shard's records to disk as sorted runs.

A fingerprint is 16 bytes of the digest of a feature, a record's images or a whole record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any

import msgspec
from blake3 import blake3
from msgspec import Meta

from tfrecreg.builtin.validators.duplicate_matches import (
    Pair,
    Run,
    RunBuilder,
    add_labels,
)
from tfrecreg.core.check.scan.indexes import index_of
from tfrecreg.core.check.scan.interface import Shard, Visitor
from tfrecreg.core.example.decode import canonical
from tfrecreg.core.example.model import Example, Kind, encode
from tfrecreg.core.images.decoder import Undecodable, digest_pixels
from tfrecreg.core.images.model import ImageError
from tfrecreg.core.images.read import read_header
from tfrecreg.core.records.batch import RecordBatch, StreamEnd
from tfrecreg.core.records.hashing import DIGEST_BYTES, record_digest
from tfrecreg.core.records.index import Index
from tfrecreg.core.schema.image_features import ImageFeatures
from tfrecreg.core.schema.payload_kinds import Table, Tables, tables_of, value_digest
from tfrecreg.core.storage.interface import Storage

_Text = Annotated[str, Meta(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicatesOptions:
    """Options in `limits.duplicates` of a gate.

    By default, the bytes of images are compared. If a record has no image, the whole record is
    compared.
    """

    feature: _Text | None = None
    """The feature to compare, of any kind."""
    pixels: bool = False
    """Whether to decode images and compare their pixels. Needs the extra `images`."""
    group: _Text | None = None
    """A feature, such as the patient or video. Each of its values may be in only one split."""
    group_key: _Text | None = None
    """Like `group`, but a regular expression finds the value in the record key. The value is the
    expression's first group, or the whole match without a group. Requires the indexes of a build.
    """
    most_shared: Annotated[float, Meta(ge=0, le=1)] = 0.01
    """DUP002 is an error if two splits have more than this share of the smaller split's distinct
    records in common.
    """

    def __post_init__(self) -> None:
        if self.group is not None and self.group_key is not None:
            raise ValueError("cannot have both `group` and `group_key`")
        if self.group_key is not None:
            try:
                re.compile(self.group_key)
            except re.error as error:
                raise ValueError(f"`group_key` is not a regular expression: {error}") from None


_MOST_KEPT = 1 << 19
"""`check --cached` keeps at most this many rows per shard, and as many rows with labels. Shards with
more rows are read again.
"""


@dataclass(slots=True)
class DuplicatesPart:
    """The result for one shard."""

    compared: int = 0
    """Number of records with a fingerprint."""
    with_image: int = 0
    """Number of records whose fingerprint is that of an image."""
    unheld: int = 0
    """Number of records too large for memory."""
    ungrouped: int = 0
    """Number of records without a group."""
    runs: list[Run] = field(default_factory=list)
    """Rows of fingerprints."""
    pairs: list[Pair] = field(default_factory=list)
    """Records that equal an earlier record of the same run. Only the first ones are kept."""
    groups: list[Run] = field(default_factory=list)
    """Rows of groups."""
    labelled: list[Run] = field(default_factory=list)
    """Rows of images with their labels: see :func:`add_labels`."""

    def with_runs(self, change: Callable[[Run], Run]) -> DuplicatesPart:
        """A copy of the part. Each run of the copy is the result of `change`."""
        runs, groups, labelled = (
            [change(run) for run in each] for each in (self.runs, self.groups, self.labelled)
        )
        return replace(self, runs=runs, groups=groups, labelled=labelled)


class DuplicatesCodec:
    """Encodes a part together with all rows of its runs. This is a
    :class:`tfrecreg.core.check.scan.interface.PartCodec`."""

    def __init__(self) -> None:
        self.storage: Storage | None = None
        """The folder of the runs, once it exists."""

    def pack(self, part: Any) -> bytes | None:
        """The part as bytes; None if it is too large for the cache."""
        for runs in ((*part.runs, *part.groups), part.labelled):
            if sum(run.rows for run in runs) > _MOST_KEPT:
                return None
        whole = part.with_runs(lambda run: run.at_hand(self.storage))
        return msgspec.msgpack.encode(whole)

    def unpack(self, data: bytes) -> DuplicatesPart:
        part = msgspec.msgpack.decode(data, type=DuplicatesPart)
        return part.with_runs(lambda run: run.stored(self.storage))


Fingerprint = Callable[[RecordBatch, int, Example | None], bytes | None]
"""Returns the fingerprint of the record at a position of a batch, given its example or None.
Returns None if the record lacks the compared values.
"""


def feature_digest(
    name: str, batch: RecordBatch, position: int, example: Example | None
) -> bytes | None:
    """A :data:`Fingerprint` of one feature of any kind."""
    feature = example.get(name) if example is not None else None
    if feature is None or not feature.count:
        return None
    if feature.kind is Kind.BYTES:
        return value_digest(batch, position, name, feature)
    return blake3(encode({name: feature})).digest(DIGEST_BYTES)


class ImageFingerprint:
    """A :data:`Fingerprint` of a record's images, or of the whole record if it has no images."""

    def __init__(self, images: ImageFeatures, *, pixels: bool) -> None:
        self._images = images
        self._pixels = pixels
        self.with_image = 0
        """Number of records with an image, so far."""

    def of_table(self, tables: Tables, table: Table) -> list[bytes] | None:
        """The fingerprints of all records of a table; None if records must be read one by one."""
        names = self._images.of(table.sample)
        if self._pixels or len(names) != 1:
            return None
        self.with_image += len(table.positions)
        return tables.digests(table, names[0])

    def __call__(self, batch: RecordBatch, position: int, example: Example | None) -> bytes:
        if example is None:
            return record_digest(batch.payload(position))  # the payload is its only form
        names = self._images.of(example)
        if not names:
            return record_digest(canonical(batch.payload(position)))
        self.with_image += 1
        if self._pixels:
            values = [value for name in names for value in example[name].values]
            digests = [_pixels(value) for value in values]
        else:
            digests = [value_digest(batch, position, name, example[name]) for name in names]
        return digests[0] if len(digests) == 1 else blake3(b"".join(digests)).digest(DIGEST_BYTES)


def _pixels(value: bytes) -> bytes:
    """The digest of an image's pixels, or of its bytes if it cannot be decoded."""
    try:
        return digest_pixels(value, read_header(value))
    except (ImageError, Undecodable):
        return blake3(value).digest(DIGEST_BYTES)


def group_of(pattern: re.Pattern[str], key: str) -> str | None:
    """The group that `pattern` finds in a key. None if the pattern does not match."""
    found = pattern.search(key)
    if found is None:
        return None
    return found[1] if pattern.groups else found[0]


class DuplicatesVisitor(Visitor):
    """Computes the fingerprints of the records of one shard."""

    def __init__(
        self,
        options: DuplicatesOptions,
        images: Sequence[str],
        storage: Storage | None,
        shard: Shard,
        labels: Sequence[str] = (),
    ) -> None:
        self._part = DuplicatesPart()
        found = ImageFeatures(tuple(images))
        self._images = ImageFingerprint(found, pixels=options.pixels)
        self._fingerprint: Fingerprint = self._images
        if options.feature is not None:
            self._fingerprint = partial(feature_digest, options.feature)
        self._runs = RunBuilder(storage)
        self._group = options.group
        self._pattern = re.compile(options.group_key) if options.group_key is not None else None
        self._index: Index | None = index_of(shard) if self._pattern is not None else None
        self._groups = RunBuilder(storage)
        self._labels = labels
        self._labelled = RunBuilder(storage)

    def batch(self, batch: RecordBatch) -> None:
        if not batch.whole:
            self._part.unheld += len(batch)
            return
        with_image = self._images.with_image
        digests = self._digests(batch)
        found = [position for position, digest in enumerate(digests) if digest is not None]
        self._runs.extend(
            b"".join(digest for digest in digests if digest is not None),
            [batch.first + position for position in found],
            [batch.offsets[position] for position in found],
        )
        self._part.compared += len(found)
        if self._images.with_image > with_image or self._fingerprint is not self._images:
            add_labels(self._labelled, batch, digests, self._labels)
        if self._group is not None or self._pattern is not None:
            self._take_groups(batch)

    def _digests(self, batch: RecordBatch) -> list[bytes | None]:
        """The fingerprints of a batch, in the order of its records."""
        tables = tables_of(batch)
        digests: list[bytes | None] = [None] * len(batch)
        unread: list[int] = []
        for table in tables.tables:
            found = None
            if self._fingerprint is self._images:
                found = self._images.of_table(tables, table)
            if found is None:
                unread += table.positions.tolist()
                continue
            for position, digest in zip(table.positions.tolist(), found, strict=True):
                digests[position] = digest
        for position, example in tables.examples():
            digests[position] = self._fingerprint(batch, position, example)
        for position in unread:
            digests[position] = self._fingerprint(batch, position, batch.example(position))
        return digests

    def close(self, end: StreamEnd) -> DuplicatesPart:
        del end
        part = self._part
        part.runs, part.pairs = self._runs.close()
        part.groups, _ = self._groups.close()
        part.labelled, _ = self._labelled.close()
        part.with_image = self._images.with_image
        return part

    def _take_groups(self, batch: RecordBatch) -> None:
        for position in range(len(batch)):
            digest = self._group_of(batch, position)
            if digest is None:
                self._part.ungrouped += 1
            else:
                self._groups.add(digest, batch.first + position, batch.offsets[position])

    def _group_of(self, batch: RecordBatch, position: int) -> bytes | None:
        if self._group is not None:
            example = batch.example(position)
            return feature_digest(self._group, batch, position, example)
        number = batch.first + position
        if self._pattern is None or self._index is None or number >= len(self._index):
            return None
        group = group_of(self._pattern, self._index.key(number))
        if group is None:
            return None
        return blake3(group.encode("utf-8", "surrogateescape")).digest(DIGEST_BYTES)
