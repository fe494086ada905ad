"""The `items` validator: matches records with the items of the raw data.

For the records of one shard, a visitor computes the digests of the images and the digests of the
names. The visitor writes these digests to disk as sorted runs.

Records and items match if their rows have equal digests. Digests are compared range by range.

Memory holds one range, and a few bytes per record and per item.

A record is identified by the digest of its image and by its names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.builtin.validators.duplicate_matches import (
    Rows,
    Run,
    RunBuilder,
    RunFolder,
    merged_rows,
)
from tfrecreg.core.check.scan.indexes import index_of
from tfrecreg.core.check.scan.interface import RawItems, Shard, Target, Validator, Visitor
from tfrecreg.core.check.scan.tally import Tally
from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.example.model import Example, Kind
from tfrecreg.core.records.batch import RecordBatch, StreamEnd
from tfrecreg.core.records.hashing import DIGEST_BYTES
from tfrecreg.core.records.index import Index
from tfrecreg.core.schema.image_features import ImageFeatures
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.codes import SRC017, SRC090, SRC091
from tfrecreg.core.values.findings import MAX_LOCATIONS, Code, Finding, Location, Measure
from tfrecreg.core.values.text import safe

NAMES = ("image/filename", "image/source_id", "image/file_name", "filename", "file_name", "key")
"""Features that may contain the name of an item. The most reliable one comes first."""
WAYS = 3
"""Ways of naming, in the order in which they are tried: a path, the last part of a path, an id."""


def names_of(example: Example | None, key: str | None) -> Iterator[tuple[int, bytes]]:
    """Yield a pair for each name of a record: the way of naming (from 0 to `WAYS` - 1), and the
    digest of the name.

    Numbers become text, so the number 7 and the text "7" are equal names. Names are case-sensitive.
    """
    found = []
    for name in NAMES:
        feature = example.get(name) if example is not None else None
        if feature is None or feature.count != 1 or feature.kind is Kind.FLOAT:
            continue
        value = feature.values[0]
        text = str(value).encode() if isinstance(value, int) else bytes(value)
        found.append((name, text))
    if key is not None:
        found.append(("key", key.encode("utf-8", "surrogateescape")))
    for name, text in found:
        text = text.replace(b"\\", b"/")
        if not text:
            continue
        if name == "image/source_id":
            yield 2, _digest(text)
        yield 0, _digest(text)
        yield 1, _digest(text.rpartition(b"/")[2])


def _digest(name: bytes) -> bytes:
    return blake3(name).digest(DIGEST_BYTES)


@dataclass(slots=True)
class ItemRows:
    """The rows of one shard, or of all items."""

    records: int = 0
    """Number of records with rows. In the rows, these records have the numbers from 0."""
    skipped: list[tuple[int, int]] = field(default_factory=list)
    """Where the shard has records without rows: the number of records with rows before this place,
    and the number of records without rows up to this place."""
    images: list[Run] = field(default_factory=list)
    """Digests of images."""
    names: list[list[Run]] = field(default_factory=list)
    """Digests of names. Each way of naming has its own list."""
    unheld: int = 0
    """Number of records too large for memory."""


class RowBuilder:
    """Collects the rows of records, or of the examples of items."""

    def __init__(self, storage: Storage | None) -> None:
        self._images = RunBuilder(storage, distinct=False)
        self._names = [RunBuilder(storage, distinct=False) for _ in range(WAYS)]
        self._features = ImageFeatures()
        self._records = 0
        self._skipped = [(0, 0)]

    def add(self, example: Example | None, key: str | None, number: int, offset: int) -> None:
        """Add the record with this number; `offset` is its place in the stream."""
        skipped, number = number - self._records, self._records
        self._records += 1
        if skipped != self._skipped[-1][1]:
            self._skipped.append((number, skipped))
        if example is not None:
            digest = raw_image_digest(example, self._features)
            if digest is not None:
                self._images.add(digest, number, offset)
        seen = set()
        for way, name in names_of(example, key):
            if (way, name) not in seen:
                seen.add((way, name))
                self._names[way].add(name, number, offset)

    def close(self) -> ItemRows:
        names = [each.close()[0] for each in self._names]
        return ItemRows(self._records, self._skipped, self._images.close()[0], names)


def raw_image_digest(example: Example, features: ImageFeatures) -> bytes | None:
    """A digest of the bytes of a record's images; None without an image."""
    values = [value for name in features.of(example) for value in example[name].values]
    if not values:
        return None
    digests = [blake3(value).digest(DIGEST_BYTES) for value in values]
    return digests[0] if len(digests) == 1 else blake3(b"".join(digests)).digest(DIGEST_BYTES)


