"""Writes shards and their indexes. Shards are hashed while they are written.

Equal records give equal bytes: the output does not depend on time, machine or the sequence of
calls. For gzip it depends on the encoder: see :mod:`tfrecreg.core.records.gzip_writer`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from blake3 import blake3

from tfrecreg.core.example.decode import canonical
from tfrecreg.core.example.model import NotAnExampleError, encode
from tfrecreg.core.example.values import to_example
from tfrecreg.core.records.framing import MAX_LENGTH, OVERHEAD, frame
from tfrecreg.core.records.gzip_access import DamagedGzipError, Inflater, inflated
from tfrecreg.core.records.gzip_writer import Compression, GzipEncoder
from tfrecreg.core.records.hashing import FileDigest, FileHasher, record_digest
from tfrecreg.core.records.index import IndexBuilder
from tfrecreg.core.storage.interface import Storage, Unfinished, Writer
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.paths import expect_no_url
from tfrecreg.core.values.errors import StorageError, UsageError
from tfrecreg.core.values.text import type_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A separate file into which consecutive records of a shard were encoded. Picklable."""

    path: str
    """Path of the file in its storage."""
    bytes: int
    """Size of the file in bytes."""
    index: IndexBuilder
    """The index of the records."""
    members: list[tuple[int, int]]
    """Offsets of each gzip member in the file and in the segment's stream."""

    @property
    def stream_bytes(self) -> int:
        """Size of the decompressed segment in bytes."""
        return sum(self.index.lengths) + OVERHEAD * len(self.index)


_BUFFER = 1 << 18
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenShard:
    """The facts about a written shard, for the manifest."""

    file: FileDigest
    records: int
    payload_bytes: int
    """Total size of all payloads in bytes, without framing and compression."""
    stream_blake3: str
    """Hex digest of the decompressed stream; for a plain shard, the digest of the file."""
    index: FileDigest | None
    """Size and digests of the index; None if no index was requested."""


def hashed_write(storage: Storage, path: str, data: bytes) -> FileDigest:
    """Write a small file atomically and sync it."""
    with storage.create(path) as writer:
        writer.write(data)
    return FileDigest(len(data), blake3(data).hexdigest(), hashlib.sha256(data).hexdigest())


class _RecordWriter(Unfinished):
    """Encodes records and writes them to a file. A segment, written `apart`, is not hashed."""

    def __init__(self, file: Writer, compression: Compression, *, apart: bool = False) -> None:
        self._file = file
        self._gzip = GzipEncoder(apart=apart) if compression == "gzip" else None
        self._stream = blake3() if compression == "gzip" and not apart else None
        self._hasher = None if apart else FileHasher(ahead=8)
        self._index = IndexBuilder()
        self._parts: list[bytes] = []
        self._pending = 0
        self._bytes = 0

    def write(self, payload: bytes, *, digest: bytes, key: str) -> None:
        """Append one record."""
        if len(payload) > MAX_LENGTH:
            raise UsageError(
                f"the record of `{key}` has {len(payload)} bytes, but at most {MAX_LENGTH} fit"
            )
        self._index.add(digest, len(payload), key)
        header, footer = frame(payload)
        if self._gzip is None:
            self._put(header, payload, footer)
            return
        record = b"".join((header, payload, footer))
        self._see(record)
        self._put(self._gzip.write(record))

    def end_member(self) -> None:
        """End the current gzip member, if there is one, so that a segment can follow."""
        if self._gzip is not None:
            self._put(self._gzip.end_member())

    def abort(self) -> None:
        """Delete the unfinished files."""
        if self._hasher is not None:
            self._hasher.close()
        self._file.abort()

    def _see(self, record: bytes) -> None:
        """Add bytes to the digest of the decompressed stream. Called only for gzip."""
        if self._stream is not None:
            self._stream.update(record)

    def _put(self, *pieces: bytes) -> None:
        self._parts += pieces
        self._pending += sum(map(len, pieces))
        if self._pending >= _BUFFER:
            self._flush()

    def _flush(self) -> None:
        data = b"".join(self._parts)
        self._parts.clear()
        self._pending = 0
        self._save(data)

    def _save(self, data: bytes) -> None:
        if self._hasher is not None:
            self._hasher.update(data)
        self._file.write(data)
        self._bytes += len(data)


