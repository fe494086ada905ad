"""The images and names of the records of one shard, written to disk as sorted runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from blake3 import blake3

from tfrecreg.builtin.validators.duplicates.sorted_runs import Run, RunBuilder
from tfrecreg.builtin.validators.items.names import WAYS, names_of
from tfrecreg.core.check.scan.indexes import index_of
from tfrecreg.core.check.scan.interface import Shard, Visitor
from tfrecreg.core.example.model import Example
from tfrecreg.core.records.batch import RecordBatch, StreamEnd
from tfrecreg.core.records.digests import DIGEST_BYTES
from tfrecreg.core.records.index import Index
from tfrecreg.core.schema.roles.image_features import ImageFeatures
from tfrecreg.core.storage.interface import Storage


@dataclass(slots=True)
class ItemRows:
    """The rows of a shard, or of the items."""

    records: int = 0
    images: list[Run] = field(default_factory=list)
    """Digests of images."""
    names: list[list[Run]] = field(default_factory=list)
    """Digests of names, by the way of naming."""
    unheld: int = 0
    """Number of records too large for memory."""


class RowBuilder:
    """Takes records, or the examples of items, one after the other."""

    def __init__(self, storage: Storage | None) -> None:
        self._images = RunBuilder(storage, distinct=False)
        self._names = [RunBuilder(storage, distinct=False) for _ in range(WAYS)]
        self._features = ImageFeatures()

    def add(self, example: Example | None, key: str | None, number: int, offset: int) -> None:
        """Add a record by its number; `offset` is its place."""
        if example is not None:
            digest = raw_image_digest(example, self._features)
            if digest is not None:
                self._images.add(digest, number, offset)
        seen = set()
        for way, name in names_of(example, key):
            if (way, name) not in seen:
                seen.add((way, name))
                self._names[way].add(name, number, offset)

    def close(self, records: int) -> ItemRows:
        """All rows."""
        names = [each.close()[0] for each in self._names]
        return ItemRows(records, self._images.close()[0], names)


def raw_image_digest(example: Example, features: ImageFeatures) -> bytes | None:
    """A digest of the bytes of the images of a record; None without one."""
    values = [value for name in features.of(example) for value in example[name].values]
    if not values:
        return None
    digests = [blake3(value).digest(DIGEST_BYTES) for value in values]
    return digests[0] if len(digests) == 1 else blake3(b"".join(digests)).digest(DIGEST_BYTES)


class ItemsVisitor(Visitor):
    """Collects the rows of one shard."""

    def __init__(self, storage: Storage | None, shard: Shard) -> None:
        # A worker on another machine does not share a folder with the parent.
        if storage is not None and storage.stat("") is None:
            storage = None
        self._rows = RowBuilder(storage)
        self._index: Index | None = index_of(shard) if shard.index is not None else None
        self._unheld = 0

    def batch(self, batch: RecordBatch) -> None:
        if not batch.whole:
            self._unheld += len(batch)
            return
        for position, example in enumerate(batch.examples):
            number = batch.first + position
            key = None
            if self._index is not None and number < len(self._index):
                key = self._index.key(number)
            self._rows.add(example, key, number, batch.offsets[position])

    def close(self, end: StreamEnd) -> ItemRows:
        rows = self._rows.close(end.records)
        rows.unheld = self._unheld
        return rows