class ItemsVisitor(Visitor):
    """Collects the rows of one shard."""

    def __init__(self, storage: Storage | None, shard: Shard) -> None:
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
        del end
        rows = self._rows.close()
        rows.unheld = self._unheld
        return rows


_Numbers = npt.NDArray[np.int64]
NOT, BY_BYTES, BY_NAME, BY_NAME_ALONE = 0, 1, 2, 3
"""How a record or an item was matched. `NOT` means not at all. `BY_BYTES` means by the bytes of its
image. `BY_NAME` means by name, although both images differ. `BY_NAME_ALONE` means by name, because
the record or the item has no image.
"""


_Digests = npt.NDArray[np.void]


class Matching:
    """Matches records with items. Items have the numbers that follow those of the records."""

    def __init__(self, storage: Storage, parts: Sequence[ItemRows], items: ItemRows) -> None:
        self._storage = storage
        self._parts = (*parts, items)
        self._starts = np.cumsum([0, *(part.records for part in self._parts)], dtype=np.int64)
        self._total = int(self._starts[-2])
        self._how = np.zeros(int(self._starts[-1]), np.uint8)
        self.records = self._how[: self._total]
        """For each record with rows, how it was matched. Records are in the order of the shards."""
        self.items = self._how[self._total :]
        """How each item was matched, in the order of the source."""
        self._has_image = np.zeros(len(self._how), np.bool_)

    def run(self) -> None:
        """Match by bytes, then match the remaining records by names."""
        for digests, numbers in self._merged([part.images for part in self._parts]):
            is_item = numbers >= self._total
            self._has_image[numbers] = True
            for some, others in ((is_item, ~is_item), (~is_item, is_item)):
                self._how[numbers[some][np.isin(digests[some], digests[others])]] = BY_BYTES
        for way in range(WAYS):
            for digests, numbers in self._merged([part.names[way] for part in self._parts]):
                self._match_names(digests, numbers)

    def place(self, record: int) -> tuple[int, int]:
        """Number of the shard that holds a record, and the record's number there."""
        shard = int(np.searchsorted(self._starts, record, side="right")) - 1
        record -= int(self._starts[shard])
        skipped = self._parts[shard].skipped
        return shard, record + max(lost for before, lost in skipped if before <= record)

    def _merged(self, runs: Sequence[Sequence[Run]]) -> Iterator[tuple[_Digests, _Numbers]]:
        """The digests of records and items, range by range, with the numbers of their rows."""
        for rows in merged_rows(self._storage, runs):
            yield _digests(rows), self._starts[rows["shard"]] + rows["record"]

    def _match_names(self, digests: _Digests, numbers: _Numbers) -> None:
        """Match an unmatched record with an unmatched item of the same name. No other item and no
        other unmatched record may have that name.
        """
        is_item = numbers >= self._total
        free = ~is_item & (self._how[numbers] == NOT)
        ours, records = _once(digests[free], numbers[free])
        theirs, items = _once(digests[is_item], numbers[is_item])
        _, one, other = np.intersect1d(ours, theirs, return_indices=True)
        pairs = np.stack((records[one], items[other]))
        pairs = pairs[:, self._how[pairs[1]] == NOT]
        both = self._has_image[pairs].all(axis=0)
        self._how[pairs] = np.where(both, BY_NAME, BY_NAME_ALONE)


def _digests(rows: Rows) -> _Digests:
    """The digests of rows, each as one value."""
    halves = np.stack((rows["high"], rows["low"]), axis=1).astype(">u8")
    digests: _Digests = halves.view("V16").ravel()
    return digests


def _once(digests: _Digests, numbers: _Numbers) -> tuple[_Digests, _Numbers]:
    """The rows whose digest occurs only once."""
    _, first, counts = np.unique(digests, return_index=True, return_counts=True)
    alone = first[counts == 1]
    return digests[alone], numbers[alone]


