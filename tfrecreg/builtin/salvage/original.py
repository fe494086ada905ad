"""Reads the damaged file a second time where the scanner skipped bytes.

The scanner yields records whose checksums match. This module reads the bytes that the scanner
skipped, and payloads that are too large for memory. It reads them through a second stream, in step
with the scanner's stream. At gzip damage, both streams stop and resume at the same places.

It also copies a remote shard to this machine: salvage reads a shard several times and needs the
same bytes every time.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.example.decode import canonical
from tfrecreg.core.records.batch import Fault
from tfrecreg.core.records.framing import HEADER_BYTES
from tfrecreg.core.records.gzip_reader import GzipStream
from tfrecreg.core.records.gzip_writer import Compression
from tfrecreg.core.records.hashing import DIGEST_BYTES, record_digest
from tfrecreg.core.records.index import Index
from tfrecreg.core.records.reader import HOLD_LIMIT, open_stream, scan
from tfrecreg.core.records.resync import data_holds, sound_records
from tfrecreg.core.records.stream import Damage
from tfrecreg.core.storage.interface import Reader, Storage
from tfrecreg.core.values.errors import StorageError, TransferError

_PIECE = 1 << 20


class Original:
    """The damaged file."""

    def __init__(
        self,
        reader: Reader,
        *,
        declared: Compression | None,
        members: Sequence[tuple[int, int]] = (),
    ) -> None:
        self._reader = reader
        self._stream, self._file = open_stream(
            reader, digest=False, declared=declared, members=members
        )
        self._unsound: Damage | None = None

    @property
    def compression(self) -> Compression:
        """The compression detected from the bytes."""
        return self._stream.compression

    @property
    def passed(self) -> int:
        """An offset in the stream. The damaged gzip members before this offset are in quarantine,
        still compressed. The offset may lie beyond the requested cut, because damaged members are
        cut out whole.
        """
        return self._stream.base if isinstance(self._stream, GzipStream) else 0

    def stream(self, start: int, stop: int) -> Iterator[bytes]:
        """The readable part of these bytes of the stream. Later calls must ask for later bytes."""
        while start < stop:
            piece = self._stream.window(start, min(_PIECE, stop - start))
            if piece:
                yield piece
                start += len(piece)
                continue
            damage = self._stream.interruption
            if damage is None or not damage.lossless or not self._stream.resume():
                return

    def file(self, start: int, stop: int) -> Iterator[bytes]:
        """The bytes of the file from `start` to `stop`, without decompression."""
        while start < stop and (piece := self._reader.read_at(start, min(_PIECE, stop - start))):
            yield piece
            start += len(piece)

    def holds(self, start: int, length: int) -> bool:
        """Whether a record of this length at `start` has a valid data checksum."""
        return start >= self.passed and data_holds(self._stream.fork(), start, length)

    def payload(self, start: int, length: int) -> bytes:
        """The payload of the record at `start`, which has to fit into memory. The position in the
        stream does not change.
        """
        return self._stream.fork().window(start + HEADER_BYTES, length)

    def decoded(self, start: int, stop: int) -> int:
        """Where the readable part of these bytes ends. This is beyond `stop` if damaged gzip
        decodes to more bytes than the original had.
        """
        damage = self._stream.inspect(start, max(stop, start + 1))
        return stop if damage is None else max(stop, damage.stream)

    def sound(self, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
        """Offset and frame of each sound record from `start` to `stop`.

        Records after lossy gzip damage are left out, and also records too large for memory.
        """
        start = max(start, self.passed)
        ahead, frames = self._stream.fork(), self._stream.fork()
        for each in (ahead, frames):
            while not each.window(start, 1):
                if each.interruption is None or not each.interruption.lossless:
                    return
                each.resume()
        while start < stop:
            for begin, end in sound_records(ahead, start, stop):
                frame = frames.window(begin, end - begin) if end - begin <= HOLD_LIMIT else b""
                if len(frame) == end - begin:
                    yield begin, frame
            for each in (ahead, frames):
                while each.interruption is None and each.window(each.position, _PIECE):
                    pass
                if each.interruption is None or not each.interruption.lossless:
                    return
                each.resume()
            start = max(start, ahead.position)

    def unsound(self, start: int, stop: int) -> bool:
        """Whether any of these bytes of the stream come from a damaged gzip member."""
        if start < self.passed:
            return True
        known = self._unsound
        if known is not None and known.begin <= start and stop <= known.stream:
            return True
        self._unsound = self.damage(start, stop)
        return self._unsound is not None

    def damage(self, start: int, stop: int) -> Damage | None:
        """The first gzip damage that affects these bytes of the stream, if any."""
        # Pass sound bytes on the way, so that the next search begins here.
        for _ in self.stream(start, start + 1):
            pass
        return self._stream.inspect(start, stop)

    def catch_up(self, start: int) -> Iterator[tuple[int, int]]:
        """Follow the scanner back to an earlier offset of the stream.

        If a damaged member decoded to too many bytes, the next member begins at an offset among
        these bytes. The scanner then goes back to this offset.
        """
        stream = self._stream
        while isinstance(stream, GzipStream) and start < stream.base:
            while stream.interruption is None and stream.window(stream.position, _PIECE):
                pass
            if stream.interruption is None:
                return
            begin, end, behind = self.leave(stream.interruption)
            yield begin, end
            if behind is None:
                return

    def leave(self, damage: Damage) -> tuple[int, int, int | None]:
        """Resume after `damage`."""
        stream = self._stream
        self._unsound = None
        while stream.interruption is None and stream.window(stream.position, _PIECE):
            pass
        if not isinstance(stream, GzipStream) or not stream.resume(stream.base):
            return damage.member, self._file.end, None
        return damage.member, stream.file_position, stream.position


class IndexMatch:
    """Compares records with an index. Takes about 10 bytes per record, or 34 bytes after
    damage.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._found = np.zeros(len(index), np.bool_)
        self._cursors: dict[int, int] = {}
        self.known = 0
        """Number of records that are in the index."""
        self.unknown = 0
        """Number of records that are not in the index."""

    @property
    def fits(self) -> bool:
        """Whether the index belongs to the shard: no record is unknown, or :attr:`sure` is true."""
        return self.unknown == 0 or self.sure

    @property
    def sure(self) -> bool:
        """True if at least half of the index's records are in the shard, or if most of the shard's
        records are in the index.
        """
        return self.known > 0 and (len(self._index) <= 2 * self.known or self.known > self.unknown)

    def match(self, first: int | None, payloads: Iterable[bytes]) -> npt.NDArray[np.bool_]:
        """For each record, whether the index has it. `first` is the number of the first record, if
        it is known.
        """
        first = len(self._index) if first is None else first
        joined = b"".join(record_digest(canonical(payload)) for payload in payloads)
        digests = np.frombuffer(joined, np.uint8).reshape(-1, DIGEST_BYTES)
        known = np.zeros(len(digests), np.bool_)
        room = max(0, min(len(digests), len(self._index) - first))
        here = slice(first, first + room)
        known[:room] = (self._index.digests[here] == digests[:room]).all(axis=1)
        known[:room] &= ~self._found[here]
        self._found[here] |= known[:room]
        for place in np.flatnonzero(~known):
            known[place] = self._match_elsewhere(digests[place].tobytes())
        self.known += int(known.sum())
        return known

    def match_large(self, number: int, length: int) -> bool:
        """Match a record that is too large for memory, by its number and its length."""
        known = (
            number < len(self._index)
            and int(self._index.lengths[number]) == length
            and not self._found[number]
        )
        if known:
            self._found[number] = True
            self.known += 1
        return known

    def lost(self) -> tuple[str, ...]:
        """The keys of the records that are in the index but not in the shard, in order."""
        return tuple(self._index.key(int(each)) for each in np.flatnonzero(~self._found))

    @cached_property
    def _sorted(self) -> tuple[npt.NDArray[np.bytes_], npt.NDArray[np.intp]]:
        """All digests, sorted, and the record number of each."""
        rows = np.ascontiguousarray(self._index.digests).view(f"S{DIGEST_BYTES}").ravel()
        order = np.argsort(rows, kind="stable")
        return rows[order], order

    def _match_elsewhere(self, digest: bytes) -> bool:
        rows, order = self._sorted
        wanted = np.frombuffer(digest, f"S{DIGEST_BYTES}")
        begin = int(np.searchsorted(rows, wanted, "left")[0])
        end = int(np.searchsorted(rows, wanted, "right")[0])
        if begin == end:
            return False
        at = self._cursors.get(begin, begin)
        while at < end and self._found[order[at]]:
            at += 1
        self._cursors[begin] = at
        if at == end:
            return False
        self._found[order[at]] = True
        return True


