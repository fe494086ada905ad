"""Gives consecutive numbers to records of several shards, and reads one or more records at once."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.core.records.batch_columns import digests_of
from tfrecreg.core.records.framing import OVERHEAD
from tfrecreg.core.records.index import Index, load_index
from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.records.reading.offsets import RecordOffsets, find_offsets, kept_offsets
from tfrecreg.core.storage.interface import Entry, Readable
from tfrecreg.core.storage.raw import asked, storage_at
from tfrecreg.core.values.errors import (
    DamagedRecordError,
    ManifestError,
    StorageError,
    TransferError,
)
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.core.storage.far_files import FarFile, FarFiles

_OPEN = 64
"""Maximum number of open shards; processes may often open no more than 256 or 1,024 files."""
_BLOCK_BYTES = 1 << 20
_BLOCK_RECORDS = 1 << 10


class ShardPlace(NamedTuple):
    """A shard, with the size and time that it had when the data source was made."""

    root: str
    """Root of the storage: an absolute path or a URL."""
    path: str
    name: str
    """The shard's name in messages; not escaped."""
    split: str
    index_path: str
    """Path of the shard's own index in `root`; empty without an index."""
    records: int
    """Number of records, damaged ones included."""
    size: int
    mtime_ns: int
    stream_blake3: str = ""
    """Hex digest of the decompressed stream, from the manifest; empty without a manifest."""
    index_blake3: str = ""
    """Hex digest of the shard's index, from the manifest."""

    def load_index(self) -> Index:
        """Read the shard's own index."""
        return load_index(storage_at(self.root), self.index_path, blake3_hex=self.index_blake3)