class ItemsValidator(Validator):
    """Finds items of the raw data that have no record, and records that have no item.

    Rows are sorted on disk, in the folder for temporary files (`TMPDIR`). They take 32 bytes per
    image and per name. Memory holds a few bytes per record and per item.
    """

    name = "items"
    codes: Sequence[Code] = (SRC017, SRC090, SRC091)

    def __init__(self) -> None:
        self._folder: RunFolder | None = None

    def applies(self, target: Target) -> str | None:
        if target.raw_items is None:
            return "there is no source of items: name one with --source and --raw"
        return None if target.shards else "there are no shards"

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], ItemsVisitor]:  # noqa: ARG002 - it has no options
        self._folder = RunFolder(self.name)
        return partial(ItemsVisitor, self._folder.storage)

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, ItemRows]]
    ) -> Iterator[Finding | Measure]:
        assert target.raw_items is not None  # else it does not apply
        assert self._folder is not None
        try:
            yield from _compare(target, target.raw_items, self._folder.storage, list(parts))
        finally:
            self._folder.clear()


def _compare(
    target: Target, raw: RawItems, storage: Storage, parts: Sequence[tuple[Shard, ItemRows]]
) -> Iterator[Finding | Measure]:
    items, skipped = _rows_of_items(raw, storage)
    matching = Matching(storage, [part for _, part in parts], items)
    matching.run()
    tally = Tally()
    shards = [shard for shard, _ in parts]
    _add_records(tally, matching, shards, target)
    _add_items(tally, matching, raw)
    yield from tally.findings(target.dataset)
    yield from _measures(matching, raw, skipped, sum(part.unheld for _, part in parts))


def _rows_of_items(raw: RawItems, storage: Storage) -> tuple[ItemRows, Counter[str]]:
    """The rows of the items, and how many items the source skips for each code."""
    builder, skipped, count = RowBuilder(storage), Counter[str](), 0
    for item in raw.items():
        if item.payload is None:
            skipped[item.code] += 1
            continue
        builder.add(decode_or_none(item.payload), item.key, count, 0)
        count += 1
    return builder.close(), skipped


def _add_records(tally: Tally, matching: Matching, shards: Sequence[Shard], target: Target) -> None:
    of = f"`{safe(target.raw_items.source if target.raw_items else '')}`"
    strange = f"no item of {of} has its image, and no unmatched item has its name"
    differs = f"its image differs from the image of the item with the same name in {of}"
    for code, how, message in ((SRC091, NOT, strange), (SRC017, BY_NAME, differs)):
        found = np.flatnonzero(matching.records == how)
        places = []
        for each in found[:MAX_LOCATIONS].tolist():
            at, record = matching.place(each)
            split, shard = shards[at].split or None, shards[at].name
            places.append(Location(split=split, shard=shard, record=record))
        tally.add_places(code, message, places, len(found))


def _add_items(tally: Tally, matching: Matching, raw: RawItems) -> None:
    """Name the first items without a record. The source lists its items again for this."""
    missing = np.flatnonzero(matching.items == NOT)
    wanted = set(missing[:MAX_LOCATIONS].tolist())
    places: list[Location] = []
    if wanted:
        made = (item for item in raw.items() if item.payload is not None)
        chosen = (item for number, item in enumerate(made) if number in wanted)
        places = [Location(split=each.split, key=each.key) for each in islice(chosen, len(wanted))]
    message = f"an item of `{safe(raw.source)}` has no record"
    tally.add_places(SRC090, message, places, len(missing))


def _measures(
    matching: Matching, raw: RawItems, skipped: Counter[str], unheld: int
) -> Iterator[Measure]:
    items = Counter(matching.items.tolist())
    strange, records = int((matching.records == NOT).sum()), len(matching.records) + unheld
    found = {
        "items": len(matching.items),
        "by_bytes": items[BY_BYTES],
        "by_name": items[BY_NAME] + items[BY_NAME_ALONE],
        "other_bytes": items[BY_NAME],
        "without_record": items[NOT],
        "records": records,
        "records_without_item": strange,
        "skipped_by_source": sum(skipped.values()),
        "unheld": unheld,
    }
    text = f"{len(matching.items):,} of `{safe(raw.source)}`: {items[BY_BYTES]:,} found by bytes"
    for count, what in (
        (items[BY_NAME_ALONE], "by name"),
        (items[BY_NAME], "by name with different bytes"),
        (items[NOT], "without a record"),
        (sum(skipped.values()), "more that the source skips"),
        (unheld, "records too large to compare"),
    ):
        if count:
            text += f", {count:,} {what}"
    text += f"; {strange:,} of {records:,} records hold no item"
    yield Measure("items.matched", found, text)
    if skipped:
        said = ", ".join(f"{count:,} of {code}" for code, count in sorted(skipped.items()))
        yield Measure("items.skipped", dict(sorted(skipped.items())), said)
