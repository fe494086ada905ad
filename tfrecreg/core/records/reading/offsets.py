"""Offsets of the records of a shard: from its index, from a sidecar, or from the shard itself.

A cache of record offsets for shards without an index.

An entry, one a shard, is a file in ``tfrecreg/offsets`` below `XDG_CACHE_HOME` or ``~/.cache``. It
has 16 bytes per record and a digest of its own, and is taken only while size and modification time
of the shard are the same. Offsets are not trusted further: each read compares length and checksums.

As with git's index, the entry of a shard that was changed less than two seconds ago is not kept:
its time would not tell the next change. Nor is that of a damaged shard. Where a manifest names the
digest of the stream, an entry is taken only if all of the stream was read for it and had that
digest.

The form of an entry may change with any version; entries of another form are made again. Today it
is, all little-endian: magic, size and modification time of the shard, numbers of records and gzip
members, whether it is gzip, the digest of the stream (zeros where it is unknown); the offsets, the
lengths, and where members begin, in 8 bytes a number; blake3 of all that.
"""

from __future__ import annotations

import os
import struct
import time
from array import array
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.records.framing import HEADER_BYTES, MAX_LENGTH, OVERHEAD, header_length
from tfrecreg.core.records.gzip_access import DamagedGzipError, Inflater, Members
from tfrecreg.core.records.index import INDEX_LIMIT, INDEX_MAGIC, Index, load_index, read_index
from tfrecreg.core.records.reader import scan
from tfrecreg.core.records.stream import sniff_compression
from tfrecreg.core.storage.interface import Readable, Reader
from tfrecreg.core.storage.local import user_cache
from tfrecreg.core.values.errors import ManifestError, StorageError, TfrecregError, UsageError
from tfrecreg.core.values.text import hex_start, safe

_SNIFF_BYTES = 1 << 16
_AHEAD = 1 << 16
"""Number of bytes per read while records are small."""
_HINT = "leave out the index to read the shard itself; `tfrecreg check` says whether it is intact"


@dataclass(frozen=True, slots=True)
class RecordOffsets:
    """Offsets and lengths of the records of one shard. Picklable."""

    size: int
    """Size of the file in bytes when it was examined."""
    mtime_ns: int
    """Modification time of the file when it was examined, in nanoseconds. If size or time changes,
    the offsets are invalid.
    """
    offsets: npt.NDArray[np.int64]
    """Shape (records,): where each record starts in the decompressed stream."""
    lengths: npt.NDArray[np.int64]
    """Shape (records,): bytes of each payload; -1 for a lost record."""
    members: Members = ()
    """Gzip members. Empty for a plain file, and for damaged gzip."""
    gzip: bool = False
    proven: bool = False
    """Whether all gzip members were verified."""
    faults: Mapping[int, Fault] = field(default_factory=dict)
    """Damaged records by number, as far as they are known. Damage that belongs to no known record
    has a number behind all records: what was there may have been records.
    """
    stream_blake3: str = ""
    """Hex digest of the decompressed stream, if all of it was read for it."""

    @property
    def end(self) -> int:
        """Size in bytes of the stream of records, if none is damaged."""
        if not len(self.offsets):
            return 0
        return int(self.offsets[-1]) + int(self.lengths[-1]) + OVERHEAD


def own_index(path: str) -> str:
    """Path of a build's index of the shard at `path`: ``index/<shard>.index`` beside it."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}index/{name}.index"


def has_own_index(storage: Readable, path: str) -> bool:
    """Whether a build's index is beside the shard at `path`.

    S3 forbids whoever may not list a bucket to learn that a file is missing: then there is none.
    """
    try:
        return storage.stat(own_index(path)) is not None
    except StorageError:
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
        index = _own_index(storage, own_index(path), index_blake3)
        if index is not None and _fits(index, stamp[0], gzip):
            return _indexed(stamp, index)
        found = None
        if not stream_blake3:
            found = _inflated(reader, stamp) if gzip else _walked(reader, stamp)
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
                f"`{where}` is not the index of `{shown}`: it covers {index.stream_bytes} bytes of "
                f"stream{' in gzip' if index.members else ''}, the file has {stamp[0]} bytes"
                f"{' of gzip' if gzip else ''}",
                hint=_HINT,
            )
        return _indexed(stamp, index)
    if gzip:
        raise UsageError(
            f"`{where}` has offsets of a plain file, and `{shown}` is gzip", hint=_HINT
        )
    lengths = parse_sidecar(data, where)
    places = RecordOffsets(*stamp, np.cumsum(lengths + OVERHEAD) - lengths - OVERHEAD, lengths)
    if places.end != stamp[0]:
        raise UsageError(
            f"`{where}` is not the index of `{shown}`: its last record ends at byte {places.end}, "
            f"the file at byte {stamp[0]}",
            hint=_HINT,
        )
    return places


def _own_index(storage: Readable, path: str, index_blake3: str) -> Index | None:
    """The build's own index; None if it is missing, damaged or another: `check` reports that."""
    try:
        if storage.stat(path) is None:
            return None
        return load_index(storage, path, blake3_hex=index_blake3)
    except TfrecregError:
        return None


