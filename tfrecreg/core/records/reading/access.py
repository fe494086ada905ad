"""Reads records by number, without reading the records before them.

::

    from tfrecreg import Records, read

    read("train.tfrecord", 1234)  # one payload
    with Records("train.tfrecord") as records:
        len(records), records[-1], records[10:20]

Records have the same numbers as in `tfrecreg check`: from 0, including damaged records. Reading a
payload verifies both checksums of its record. In gzip, it also verifies the member.
"""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, SupportsIndex, cast, overload

import numpy as np
import numpy.typing as npt

from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.records.frame_scan import FrameScanner
from tfrecreg.core.records.framing import (
    FOOTER_BYTES,
    HEADER_BYTES,
    OVERHEAD,
    header_length,
    masked_crc,
    sound_payload,
)
from tfrecreg.core.records.gzip_access import DamagedGzipError, MemberReader
from tfrecreg.core.records.reader import SAME_BYTES, scan
from tfrecreg.core.records.reading.offsets import RecordOffsets, find_offsets
from tfrecreg.core.records.scanner import make_frame_scanner, record_reader
from tfrecreg.core.storage.interface import Readable, Reader
from tfrecreg.core.storage.raw import storage_of
from tfrecreg.core.values.errors import (
    DamagedRecordError,
    NoSuchRecordError,
    StorageError,
    TransferError,
)
from tfrecreg.core.values.text import count, safe

Path = str | os.PathLike[str]

_GAP_BYTES = 1 << 12
"""Maximum distance in bytes between records that are read together."""
_JOINED_BYTES = 1 << 18
"""Maximum size in bytes of records that are read together."""
_ALONE_BYTES = 1 << 15
"""Payloads of at least this size are read alone: that is faster than copying them from a frame."""
_LEAST_BYTES = 2
"""Minimum size of a payload that is read into a new bytes object: Python shares smaller objects."""


@overload
def read(path: Path, record: SupportsIndex, *, index: Path | None = None) -> bytes: ...
@overload
def read(
    path: Path, record: slice | Iterable[SupportsIndex], *, index: Path | None = None
) -> list[bytes]: ...
def read(
    path: Path,
    record: SupportsIndex | slice | Iterable[SupportsIndex],
    *,
    index: Path | None = None,
) -> bytes | list[bytes]:
    """Read one record of a shard by its number, or several records.

    For many reads of one shard, make a :class:`Records`: it finds the places of the records only
    once.

    Args:
        path: the shard, plain or gzip.
        record: a number, a slice, or several numbers, from 0. Negative ones count from the end.
        index: an index of the shard, as for :class:`Records`.

    Returns:
        The payload, or the payloads as a list, in the requested order.

    Raises:
        NoSuchRecordError: a number is out of range. The error is also an IndexError.
        DamagedRecordError: a checksum of a record is wrong.
        UsageError: the file is not a TFRecord, or `index` is not its index.
        StorageError: a file cannot be read.

    Example:
        >>> shard = "registry/data/mnist/mnist-test.tfrecord-00000-of-00002"
        >>> payload = tr.read(shard, 7)
        >>> tr.read(shard, [3, 7])[1] == payload
        True
    """
    with Records(path, index=index) as records:
        if isinstance(record, slice):
            return list(records[record])
        # A number can be an array without dimensions, which is not iterable.
        if isinstance(record, Iterable) and getattr(record, "ndim", None) != 0:
            return [records[each] for each in record]
        return records[cast("SupportsIndex", record)]