class ShardWriter(_RecordWriter):
    """Writes one shard, and its index. The files appear when the ``with`` block ends without an
    error.

    Attributes:
        written: sizes and digests of the shard; available after the writer is closed.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        *,
        compression: Compression = "none",
        index_path: str | None = None,
    ) -> None:
        super().__init__(storage.create(path), compression)
        self._storage = storage
        self._path = path
        self._index_path = index_path
        self._written: WrittenShard | None = None

    @property
    def written(self) -> WrittenShard:
        """Sizes and digests of the written shard."""
        if self._written is None:
            raise RuntimeError(f"the shard `{self._path}` is not closed yet")
        return self._written

    def append(self, storage: Storage, segment: Segment) -> None:
        """Append the records of a segment.

        The file of the segment is usually appended unchanged. If TensorFlow might stop reading at
        the end of one of the segment's members, the records are compressed again. This is necessary
        for about one in ten thousand segments.
        """
        self.end_member()
        self._index.extend(segment.index)
        gzip = self._gzip
        try:
            if gzip is not None and not gzip.fits(segment.members, segment.bytes):
                for record in _records(storage, segment):
                    self._see(record)
                    self._put(gzip.write(record))
                self.end_member()
                return
            self._flush()
            for piece in _pieces(storage, segment):
                self._save(piece)
            if gzip is not None:
                gzip.skip(segment.bytes, segment.stream_bytes, segment.members)
                for piece in inflated(storage, segment.path):
                    self._see(piece)
        except DamagedGzipError as error:
            raise StorageError(f"`{segment.path}` is damaged: {error}") from None

    def close(self) -> WrittenShard:
        """Finish the shard and its index. Both are durable when this method returns."""
        if self._written is not None:
            return self._written
        if self._gzip is not None:
            self._put(self._gzip.close())
        self._flush()
        self._file.close()
        index = None
        if self._index_path is not None:
            members = self._gzip.members if self._gzip is not None else ()
            index = hashed_write(self._storage, self._index_path, self._index.render(members))
        assert self._hasher is not None
        file = self._hasher.digest()
        self._written = WrittenShard(
            file=file,
            records=len(self._index),
            payload_bytes=sum(self._index.lengths),
            stream_blake3=file.blake3 if self._stream is None else self._stream.hexdigest(),
            index=index,
        )
        return self._written


def _pieces(storage: Storage, segment: Segment) -> Iterator[bytes]:
    """Yield the segment's file in pieces, up to the size that was written."""
    done = 0
    with storage.open(segment.path) as reader:
        while done < segment.bytes:
            piece = reader.read_at(done, min(_CHUNK, segment.bytes - done))
            if not piece:
                raise StorageError(
                    f"`{segment.path}` has {done} bytes, but {segment.bytes} were written"
                )
            done += len(piece)
            yield piece


def _records(storage: Storage, segment: Segment) -> Iterator[bytes]:
    """Yield the records of a compressed segment, each with its frame."""
    with storage.open(segment.path) as reader:
        inflater = Inflater(reader, 0, 0)
        for length in segment.index.lengths:
            record = inflater.exactly(length + OVERHEAD)
            if len(record) < length + OVERHEAD:
                raise DamagedGzipError("it is shorter than when it was written")
            yield record


class SegmentWriter(_RecordWriter):
    """Writes some records of a shard into a separate file, which is not synced."""

    def __init__(self, storage: Storage, path: str, compression: Compression) -> None:
        super().__init__(storage.create(path, durable=False), compression, apart=True)
        self._path = path

    def close(self) -> Segment:
        """Finish the segment."""
        self.end_member()
        self._flush()
        self._file.close()
        return Segment(
            path=self._path,
            bytes=self._bytes,
            index=self._index,
            members=self._gzip.members if self._gzip is not None else [],
        )