def _with_lost(found: RecordOffsets, count: int) -> RecordOffsets:
    """The same with all records of the index: those lost by truncation are damaged ones."""
    here = len(found.offsets)
    if here >= count:
        return found
    at = found.end if not here or found.lengths[-1] >= 0 else int(found.offsets[-1])
    why = f"the shard had {count} records by its index, {here} are there"
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


def _indexed(stamp: tuple[int, int], index: Index) -> RecordOffsets:
    gzip = bool(index.members)
    lengths = index.lengths.astype(np.int64)
    return RecordOffsets(*stamp, index.offsets(), lengths, index.members, gzip)


def _walked(reader: Reader, stamp: tuple[int, int]) -> RecordOffsets | None:
    """Offsets from the headers of a plain file, one after the other; None if a header is
    damaged.
    """
    offsets, lengths = array("q"), array("q")
    at, base, block = 0, 0, b""
    ahead = _AHEAD
    headers: dict[bytes, int] = {}
    while at < reader.size:
        place = at - base
        if not 0 <= place <= len(block) - HEADER_BYTES:
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
        offsets.append(at)
        lengths.append(length)
        # Headers of large records lie far apart: do not read the payloads between them.
        ahead = _AHEAD if length < _AHEAD // 2 else HEADER_BYTES
        at = end
    return RecordOffsets(*stamp, _numbers(offsets), _numbers(lengths))


def _inflated(reader: Reader, stamp: tuple[int, int]) -> RecordOffsets | None:
    """Offsets from decompressing all of it once; None if the gzip or a header is damaged."""
    offsets, lengths = array("q"), array("q")
    inflater = Inflater(reader, 0, 0)
    try:
        while header := inflater.exactly(HEADER_BYTES):
            length = header_length(header)
            if length is None or length > MAX_LENGTH:
                return None
            at = inflater.position - HEADER_BYTES
            end = at + OVERHEAD + length
            inflater.go(end)
            if inflater.position < end:
                return None
            offsets.append(at)
            lengths.append(length)
    except DamagedGzipError:
        return None
    if inflater.is_padded:
        return None
    members = tuple(inflater.members)
    return RecordOffsets(
        *stamp, _numbers(offsets), _numbers(lengths), members, gzip=True, proven=True
    )


def _scanned(
    storage: Readable, path: str, stamp: tuple[int, int], gzip: bool, shown: str, expected: int
) -> RecordOffsets:
    """Offsets from the scanner, which reads past damage and numbers records as `check` does."""
    offsets, lengths = array("q"), array("q")
    faults: dict[int, Fault] = {}
    behind: list[Fault] = []
    end: StreamEnd | None = None

    def lose(until: int, at: int) -> None:
        """Add records that were lost in a gap, which was reported before."""
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
            raise UsageError(
                f"`{shown}` is not a TFRecord: {event.detail}", hint=f"tfrecreg check {shown}"
            )
        elif event.record is not None and event.code != "CRC004":
            lose(event.record, event.offset)
            if event.record == len(offsets):
                faults[event.record] = event
                lose(event.record + 1, event.offset)
        elif event.code != "CRC009":  # including records that TensorFlow would not read
            behind.append(replace(event, record=None))
    if len(offsets) >= expected:  # else the other records of the index were there
        for fault in behind:
            faults[len(offsets)] = fault
            lose(len(offsets) + 1, fault.offset)
    assert end is not None
    return RecordOffsets(
        *stamp,
        _numbers(offsets),
        _numbers(lengths),
        () if faults else end.members,
        gzip=gzip,
        proven=True,
        faults=faults,
        stream_blake3=end.stream_blake3 or "",
    )


def _numbers(found: array[int]) -> npt.NDArray[np.int64]:
    return np.frombuffer(found, dtype=np.int64) if found else np.empty(0, np.int64)


_SIDECAR_HINT = "create it again with `tfrecord2idx`, or omit it to read the shard itself"