class Records(Sequence[bytes]):
    """The payloads of one shard, by number. A payload is read when it is accessed.

    A slice is another :class:`Records` of the same file; slicing reads nothing. The object can be
    pickled (about 16 bytes per record), used after a fork, and shared by threads, so the workers of
    a data loader can use it. It is a context manager. Reading after :meth:`close` opens the file
    again.

    Args:
        path: the shard, plain or gzip, with any name.
        index: the file with the places of the records: an index of this package
            (``index/<shard>.index`` of a build), or a sidecar of another tool (lines of
            ``offset size``, for plain files). If `index` is None, the index that the build wrote
            next to the shard is used, if it matches the shard. Without an index, the shard is read
            once: the headers of a plain file, or all of a gzip file. Gzip of other tools often has
            a single member. Then reading an earlier record decompresses the file from its
            beginning.
        storage: the storage of `path` and `index`; None for local files.
        name: the name of the shard in errors; None for `path`.

    Raises:
        UsageError: the file is not a TFRecord, or `index` is not its index.
        ManifestError: `index` is a damaged index of this package.
        StorageError: a file cannot be read.

    Example:
        >>> shard = "registry/data/mnist/mnist-test.tfrecord-00000-of-00002"
        >>> records = tr.Records(shard)
        >>> len(records), len(records[-1]) == int(records.lengths[-1])
        (30, True)
        >>> first, third = records.read_each([0, 2])
        >>> records.close()
    """

    def __init__(
        self,
        path: Path,
        *,
        index: Path | None = None,
        storage: Readable | None = None,
        name: str | None = None,
    ) -> None:
        self.path = os.fspath(path)
        """The path that was given."""
        self._shown = safe(name if name is not None else self.path, limit=1000)
        place, inside = _locate(path, storage)
        sidecar = _locate(index, storage) if index is not None else None
        self._places = find_offsets(place, inside, sidecar, self._shown)
        self._numbers = range(len(self._places.offsets))
        self._file = _File(place, inside, self._places, self._shown)

    @classmethod
    def located(cls, storage: Readable, path: str, places: RecordOffsets, *, name: str) -> Records:
        """The records of a shard. `places` has the records' offsets, so no file is opened."""
        records = object.__new__(cls)
        records.path = path
        records._shown = safe(name, limit=1000)
        records._places = places
        records._numbers = range(len(places.offsets))
        records._file = _File(storage, path, places, records._shown)
        return records

    def read_each(self, records: Iterable[SupportsIndex]) -> list[bytes | DamagedRecordError]:
        """The payloads at these positions, in the requested order.

        Reads are sorted by their place in the shard, and neighbouring records are read together.

        Args:
            records: positions, as for ``records[…]``; a position may occur more than once.

        Returns:
            One entry for each position: the payload, or the error that ``records[…]`` raises.

        Raises:
            NoSuchRecordError: a position is out of range.
            StorageError: the file cannot be read.
        """
        return self._file.each(np.array([self.number(record) for record in records], np.int64))

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Shape (records,): the byte of the decompressed stream at which each record starts."""
        return self._places.offsets[self._selected]

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Shape (records,): size of each payload in bytes; -1 for a record that is known to be
        lost.
        """
        return self._places.lengths[self._selected]

    @property
    def damaged(self) -> tuple[int, ...]:
        """The positions of known damaged records.

        If the whole shard was read to find its records, all damaged records are known. Otherwise
        damage to data shows only when a record is read; `tfrecreg check` reads all records.
        """
        return tuple(int(each) for each in np.flatnonzero(self.lengths < 0))

    def close(self) -> None:
        """Close the file, which this sequence shares with its slices. The file is opened again when
        it is needed.
        """
        self._file.close()

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, record: SupportsIndex) -> bytes: ...
    @overload
    def __getitem__(self, record: slice) -> Records: ...
    def __getitem__(self, record: SupportsIndex | slice) -> bytes | Records:
        if isinstance(record, slice):
            part = object.__new__(Records)
            part.__dict__.update(self.__dict__, _numbers=self._numbers[record])
            return part
        return self._file.payload(self.number(record))

    def number(self, record: SupportsIndex) -> int:
        """The number that the record at position `record` has in the shard, and in findings.

        Raises:
            NoSuchRecordError: the position is out of range.
        """
        position = operator.index(record)
        try:
            return self._numbers[position]
        except IndexError:
            what = "shard" if len(self) == len(self._places.offsets) else "slice"
            raise NoSuchRecordError(
                f"there is no record {position} in `{self._shown}`: the {what} has "
                f"{count(len(self), 'record')}"
            ) from None

    def __iter__(self) -> Iterator[bytes]:
        return map(self._file.payload, self._numbers)

    def __repr__(self) -> str:
        return f"<Records {len(self)} of {self._shown}>"

    def __enter__(self) -> Records:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def _selected(self) -> slice:
        numbers = self._numbers
        if not numbers:
            return slice(0, 0)
        # In a slice, a stop of -1 would count from the end.
        return slice(numbers.start, numbers.stop if numbers.stop >= 0 else None, numbers.step)


