"""Finds the offsets of a shard's records: from its index, from a sidecar, or from the shard itself.

For shards without an index there is a cache: one file per shard in ``tfrecreg/offsets`` below
`XDG_CACHE_HOME` or ``~/.cache``. An entry is used only while the shard's size and modification time
are the same. A shard that changed less than two seconds ago gets no entry, because its time might
not reveal the next change (git's index has the same rule). A damaged shard gets no entry. If a
manifest has the digest of the stream, an entry is used only if it was made from the whole stream
with that digest. Offsets are not trusted: each read verifies the length and the checksums.
"""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.records.framing import HEADER_BYTES, MAX_LENGTH, OVERHEAD, header_length
from tfrecreg.core.records.gzip_access import Members
from tfrecreg.core.records.index import INDEX_LIMIT, INDEX_MAGIC, Index, load_index, read_index
from tfrecreg.core.records.reader import scan
from tfrecreg.core.records.stream import sniff_compression
from tfrecreg.core.storage.interface import Readable, Reader
from tfrecreg.core.storage.local import user_cache
from tfrecreg.core.values.errors import ManifestError, StorageError, TfrecregError, UsageError
from tfrecreg.core.values.text import hex_start, safe

_SNIFF_BYTES = 1 << 16
_AHEAD = 1 << 16
"""Number of bytes per read, if records are small."""


@dataclass(frozen=True, slots=True)
class RecordOffsets:
    """Offsets and lengths of the records of one shard. Picklable."""

    size: int
    mtime_ns: int
    """Modification time of the file. If its size or time changes, the offsets are invalid."""
    offsets: npt.NDArray[np.int64]
    """Shape (records,): where each record starts in the decompressed stream."""
    lengths: npt.NDArray[np.int64]
    """Shape (records,): size of each payload in bytes; -1 for a lost record."""
    members: Members = ()
    """The gzip members. Empty for a plain file and for damaged gzip."""
    gzip: bool = False
    proven: bool = False
    """Whether all gzip members were verified."""
    faults: Mapping[int, Fault] = field(default_factory=dict)
    """Maps the number of each known damaged record to the record's fault. Damage outside of known
    records gets a number after all records, because the lost bytes may have been records.
    """
    stream_blake3: str = ""
    """Hex digest of the decompressed stream, if all of it was read; else empty."""

    @classmethod
    def sound(
        cls, stamp: tuple[int, int], lengths: npt.NDArray[np.int64], **rest: Any
    ) -> RecordOffsets:
        """The offsets in a shard without damage, from the lengths of its payloads."""
        return cls(*stamp, np.cumsum(lengths + OVERHEAD) - lengths - OVERHEAD, lengths, **rest)

    @property
    def end(self) -> int:
        """Size in bytes of the stream of records; right only if no record is damaged."""
        if not len(self.offsets):
            return 0
        return int(self.offsets[-1]) + int(self.lengths[-1]) + OVERHEAD


def own_index(path: str) -> str:
    """Path of a build's index for the shard at `path`: ``index/<shard>.index`` next to it."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}index/{name}.index"


def has_own_index(storage: Readable, path: str) -> bool:
    """Whether the shard at `path` has a build's index next to it."""
    try:
        return storage.stat(own_index(path)) is not None
    except StorageError:  # S3 reports a missing file as forbidden if listing is not permitted
        return False


def find_offsets(
    storage: Readable,
    path: str,
    sidecar: tuple[Readable, str] | None,
    shown: str,
    *,
    stream_blake3: str = "",
    index_blake3: str = "",
) -> RecordOffsets:
    """Find the offsets of a shard's records."""
    with storage.open(path) as reader:
        entry = storage.stat(path)
        stamp = reader.size, entry.mtime_ns if entry is not None else 0
        gzip = sniff_compression(reader.read_at(0, _SNIFF_BYTES)) == "gzip"
        if sidecar is not None:
            return _believed(stamp, gzip, sidecar, shown)
        index = None
        # `check` reports an index that is missing, damaged or wrong.
        with suppress(TfrecregError):
            if storage.stat(own_index(path)) is not None:
                index = load_index(storage, own_index(path), blake3_hex=index_blake3)
        if index is not None and _fits(index, stamp[0], gzip):
            return indexed_offsets(stamp, index)
        found = None if gzip or stream_blake3 else _walked(reader, stamp)
    if found is None:
        found = _scanned(storage, path, stamp, gzip, shown, 0 if index is None else len(index))
    if stream_blake3 and not found.faults and found.stream_blake3 != stream_blake3:
        raise ManifestError(
            f"`{shown}` is not the shard that the manifest names: the digest of its records should "
            f"be {stream_blake3[:16]}…, found {found.stream_blake3[:16]}…",
            hint=f"tfrecreg check {shown}",
        )
    return found if index is None else _with_lost(found, len(index))


