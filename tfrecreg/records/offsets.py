"""Where every record of a shard lies: from its index, from a sidecar, or from the shard itself."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tfrecreg.errors import TfrecregError, UsageError
from tfrecreg.index import INDEX_LIMIT, INDEX_MAGIC, Index, load_index, read_index
from tfrecreg.records.batch import Fault, RecordBatch
from tfrecreg.records.framing import HEADER_BYTES, MAX_LENGTH, OVERHEAD, header_length
from tfrecreg.records.gzip_random_access import DamagedGzipError, Inflater, Members
from tfrecreg.records.reader import scan
from tfrecreg.records.stream import sniff
from tfrecreg.storage.interface import Reader, Storage
from tfrecreg.text import hex_start, safe

_SNIFF_BYTES = 1 << 16
_AHEAD = 1 << 16
"""Bytes that are read at once while records are small."""
_HINT = "leave out the index to read the shard itself; `tfrecreg check` says whether it is intact"


@dataclass(frozen=True, slots=True)
class RecordOffsets:
    """Where the records of one shard are. Picklable."""

    size: int
    """Bytes of the file, and"""
    mtime_ns: int
    """its modification time, both when it was looked at: if it changes, this means nothing."""
    offsets: npt.NDArray[np.int64]
    """Shape (records,): where each record starts in the decompressed stream."""
    lengths: npt.NDArray[np.int64]
    """Shape (records,): bytes of each payload; -1 where that is lost."""
    members: Members = ()
    """Gzip members. Empty for a plain file, and for damaged gzip."""
    gzip: bool = False
    proven: bool = False
    """Whether all of its gzip members were seen to be sound."""
    faults: Mapping[int, Fault] = field(default_factory=dict)
    """Damaged records by their numbers, as far as they are known beforehand."""

    @property
    def end(self) -> int:
        """Bytes of the stream that records take, where none is damaged."""
        if not len(self.offsets):
            return 0
        return int(self.offsets[-1]) + int(self.lengths[-1]) + OVERHEAD


def own_index(path: str) -> str:
    """Where a build has the index of the shard at `path`: ``index/<shard>.index`` beside it."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}index/{name}.index"


def find_offsets(
    storage: Storage, path: str, sidecar: tuple[Storage, str] | None, shown: str
) -> RecordOffsets:
    """Look where the records of a shard are.

    Args:
        storage: where it is.
        path: in `storage`.
        sidecar: an index to believe, ours or another tool's; None for the build's own beside the
            shard if that fits, and else the shard itself.
        shown: what messages call the shard, escaped.

    Raises:
        UsageError: the shard is not a TFRecord, or `sidecar` is not its index.
        ManifestError: `sidecar` is an index of ours, and damaged.
        StorageError: a file cannot be read.
    """
    with storage.open(path) as reader:
        entry = storage.stat(path)
        stamp = reader.size, entry.mtime_ns if entry is not None else 0
        gzip = sniff(reader.read_at(0, _SNIFF_BYTES)) == "gzip"
        if sidecar is not None:
            return _believed(stamp, gzip, sidecar, shown)
        index = _beside(storage, own_index(path))
        if index is not None and _fits(index, stamp[0], gzip):
            return _indexed(stamp, index)
        found = _inflated(reader, stamp) if gzip else _walked(reader, stamp)
    found = found if found is not None else _scanned(storage, path, stamp, gzip, shown)
    return found if index is None else _with_lost(found, len(index))


def _believed(
    stamp: tuple[int, int], gzip: bool, sidecar: tuple[Storage, str], shown: str
) -> RecordOffsets:
    data = sidecar[0].read(sidecar[1], limit=INDEX_LIMIT)
    where = safe(sidecar[1], limit=1000)
    if data.startswith(INDEX_MAGIC):
        index = read_index(data, where)
        if not _fits(index, stamp[0], gzip):
            raise UsageError(
                f"`{where}` is not the index of `{shown}`: it is of {index.stream_bytes} bytes of "
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


def _beside(storage: Storage, path: str) -> Index | None:
    """The build's own index, where there is a sound one; `check` says what is wrong with it."""
    try:
        if storage.stat(path) is None:
            return None
        return load_index(storage, path)
    except TfrecregError:
        return None


def _with_lost(found: RecordOffsets, count: int) -> RecordOffsets:
    """The same with as many records as the build had: those that a cut took are damaged ones."""
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
    """By the headers of a plain file, from one to the next; None if that leads nowhere."""
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
        # Headers of large records lie far apart: then nothing between them is read.
        ahead = _AHEAD if length < _AHEAD // 2 else HEADER_BYTES
        at = end
    return RecordOffsets(*stamp, _numbers(offsets), _numbers(lengths))


def _inflated(reader: Reader, stamp: tuple[int, int]) -> RecordOffsets | None:
    """By decompressing all of it once; None where it, or a header in it, is damaged."""
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
    members = tuple(inflater.members)
    return RecordOffsets(
        *stamp, _numbers(offsets), _numbers(lengths), members, gzip=True, proven=True
    )


def _scanned(
    storage: Storage, path: str, stamp: tuple[int, int], gzip: bool, shown: str
) -> RecordOffsets:
    """By the scanner, which finds its way past damage, and numbers records as `check` does."""
    offsets, lengths = array("q"), array("q")
    faults: dict[int, Fault] = {}
    for event in scan(storage, path):
        if isinstance(event, Fault):
            if event.code == "CRC008":
                raise UsageError(
                    f"`{shown}` is not a TFRecord: {event.detail}", hint=f"tfrecreg check {shown}"
                )
            # Trailing bytes are not a record, and records behind a gap have their own numbers.
            if event.code != "CRC004" and event.record == len(offsets):
                faults[event.record] = event
                offsets.append(event.offset)
                lengths.append(-1)
        elif isinstance(event, RecordBatch):
            while len(offsets) < event.first:  # lost in a gap that was told of before
                offsets.append(event.offsets[0])
                lengths.append(-1)
            offsets.extend(event.offsets)
            lengths.extend(event.lengths)
    return RecordOffsets(*stamp, _numbers(offsets), _numbers(lengths), gzip=gzip, faults=faults)


def _numbers(found: array[int]) -> npt.NDArray[np.int64]:
    return np.frombuffer(found, dtype=np.int64) if found else np.empty(0, np.int64)


_LINES = 1 << 14
"""Lines that are written at once."""
_SIDECAR_HINT = "make it again with `tfrecord2idx`, or leave it out: then the shard itself is read"


def render_sidecar(lengths: Iterable[int]) -> Iterator[bytes]:
    """The lines of a sidecar, in pieces.

    Args:
        lengths: bytes of each payload, in the order of the records.
    """
    at = 0
    lines: list[str] = []
    for length in lengths:
        size = int(length) + OVERHEAD
        lines.append(f"{at} {size}\n")
        at += size
        if len(lines) == _LINES:
            yield "".join(lines).encode("ascii")
            lines.clear()
    if lines:
        yield "".join(lines).encode("ascii")


def parse_sidecar(data: bytes, where: str) -> npt.NDArray[np.int64]:
    """The payload lengths that a sidecar states.

    Args:
        data: the sidecar.
        where: what messages call it, escaped.

    Returns:
        Shape (records,): bytes of each payload. Records follow each other without a gap, so their
        offsets are the sums of these and of the 16 bytes of every frame.

    Raises:
        UsageError: it is not a sidecar, or a line states a record that does not begin where the
            one before it ends, or is shorter than a frame.
    """
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