class ShardRecords:
    """The payloads of shards, numbered across shards. Safe for threads and after a fork."""

    def __init__(self, places: Sequence[ShardPlace], far: FarFiles | None = None) -> None:
        self.places = tuple(places)
        self.far = far
        self._starts = [0, *accumulate(each.records for each in self.places)]
        self._ends = np.array(self._starts[1:], np.int64)
        self._offsets: dict[int, RecordOffsets] = {}
        self._keys: dict[int, Index] = {}
        self._far_files: dict[int, FarFile | None] = {}
        # A thread that still reads a dropped shard continues: the file is closed with its last
        # reference.
        self._open: OrderedDict[int, Records] = OrderedDict()

    def __len__(self) -> int:
        return self._starts[-1]

    @property
    def mean_bytes(self) -> float:
        """Mean size of a stored record in bytes."""
        return sum(each.size for each in self.places) / max(1, len(self))

    def remember(self, shard: int, offsets: RecordOffsets) -> None:
        """Keep the offsets that the caller has already found for a shard."""
        self._offsets[shard] = offsets

    def lengths_digest(self, shard: int) -> str:
        """Hex digest of the lengths of a shard's records, in order of the records."""
        return blake3(self.located(shard).lengths.astype("<i8").tobytes()).hexdigest(16)

    def digests(self, shard: int) -> npt.NDArray[np.uint8]:
        """The record digests of a shard, shape (records, 16), from its index or else from its
        records.
        """
        place, lengths = self.places[shard], self.located(shard).lengths
        if place.index_path:
            index = place.load_index()
            known = lengths >= 0
            if len(index) == len(lengths) and np.array_equal(
                index.lengths.astype(np.int64)[known], lengths[known]
            ):
                return index.digests
        start = self._starts[shard]
        parts = [np.empty((0, 16), np.uint8)]
        for block in self.blocks(range(start, start + place.records)):
            sound = []
            for payload in self.payloads(block):
                if isinstance(payload, DamagedRecordError):
                    raise payload
                sound.append(payload)
            parts.append(digests_of(sound))
        return np.concatenate(parts)

    def locate(self, number: int) -> tuple[int, int]:
        """The record's shard, as a position in `places`, and the record's number in that shard."""
        shard = bisect_right(self._starts, number, hi=len(self.places)) - 1
        return shard, number - self._starts[shard]

    def key(self, number: int) -> str | None:
        """The key of a record; None if no index has the key."""
        shard, record = self.locate(number)
        place = self.places[shard]
        if not place.index_path:
            return None
        index = self._keys.get(shard)
        if index is None:
            index = self._keys[shard] = place.load_index()
        # The index of another shard would give wrong keys.
        length = self.located(shard).lengths[record]
        fits = record < len(index) and length in (-1, index.lengths[record])
        return index.key(record) if fits else None

    def payload(self, number: int) -> bytes:
        """The payload of one record."""
        shard, record = self.locate(number)
        try:
            return self._records(shard)[record]
        except DamagedRecordError as error:
            raise self._with_key(error, number) from None

    def payloads(
        self, numbers: Sequence[int] | npt.NDArray[np.int64]
    ) -> list[bytes | DamagedRecordError]:
        """The payloads of these records, in this order; for a damaged record, the error."""
        wanted = np.asarray(numbers, np.int64)
        shards = np.searchsorted(self._ends, wanted, side="right")
        found: list[bytes | DamagedRecordError] = [b""] * len(wanted)
        if self.far is not None:
            self.far.expect(self._requests(wanted, soon=False))
        for shard in np.unique(shards).tolist():
            rows = np.flatnonzero(shards == shard)
            payloads = self._records(shard).read_each((wanted[rows] - self._starts[shard]).tolist())
            for at, payload in zip(rows.tolist(), payloads, strict=True):
                if isinstance(payload, DamagedRecordError):
                    payload = self._with_key(payload, int(wanted[at]))
                found[at] = payload
        return found

    def request(self, numbers: Sequence[int], *, soon: bool = False) -> int:
        """Begin to fetch records that are not in the cache of blocks; return the number of
        requests.
        """
        return len(self._requests(np.asarray(numbers, np.int64), soon=soon))

    def _requests(
        self, numbers: npt.NDArray[np.int64], *, soon: bool
    ) -> list[Future[bytes | None]]:
        if self.far is None:
            return []
        shards = np.searchsorted(self._ends, numbers, side="right")
        found = []
        chosen = np.unique(shards).tolist()
        unknown = [each for each in chosen if each not in self._offsets]
        asked(self.located, unknown, (self.places[each].root for each in unknown))
        for shard in chosen:
            file = self._far_file(shard)
            if file is None or self.far.is_known(file) or self.located(shard).gzip:
                continue
            offsets = self.located(shard)
            records = numbers[shards == shard] - self._starts[shard]
            starts = offsets.offsets[records]
            stops = starts + np.maximum(offsets.lengths[records], 0) + OVERHEAD
            found += self.far.request(file, starts, np.minimum(stops, file.entry.size), soon=soon)
        return found

    def _far_file(self, shard: int) -> FarFile | None:
        """The file of a shard that is read through the cache; None for other shards."""
        if self.far is not None and shard not in self._far_files:
            place = self.places[shard]
            entry = Entry(place.path, "file", place.size, place.mtime_ns, 0)
            self._far_files[shard] = self.far.file(place.root, entry)
        return self._far_files.get(shard)

    def inside(
        self, numbers: range | npt.NDArray[np.int64]
    ) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
        """The shards that contain these records, in order. Each shard comes with the numbers that
        these records have in the shard.
        """
        if not isinstance(numbers, range):
            shards = np.searchsorted(self._ends, numbers, side="right")
            for part in np.split(np.arange(len(numbers)), np.flatnonzero(np.diff(shards)) + 1):
                if len(part):
                    shard = int(shards[part[0]])
                    yield shard, numbers[part] - self._starts[shard]
            return
        step = 1 if numbers.step > 0 else -1
        for shard in range(len(self.places))[::step]:
            low, high = self._starts[shard], self._starts[shard + 1]
            inside = _within(numbers, low, high)
            if inside:
                yield shard, np.array(inside, np.int64) - low

    def blocks(self, numbers: range | npt.NDArray[np.int64]) -> Iterator[list[int]]:
        """Divide the numbers into parts that fit into memory. The records of a part have about one
        MiB together; a larger record is a part by itself.
        """
        for shard, records in self.inside(numbers):
            low = self._starts[shard]
            lengths = self._records(shard).lengths[records]
            for part in _by_bytes(np.maximum(lengths, 0)):
                yield (records[part] + low).tolist()

    def _records(self, shard: int) -> Records:
        records = self._open.pop(shard, None)
        if records is None:
            place = self.places[shard]
            storage = self._far_file(shard) or storage_at(place.root)
            records = Records.located(storage, place.path, self.located(shard), name=place.name)
        self._open[shard] = records
        while len(self._open) > _OPEN:
            try:
                self._open.popitem(last=False)
            except KeyError:  # another thread was faster
                break
        return records

    def located(self, shard: int) -> RecordOffsets:
        """The offsets of a shard's records."""
        place = self.places[shard]
        offsets = self._offsets.get(shard)
        if offsets is None:
            offsets = look_up(place, self.far)
        if (offsets.size, offsets.mtime_ns) != (place.size, place.mtime_ns):
            raise StorageError(f"`{place.name}` was changed since its data source was made")
        if len(offsets.offsets) != place.records:
            raise ManifestError(
                f"`{place.name}` should have {place.records} records, "
                f"but it has {len(offsets.offsets)}"
            )
        self._offsets[shard] = offsets
        return offsets

    def _with_key(self, error: DamagedRecordError, number: int) -> DamagedRecordError:
        """The same error with the record's key, if an index has the key."""
        try:
            key = self.key(number)
        except (ManifestError, StorageError):
            key = None
        if key is None:
            return error
        message = f"{error.message}; its key is `{safe(key, limit=200)}`"
        return DamagedRecordError(message, hint=error.hint)


def look_up(place: ShardPlace, far: FarFiles | None = None) -> RecordOffsets:
    """Find the offsets of a shard's records."""
    shown = safe(place.name, limit=1000)

    def find(storage: Readable) -> RecordOffsets:
        if not place.index_path:
            return kept_offsets(storage, place.path, shown, place.stream_blake3)
        digests = {"stream_blake3": place.stream_blake3, "index_blake3": place.index_blake3}
        return find_offsets(storage, place.path, None, shown, **digests)

    if far is None:
        return find(storage_at(place.root))
    try:
        return find(far.storage_of(place.root, place.path))
    except TransferError:  # the cached bytes differed from the store and were dropped
        return find(far.storage_of(place.root, place.path))


def _within(numbers: range, low: int, high: int) -> range:
    """The numbers of a range that are at least `low` and below `high`."""
    if numbers.step < 0:
        return _within(numbers[::-1], low, high)[::-1]
    first = max(0, -(-(low - numbers.start) // numbers.step))
    last = max(0, -(-(high - numbers.start) // numbers.step))
    return numbers[first:last]


def _by_bytes(lengths: npt.NDArray[np.int64]) -> Iterator[slice]:
    ends = np.cumsum(lengths)
    start = 0
    while start < len(lengths):
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + _BLOCK_BYTES, side="right"))
        stop = min(max(stop, start + 1), start + _BLOCK_RECORDS)
        yield slice(start, stop)
        start = stop