def _believed(
    stamp: tuple[int, int], gzip: bool, sidecar: tuple[Readable, str], shown: str
) -> RecordOffsets:
    data = sidecar[0].read(sidecar[1], limit=INDEX_LIMIT)
    where = safe(sidecar[1], limit=1000)
    if data.startswith(INDEX_MAGIC):
        index = read_index(data, where)
        if not _fits(index, stamp[0], gzip):
            raise UsageError(
                f"`{where}` is not the index of `{shown}`: the index covers "
                f"{index.stream_bytes} bytes{' of decompressed gzip' if index.members else ''}, "
                f"but the file has {stamp[0]} bytes{' of gzip' if gzip else ''}"
            )
        return indexed_offsets(stamp, index)
    if gzip:
        raise UsageError(f"`{where}` has offsets of a plain file, but `{shown}` is gzip")
    lengths = parse_sidecar(data, where)
    places = RecordOffsets.sound(stamp, lengths)
    if places.end != stamp[0]:
        raise UsageError(
            f"`{where}` is not the index of `{shown}`: the index lists records up to byte "
            f"{places.end}, but the file ends at byte {stamp[0]}"
        )
    return places


def _with_lost(found: RecordOffsets, count: int) -> RecordOffsets:
    """The offsets of all records of the index. Records that were lost by truncation count as
    damaged.
    """
    here = len(found.offsets)
    if here >= count:
        return found
    at = found.end if not here or found.lengths[-1] >= 0 else int(found.offsets[-1])
    why = f"according to its index, the shard should have {count} records, but it has {here}"
    faults = {number: Fault("CRC003", at, number, None, why) for number in range(here, count)}
    return replace(
        found,
        offsets=np.append(found.offsets, np.full(count - here, at)),
        lengths=np.append(found.lengths, np.full(count - here, -1)),
        members=(),
        faults={**found.faults, **faults},
    )


def _fits(index: Index, size: int, gzip: bool) -> bool:
    if not index.members:
        return not gzip and index.stream_bytes == size
    file, stream = index.members[-1]
    starts = index.members[0] == (0, 0)
    return gzip and starts and file < size and stream <= index.stream_bytes


def indexed_offsets(stamp: tuple[int, int], index: Index) -> RecordOffsets:
    """The offsets in a shard, from its index and the shard's size and modification time."""
    lengths = index.lengths.astype(np.int64)
    return RecordOffsets.sound(stamp, lengths, members=index.members, gzip=bool(index.members))


def _walked(reader: Reader, stamp: tuple[int, int]) -> RecordOffsets | None:
    """Offsets from the headers of a plain file; None if a header is damaged."""
    lengths = array("q")
    at, base, block = 0, 0, b""
    ahead = _AHEAD
    headers: dict[bytes, int] = {}
    while at < reader.size:
        place = at - base
        if place > len(block) - HEADER_BYTES:
            block, base, place = reader.read_at(at, ahead), at, 0
        header = block[place : place + HEADER_BYTES]
        length = headers.get(header)
        if length is None:
            length = header_length(header)
            if length is None or length > MAX_LENGTH:
                return None
            if len(headers) < _AHEAD:
                headers[header] = length
        end = at + OVERHEAD + length
        if end > reader.size:
            return None
        lengths.append(length)
        # Headers of large records are far apart: the payloads between them are not read.
        ahead = _AHEAD if length < _AHEAD // 2 else HEADER_BYTES
        at = end
    return RecordOffsets.sound(stamp, np.frombuffer(lengths, np.int64))