class _File:
    """The file of the shard, which is opened when it is needed."""

    def __init__(self, storage: Readable, path: str, places: RecordOffsets, shown: str) -> None:
        self._storage = storage
        self._path = path
        self._places = places
        self._shown = shown
        self._read = None if places.gzip else record_reader()
        # Empty, or with the one open file: with `setdefault`, only one thread can add a file.
        self._opened: dict[str, tuple[Reader, MemberReader | None]] = {}

    def payload(self, number: int) -> bytes:
        """The verified payload of the record with this number."""
        try:
            return self._payload(number)
        except DamagedRecordError as error:
            reader, members = self._open()
            start, stop = 0, reader.size
            length = int(self._places.lengths[number])
            if members is None and not self._places.gzip and length >= 0:
                start = int(self._places.offsets[number])
                stop = start + length + OVERHEAD
            if not reader.forget(start, stop):
                raise
            first = error
        # Bytes of a store may have been damaged in transfer, or in a cache.
        self.close()
        try:
            return self._payload(number)
        except DamagedRecordError as error:
            if error.message != first.message:
                raise TransferError(
                    f"record {number} of `{self._shown}` had different bytes on a second read"
                ) from None
            message = f"{error.message}; {SAME_BYTES}"
            raise DamagedRecordError(message, hint=error.hint) from None

    def _payload(self, number: int) -> bytes:
        places = self._places
        if number in places.faults:
            fault = places.faults[number]
            raise self._damaged(number, f"{fault.code}: {fault.detail}")
        length = int(places.lengths[number])
        if length < 0:
            raise self._damaged(number, "it is lost: the damage begins before this record")
        if places.gzip and not places.members:
            return self._behind_damage(number, length)
        reader, members = self._open()
        start, size = int(places.offsets[number]), length + OVERHEAD
        payload = self._alone(start, length)
        if payload is not None:
            return payload
        try:
            frame = members.read(start, size) if members else reader.read_at(start, size)
        except DamagedGzipError as error:
            raise self._damaged(number, f"CRC007: {error}") from None
        header, footer = frame[:HEADER_BYTES], frame[HEADER_BYTES + length :]
        payload = frame[HEADER_BYTES : HEADER_BYTES + length]
        stated = header_length(header)
        crc, stored = masked_crc(payload), int.from_bytes(footer, "little")
        if stated is None:
            crc, stored = masked_crc(header[:8]), int.from_bytes(header[8:], "little")
            why = f"CRC001: length checksum should be 0x{crc:08x}, found 0x{stored:08x}"
        elif stated != length:
            why = f"its length should be {length} according to the index, found {stated}"
        elif len(footer) < FOOTER_BYTES:
            why = f"CRC003: the file ends inside the record, after {len(frame)} bytes"
        elif crc != stored:
            why = f"CRC002: data checksum should be 0x{crc:08x}, found 0x{stored:08x}"
        else:
            return payload
        raise self._damaged(number, why)

    def each(self, numbers: npt.NDArray[np.int64]) -> list[bytes | DamagedRecordError]:
        """One entry for each of these records: the payload, or an error for a damaged record."""
        found: dict[int, bytes | DamagedRecordError] = {}
        for start, end, group in self._groups(numbers):
            frames = self._frames(start, end) if len(group) > 1 else None
            if frames is not None and _are_all_sound(frames, group):
                for number, at, length in group:
                    begin = at - start + HEADER_BYTES
                    found[number] = frames[begin : begin + length]
                continue
            for number, at, length in group:
                payload = sound_payload(frames, at - start, length) if frames is not None else None
                try:
                    # Reading the record alone finds the reason.
                    found[number] = payload if payload is not None else self.payload(number)
                except DamagedRecordError as error:
                    # The traceback would keep this frame alive, and with it the error itself and
                    # the file.
                    found[number] = error.with_traceback(None)
        return [found[number] for number in numbers.tolist()]

    def _groups(
        self, numbers: npt.NDArray[np.int64]
    ) -> Iterator[tuple[int, int, list[tuple[int, int, int]]]]:
        """Group records that lie close together. Each group has a start and an end in the stream,
        and a place for each record.

        A place has the record's number, its offset, and the length of its payload.
        """
        ordered = np.unique(numbers)
        offsets = self._places.offsets[ordered].tolist()
        lengths = self._places.lengths[ordered].tolist()
        group: list[tuple[int, int, int]] = []
        start = end = 0
        for place in zip(ordered.tolist(), offsets, lengths, strict=True):
            _, at, length = place
            stop = at + OVERHEAD + max(length, 0)
            is_apart = at - end > _GAP_BYTES or stop - start > _JOINED_BYTES
            if group and (is_apart or length >= _ALONE_BYTES):
                yield start, end, group
                group = []
            if not group:
                start = at
            group.append(place)
            end = stop
        if group:
            yield start, end, group

    def _alone(self, at: int, length: int) -> bytes | None:
        """The payload of the record at byte `at`, read and verified in one compiled call.

        None if the call is not available, or if the record is not sound. The caller then finds out
        why it is not sound.
        """
        reader, members = self._open()
        if self._read is None or members is not None or length < _LEAST_BYTES:
            return None
        found = reader.located(at, length + OVERHEAD)
        if found is None:
            return None
        handle, start, held = found
        payload = self._read(handle, start, length)
        del held
        return payload

    def _frames(self, start: int, end: int) -> bytes | None:
        """The bytes of the stream from `start` to `end`; None if they cannot be read completely."""
        if self._places.gzip and not self._places.members:
            return None
        reader, members = self._open()
        read = members.read if members else reader.read_at
        try:
            return read(start, end - start)
        except DamagedGzipError:
            return None

    def _behind_damage(self, number: int, length: int) -> bytes:
        """Read a payload from damaged gzip with the scanner, which continues after damage."""
        for event in scan(self._storage, self._path, hold_limit=max(length, 1 << 20)):
            if isinstance(event, RecordBatch) and event.first + len(event) > number:
                if event.whole and number >= event.first:
                    return event.payload(number - event.first)
                break
        raise self._damaged(number, "it no longer exists")

    def _damaged(self, number: int, why: str) -> DamagedRecordError:
        at = int(self._places.offsets[number])
        fault = self._places.faults.get(number)
        record = "" if fault is not None and fault.record is None else f"record {number} of "
        return DamagedRecordError(
            f"{record}`{self._shown}`, at byte {at}, is damaged: {why}",
            hint=f"tfrecreg check {self._shown}",
        )

    def _open(self) -> tuple[Reader, MemberReader | None]:
        opened = self._opened.get("file")
        if opened is not None:
            return opened
        places = self._places
        reader = self._storage.open(self._path)
        try:
            entry = self._storage.stat(self._path)
        except StorageError:
            reader.close()
            raise
        found = reader.size, entry.mtime_ns if entry is not None else 0
        if found != (places.size, places.mtime_ns):
            reader.close()
            raise StorageError(f"`{self._shown}` was changed since its records were counted")
        members = None
        if places.members:
            members = MemberReader(reader, places.members, places.end, proven=places.proven)
        opened = self._opened.setdefault("file", (reader, members))
        if opened[0] is not reader:
            reader.close()
        return opened

    def close(self) -> None:
        opened = self._opened.pop("file", None)
        if opened is not None:
            opened[0].close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _File, (self._storage, self._path, self._places, self._shown)

    def __del__(self) -> None:
        if hasattr(self, "_opened"):
            self.close()


_SCANNED_TOGETHER = 8
"""From this number of consecutive records on, one call of the scanner is faster than Python."""
_SCANNERS = threading.local()
"""Each thread's own scanner: threads cannot share one, because it has a buffer for its results."""


def _are_all_sound(frames: bytes, group: Sequence[tuple[int, int, int]]) -> bool:
    """Whether `frames` consists of exactly these records, and all checksums hold."""
    lengths = [length for _, _, length in group]
    if len(group) < _SCANNED_TOGETHER or sum(lengths) + OVERHEAD * len(group) != len(frames):
        return False
    scanner: FrameScanner | None = getattr(_SCANNERS, "scanner", None)
    if scanner is None:
        scanner = _SCANNERS.scanner = make_frame_scanner()
    walked = scanner(frames, 0)
    return walked.end == len(frames) and walked.lengths.tolist() == lengths


def _locate(path: Path, storage: Readable | None) -> tuple[Readable, str]:
    text = os.fspath(path)
    return (storage, text) if storage is not None else storage_of(text)