_COPY = ".original"
_INDEX = ".original.index"
_CHUNK = 1 << 20
_READS = 3
"""Number of attempts to copy a shard if its store returns different bytes on a second read."""


class UnreadableShardError(StorageError):
    """The store did not deliver the shard. Errors in writing the copy have another class."""


@contextmanager
def read_locally(shard: Shard, stage: Storage) -> Iterator[Shard]:
    """The local shard, or a copy of the remote shard in `stage`. The copy is removed at the end.

    Each copy is in a folder of its own, because an engine may run a task twice at the same time.

    A damaged copy is used only if a second read of the store gave the same bytes.
    """
    if shard.storage.local_path(shard.path) is not None:
        yield shard
        return
    folder = f".original.{secrets.token_hex(8)}.tmp"
    place = stage.below(folder)
    try:
        with _reading():
            index = shard.storage.read(shard.index) if shard.index is not None else None
        if index is not None:
            with place.create(_INDEX, durable=False) as writer:
                writer.write(index)
        for attempt in range(1, _READS + 1):
            try:
                _copy(shard, place)
                break
            except TransferError as error:
                if attempt == _READS:
                    raise UnreadableShardError(error.message) from error
        yield replace(shard, storage=place, path=_COPY, index=_INDEX if index is not None else None)
    finally:
        stage.remove(folder)


def _copy(shard: Shard, stage: Storage) -> None:
    with _reading():
        reader = shard.storage.open(shard.path)
    with reader:
        with stage.create(_COPY, durable=False) as writer:
            for at in range(0, reader.size, _CHUNK):
                with _reading():
                    piece = reader.read_at(at, _CHUNK)
                writer.write(piece)
        events = scan(stage, _COPY, declared=shard.declared)
        if any(isinstance(event, Fault) for event in events):
            with _reading():
                reader.confirm(0, reader.size)


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except TransferError:
        raise
    except StorageError as error:
        raise UnreadableShardError(error.message) from error