def _scanned(
    storage: Readable, path: str, stamp: tuple[int, int], gzip: bool, shown: str, expected: int
) -> RecordOffsets:
    """Offsets from the scanner, which continues after damage. Each lost record also gets a number,
    as in `check`.
    """
    offsets, lengths = array("q"), array("q")
    faults: dict[int, Fault] = {}
    behind: list[Fault] = []
    end: StreamEnd | None = None

    def lose(until: int, at: int) -> None:
        """Add lost records, up to but not including number `until`. Their fault was already
        reported.
        """
        while len(offsets) < until:
            offsets.append(at)
            lengths.append(-1)

    for event in scan(storage, path, digest=True, list_members=True):
        if isinstance(event, StreamEnd):
            end = event
        elif isinstance(event, RecordBatch):
            lose(event.first, event.offsets[0])
            offsets.extend(event.offsets)
            lengths.extend(event.lengths)
        elif event.code == "CRC008":
            raise UsageError(f"`{shown}` is not a TFRecord: {event.detail}")
        elif event.record is not None and event.code != "CRC004":
            lose(event.record, event.offset)
            if event.record == len(offsets):
                faults[event.record] = event
                lose(event.record + 1, event.offset)
        elif event.code != "CRC009":  # CRC009 concerns records that TensorFlow does not read
            behind.append(replace(event, record=None))
    if len(offsets) >= expected:  # otherwise all other records of the index exist
        for fault in behind:
            faults[len(offsets)] = fault
            lose(len(offsets) + 1, fault.offset)
    assert end is not None
    return RecordOffsets(
        *stamp,
        np.frombuffer(offsets, np.int64),
        np.frombuffer(lengths, np.int64),
        () if faults else end.members,
        gzip=gzip,
        proven=True,
        faults=faults,
        stream_blake3=end.stream_blake3 or "",
    )


def parse_sidecar(data: bytes, where: str) -> npt.NDArray[np.int64]:
    """The payload lengths in a sidecar, whose lines are ``offset size``."""
    words = data.split()
    lines = sum(1 for line in data.splitlines() if line.strip())
    try:
        if len(words) != 2 * lines or not all(map(bytes.isdigit, words)):
            raise ValueError
        rows = np.array(words, dtype=np.bytes_).astype(np.int64).reshape(lines, 2)
        offsets, sizes = rows[:, 0], rows[:, 1]
        lengths: npt.NDArray[np.int64] = sizes - OVERHEAD
        if ((lengths < 0) | (lengths > MAX_LENGTH) | (offsets != np.cumsum(sizes) - sizes)).any():
            raise ValueError
    except (ValueError, OverflowError):
        raise UsageError(
            f"`{where}` is not an index of records: expected lines of `offset size` without gaps, "
            f"found {hex_start(data, 12)}"
        ) from None
    return lengths


_Entry = tuple[int, int, bytes, Members, bool, str]
"""An entry of the cache: the shard's size and time, the lengths of its payloads, its gzip members,
whether it is gzip, and the digest of its stream. The digest of the entry follows the entry.
"""
_HASH_BYTES = 32
_RACY_NS = 2_000_000_000
_FOLDER = "tfrecreg/offsets"


def kept_offsets(
    storage: Readable, path: str, shown: str, stream_blake3: str = ""
) -> RecordOffsets:
    """The offsets of a shard's records, from its own index, the cache, or the shard itself."""
    cache = user_cache()
    entry = storage.stat(path)
    # If a web server sends neither time nor ETag, changes do not show.
    is_dated = entry is not None and entry.mtime_ns > 0
    if cache is None or entry is None or not is_dated or has_own_index(storage, path):
        return find_offsets(storage, path, None, shown, stream_blake3=stream_blake3)
    name = f"{_FOLDER}/{blake3(os.fsencode(f'{storage.root}/{path}')).hexdigest(16)}"
    stamp = entry.size, entry.mtime_ns
    with suppress(TfrecregError):  # an unreadable entry counts as missing
        if cache.stat(name) is not None:
            known = _parse(cache.read(name, limit=INDEX_LIMIT), stamp)
            if known is not None and stream_blake3 in ("", known.stream_blake3):
                return known
    now = time.time_ns()
    found = find_offsets(storage, path, None, shown, stream_blake3=stream_blake3)
    sound = not found.faults and not (found.lengths < 0).any()
    if sound and now - found.mtime_ns >= _RACY_NS:
        with suppress(TfrecregError), cache.create(name, durable=False) as writer:
            lengths = found.lengths.astype("<i8").tobytes()
            facts = found.members, found.gzip, found.stream_blake3
            body = msgspec.msgpack.encode((found.size, found.mtime_ns, lengths, *facts))
            writer.write(body + blake3(body).digest())
    return found


def _parse(data: bytes, stamp: tuple[int, int]) -> RecordOffsets | None:
    """Parse an entry; None if it is damaged or the shard's stamp differs."""
    body = data[:-_HASH_BYTES]
    if blake3(body).digest() != data[-_HASH_BYTES:]:
        return None
    with suppress(msgspec.MsgspecError):
        size, mtime_ns, lengths, members, gzip, digest = msgspec.msgpack.decode(body, type=_Entry)
        if (size, mtime_ns) == stamp:
            numbers = np.frombuffer(lengths, "<i8").astype(np.int64)
            return RecordOffsets.sound(
                stamp, numbers, members=members, gzip=gzip, stream_blake3=digest
            )
    return None
