"""The fingerprints of one shard, spilled as sorted runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from tfrecreg.index import Index
from tfrecreg.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.scan.indexes import index_of
from tfrecreg.scan.interface import Shard
from tfrecreg.storage import Storage
from tfrecreg.validators.duplicates.contradictions import add_labels
from tfrecreg.validators.duplicates.fingerprint import (
    Fingerprint,
    PictureFingerprint,
    feature_digest,
    key_digest,
)
from tfrecreg.validators.duplicates.options import DuplicatesOptions
from tfrecreg.validators.duplicates.part import DuplicatesPart
from tfrecreg.validators.duplicates.runs import RunBuilder
from tfrecreg.validators.tables import tables_of
from tfrecreg.validators.values import PictureFeatures

__all__ = ["DuplicatesVisitor"]


class DuplicatesVisitor:
    """Takes a fingerprint of every record of one shard.

    Args:
        options: what is compared.
        pictures: features that hold pictures, as the schema has them.
        storage: where runs are written; None to hand them back in the part.
        shard: the shard.
        labels: features that may be the label of a picture, the likeliest first.
    """

    def __init__(
        self,
        options: DuplicatesOptions,
        pictures: Sequence[str],
        storage: Storage | None,
        shard: Shard,
        labels: Sequence[str] = (),
    ) -> None:
        # A worker on another machine shares no folder with the parent.
        if storage is not None and storage.stat("") is None:
            storage = None
        self._part = DuplicatesPart()
        found = PictureFeatures(tuple(pictures))
        self._pictures = PictureFingerprint(found, pixels=options.pixels)
        self._fingerprint: Fingerprint = self._pictures
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
        pictured = self._pictures.pictured
        digests = self._digests(batch)
        found = [position for position, digest in enumerate(digests) if digest is not None]
        self._runs.extend(
            b"".join(digest for digest in digests if digest is not None),
            [batch.first + position for position in found],
            [batch.offsets[position] for position in found],
        )
        self._part.compared += len(found)
        if self._pictures.pictured > pictured or self._fingerprint is not self._pictures:
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
            if self._fingerprint is self._pictures:
                found = self._pictures.of_table(tables, table)
            if found is None:
                unread += table.positions.tolist()
                continue
            for position, digest in zip(table.positions.tolist(), found, strict=True):
                digests[position] = digest
        for position, example in tables.examples():
            digests[position] = self._fingerprint(batch, position, example)
        for position in unread:
            digests[position] = self._fingerprint(batch, position, tables.example(position))
        return digests

    def fault(self, fault: Fault) -> None:
        """What is damaged is no record to compare."""

    def close(self, end: StreamEnd) -> DuplicatesPart:
        del end
        part = self._part
        part.runs, part.pairs = self._runs.close()
        part.groups, _ = self._groups.close()
        part.labelled, _ = self._labelled.close()
        part.pictured = self._pictures.pictured
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
            example = tables_of(batch).example(position)
            return feature_digest(self._group, batch, position, example)
        number = batch.first + position
        if self._pattern is None or self._index is None or number >= len(self._index):
            return None
        return key_digest(self._pattern, self._index.key(number))