def parse_sidecar(data: bytes, where: str) -> npt.NDArray[np.int64]:
    """The payload lengths that a sidecar states."""
    words = data.split()
    lines = sum(1 for line in data.splitlines() if line.strip())
    if len(words) != 2 * lines or not all(map(bytes.isdigit, words)):
        raise UsageError(
            f"`{where}` is not an index of records: expected lines of `offset size`, found "
            f"{hex_start(data, 12) or 'nothing'}",
            hint=_SIDECAR_HINT,
        )
    try:
        rows = np.array(words, dtype=np.bytes_).astype(np.int64).reshape(lines, 2)
    except (ValueError, OverflowError):
        raise UsageError(
            f"`{where}` has numbers of more than 63 bits", hint=_SIDECAR_HINT
        ) from None
    offsets, sizes = rows[:, 0], rows[:, 1]
    small = np.flatnonzero((sizes < OVERHEAD) | (sizes > MAX_LENGTH + OVERHEAD))
    if len(small):
        line = int(small[0])
        raise UsageError(
            f"line {line + 1} of `{where}`: a record of {int(sizes[line])} bytes, expected "
            f"{OVERHEAD} to {MAX_LENGTH + OVERHEAD}",
            hint=_SIDECAR_HINT,
        )
    expected = np.cumsum(sizes) - sizes
    wrong = np.flatnonzero(offsets != expected)
    if len(wrong):
        line = int(wrong[0])
        raise UsageError(
            f"line {line + 1} of `{where}`: a record at byte {int(offsets[line])}, expected "
            f"{int(expected[line])}, where the one before it ends",
            hint=_SIDECAR_HINT,
        )
    lengths: npt.NDArray[np.int64] = sizes - OVERHEAD
    return lengths


_MAGIC = b"TFROFFS2"
_HEADER = struct.Struct("<8sQQQQI32s")
"""Magic, size and modification time of the shard, records, gzip members, whether it is gzip, and
the digest of its stream.
"""
_HASH_BYTES = 32
_RACY_NS = 2_000_000_000
_FOLDER = "tfrecreg/offsets"


def kept_offsets(
    storage: Readable, path: str, shown: str, stream_blake3: str = ""
) -> RecordOffsets:
    """The offsets of a shard's records: from its own index, an entry, or by reading the shard."""
    cache = user_cache()
    entry = storage.stat(path)
    # A web server may send neither time nor ETag: then a change would not show.
    is_dated = entry is not None and entry.mtime_ns > 0
    if cache is None or entry is None or not is_dated or has_own_index(storage, path):
        return find_offsets(storage, path, None, shown, stream_blake3=stream_blake3)
    name = f"{_FOLDER}/{blake3(os.fsencode(f'{storage.root}/{path}')).hexdigest(16)}"
    stamp = entry.size, entry.mtime_ns
    with suppress(TfrecregError):  # an entry that cannot be read is as good as none
        if cache.stat(name) is not None:
            known = _parse(cache.read(name, limit=INDEX_LIMIT), stamp)
            if known is not None and stream_blake3 in ("", known.stream_blake3):
                return known
    now = time.time_ns()
    found = find_offsets(storage, path, None, shown, stream_blake3=stream_blake3)
    sound = not found.faults and not (found.lengths < 0).any()
    if sound and now - found.mtime_ns >= _RACY_NS:
        with suppress(TfrecregError), cache.create(name, durable=False) as writer:
            writer.write(_render(found))
    return found


def _render(found: RecordOffsets) -> bytes:
    header = _HEADER.pack(
        _MAGIC,
        found.size,
        found.mtime_ns,
        len(found.offsets),
        len(found.members),
        found.gzip,
        bytes.fromhex(found.stream_blake3),
    )
    members = np.array(found.members, "<i8").reshape(-1, 2)
    body = b"".join(
        (
            header,
            found.offsets.astype("<i8").tobytes(),
            found.lengths.astype("<i8").tobytes(),
            members.tobytes(),
        )
    )
    return body + blake3(body).digest()


def _parse(data: bytes, stamp: tuple[int, int]) -> RecordOffsets | None:
    """Parse an entry; None if it is damaged, or the shard has another stamp."""
    if len(data) < _HEADER.size + _HASH_BYTES:
        return None
    magic, size, mtime_ns, records, members, gzip, digest = _HEADER.unpack_from(data)
    expected = _HEADER.size + 16 * (records + members) + _HASH_BYTES
    if magic != _MAGIC or (size, mtime_ns) != stamp or len(data) != expected:
        return None
    if blake3(memoryview(data)[:-_HASH_BYTES]).digest() != data[-_HASH_BYTES:]:
        return None
    numbers = np.frombuffer(data, "<i8", 2 * (records + members), _HEADER.size).astype(np.int64)
    table = numbers[2 * records :].reshape(-1, 2)
    return RecordOffsets(
        size,
        mtime_ns,
        numbers[:records],
        numbers[records : 2 * records],
        members=tuple((int(file), int(stream)) for file, stream in table),
        gzip=bool(gzip),
        stream_blake3=digest.hex() if any(digest) else "",
    )