class TFRecordWriter:
    """Writes one TFRecord file, which TensorFlow and all other readers can read.

    The file appears when the ``with`` block ends, complete and synced to disk. If the block ends
    with an error, nothing appears. Equal records give equal bytes.

    Args:
        path: path of the file. An existing file is replaced.
        compression: ``none`` or ``gzip``. None chooses gzip if the name ends in ``.gz``.
        index: whether to write ``index/NAME.index`` next to the file. The index has the keys of
            the records, and lets readers find records by number without reading the file first.

    Attributes:
        records: number of records so far.

    Example:
        >>> with tr.TFRecordWriter("points.tfrecord") as file:
        ...     file.write({"x": [0.0, 1.0], "label": 0})
        ...     file.write({"x": [1.0, 0.0], "label": 1})
        >>> file.records
        2
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        compression: Literal["none", "gzip"] | None = None,
        index: bool = False,
    ) -> None:
        expect_no_url(os.fsdecode(path), "records can be written only to files on this machine")
        target = Path(os.fsdecode(path))
        if compression is None:
            compression = "gzip" if target.suffix == ".gz" else "none"
        if compression not in ("none", "gzip"):
            raise UsageError(f"expected the compression `none` or `gzip`, found `{compression}`")
        # Replacing a device or a named pipe would break other programs.
        storage = LocalStorage(target.parent)
        entry = storage.stat(target.name, follow="all")
        if entry is not None and entry.kind not in ("file", "link"):
            raise UsageError(f"`{target}` is not a regular file")
        self.records = 0
        self._path = str(target)
        self._shard = ShardWriter(
            storage,
            target.name,
            compression=compression,
            index_path=f"index/{target.name}.index" if index else None,
        )
        self._keys: set[str] | None = set() if index else None
        self._is_closed = False

    def write(self, record: bytes | Mapping[str, object], *, key: str | None = None) -> None:
        """Append one record.

        Args:
            record: the payload, or a dictionary, which :func:`tfrecreg.to_example` turns into an
                example. An example is written in canonical form.
            key: key of the record in the index; None for the record's number.

        Raises:
            UsageError: the record is too large, or is neither bytes nor a dictionary that an
                example can store without loss. The key is not a string, or an earlier record has
                it. The writer is closed.
            StorageError: the file cannot be written.
        """
        if self._is_closed:
            raise UsageError(f"the writer of `{self._path}` is closed")
        key = str(self.records) if key is None else key
        if not isinstance(key, str):
            raise UsageError(f"a key is a string, found {type_text(key)}")
        if isinstance(record, Mapping):
            try:
                payload = encode(to_example(record))
            except (UsageError, ValueError) as error:
                raise UsageError(f"record `{key}`: {error}") from None
            same = payload
        elif isinstance(record, (bytes, bytearray, memoryview)):
            payload = same = bytes(record)
            with suppress(NotAnExampleError):  # a payload of another kind stays unchanged
                same = canonical(payload)
        else:
            raise UsageError(
                f"record `{key}` is {type_text(record)}, expected bytes or a dictionary",
                hint="`message.SerializeToString()` returns the bytes of a protobuf message",
            )
        if self._keys is not None and key in self._keys:
            raise UsageError(f"the key `{key}` is taken by an earlier record")
        self._shard.write(payload, digest=record_digest(same), key=key)
        if self._keys is not None:
            self._keys.add(key)
        self.records += 1

    def close(self) -> WrittenShard:
        """Finish the file. It is durable when this method returns.

        Raises:
            StorageError: the file cannot be written.

        Example:
            >>> file = tr.TFRecordWriter("points.tfrecord")
            >>> file.write({"x": [0.0, 1.0]})
            >>> file.close().records
            1
        """
        self._is_closed = True
        return self._shard.close()

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._is_closed = True
        self._shard.__exit__(kind, *rest)
