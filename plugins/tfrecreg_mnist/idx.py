"""The IDX format, plain or in gzip: its header, one verifying pass, random access to its entries.

Format (Yann LeCun's MNIST page): two zero bytes, a type byte, the number of dimensions, then each
dimension as u32 big-endian, then the data, row-major, big-endian. Only type 0x08 (u8) is read.
Whether a file is gzip (RFC 1952) is detected by its first bytes, never by its name.
"""

from __future__ import annotations

import io
import os
import tempfile
import weakref
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from math import prod
from struct import unpack
from typing import IO, NamedTuple

from tfrecreg.api import RawDataError, Storage, UsageError, safe

_BLOCK = 1 << 20
"""Bytes read or decompressed at a time."""
_HELD = 64 << 20
"""Data of at most this many bytes is held in memory: labels, and as many images as MNIST has.
A shuffle reads entries in random order, and a system call for each is a tenth of a build's time."""
_MAX_PIXELS = 1 << 26
"""Maximum bytes of one entry. A header with more is refused, so that it cannot fill the memory."""

_U8 = 0x08
_TYPES = {0x08: "u8", 0x09: "i8", 0x0B: "int16", 0x0C: "int32", 0x0D: "float32", 0x0E: "float64"}
_GZIP = b"\x1f\x8b"
_GIT_LFS = b"version https://git-lfs"
_OTHER_FORMATS = (
    (_GZIP, "gzip inside gzip"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\xfd7zXZ", "xz"),
    (b"BZh", "bzip2"),
    (b"\x28\xb5\x2f\xfd", "zstandard"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"<", "an HTML or XML page"),
)


class IdxHeader(NamedTuple):
    """The header of one file."""

    gzip: bool
    """Whether the IDX is inside gzip."""
    stored: int
    """Size of the file in bytes."""
    shape: tuple[int, ...]
    """All dimensions, none of them zero. The first one counts the entries."""

    @property
    def start(self) -> int:
        """Size of the header in bytes."""
        return 4 + 4 * len(self.shape)

    @property
    def entry_size(self) -> int:
        """Bytes of one entry: the pixels of an image, or 1 for a label."""
        return prod(self.shape[1:])

    @property
    def decoded(self) -> int:
        """Bytes of the whole IDX, header and data."""
        return self.start + prod(self.shape)


def read_idx_header(raw: Storage, path: str, dimensions: int) -> IdxHeader:
    """Read a file's header, and check everything that can be checked without the data."""
    with raw.open(path) as reader:
        stored = reader.size
        head = reader.read_at(0, 64)
    gzip = head.startswith(_GZIP)
    if gzip:
        head = b""
        with closing(_gunzip(raw, path)) as blocks:
            for block in blocks:
                head += block[:64]
                if len(head) >= 64:
                    break
    header = IdxHeader(gzip, stored, _parse_shape(head, path, dimensions))
    if not gzip:
        _check_size(header, stored, path)
    return header


def read_data(raw: Storage, path: str, header: IdxHeader) -> Iterator[bytes]:
    """The data after the header, block by block, in bounded memory."""
    found = 0
    with closing(_gunzip(raw, path) if header.gzip else _blocks(raw, path, _BLOCK)) as blocks:
        for block in blocks:
            skipped = max(header.start - found, 0)
            found += len(block)
            if found > header.decoded:
                break
            if len(block) > skipped:
                yield block[skipped:]
    _check_size(header, found, path)


class IdxEntries:
    """Random access to the entries of one file.

    Large data inside gzip is decompressed once, into a temporary file without a name, which goes
    with this object or with the process. Not picklable: each process opens its own.
    """

    def __init__(self, raw: Storage, path: str, dimensions: int) -> None:
        self._path = path
        self.header = header = read_idx_header(raw, path, dimensions)
        self._start = 0
        self._read_at: Callable[[int, int], bytes]
        if header.decoded <= _HELD:
            held = io.BytesIO()
            held.writelines(read_data(raw, path, header))
            data = held.getvalue()
            self._read_at = lambda start, length: data[start : start + length]
        elif header.gzip:
            file = _unpack(raw, path, header)
            self._read_at = lambda start, length: os.pread(file.fileno(), length, start)
            weakref.finalize(self, file.close)
        else:
            reader = raw.open(path)
            self._read_at = reader.read_at
            self._start = header.start
            weakref.finalize(self, reader.close)

    def entry(self, index: int) -> bytes:
        """The bytes of the entry number `index`, from 0."""
        length = self.header.entry_size
        inside = 0 <= index < self.header.shape[0]
        data = self._read_at(self._start + index * length, length) if inside else b""
        if len(data) != length:
            problem = f"has no entry {index}: it changed during the build"
            raise _error(self._path, problem, hint="build again")
        return data


def _unpack(raw: Storage, path: str, header: IdxHeader) -> IO[bytes]:
    """The data of a gzip file, in a temporary file."""
    file: IO[bytes] | None = None
    try:
        file = tempfile.TemporaryFile(prefix="tfrecreg-")  # noqa: SIM115  the caller closes it
        file.writelines(read_data(raw, path, header))
        file.flush()
    except BaseException as error:
        if file is not None:
            with suppress(OSError):  # there is no room for the buffered bytes either
                file.close()
        if not isinstance(error, OSError):
            raise
        raise UsageError(
            f"cannot decompress `{safe(path)}` into a temporary file of {header.decoded} bytes: "
            f"{safe(error.strerror or str(error))}",
            hint="set TMPDIR to a folder with room for it, or decompress the raw file",
        ) from error
    return file


def _blocks(raw: Storage, path: str, size: int) -> Generator[bytes, None, None]:
    """The file as it is stored, in blocks of at most `size` bytes."""
    with raw.open(path) as reader:
        position = 0
        while data := reader.read_at(position, size):
            position += len(data)
            yield data


def _gunzip(raw: Storage, path: str) -> Generator[bytes, None, None]:
    """The content of a gzip file of any number of members, in blocks of at most `_BLOCK` bytes."""
    content = 0
    inflate = zlib.decompressobj(wbits=31)
    # zlib copies the input that it leaves over: small blocks, for files of many tiny members.
    for data in _blocks(raw, path, 1 << 16):
        while data:
            if inflate.eof:
                # tar and tapes pad with zeros between and after members.
                data = data.lstrip(b"\0")
                if not data:
                    break
                inflate = zlib.decompressobj(wbits=31)
            try:
                block = inflate.decompress(data, _BLOCK)
            except zlib.error as error:
                reason = str(error).rpartition(": ")[2]
                raise _error(
                    path, f"is damaged: gzip fails after {content} bytes of content: {reason}"
                ) from error
            content += len(block)
            if block:
                yield block
            data = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
    if not inflate.eof:
        raise _error(path, f"is truncated: its gzip stream ends after {content} bytes of content")


def _parse_shape(head: bytes, path: str, dimensions: int) -> tuple[int, ...]:
    if not head:
        raise _error(path, "is empty")
    if head.startswith(_GIT_LFS):
        problem = "is a git-lfs pointer, not the file it stands for"
        raise _error(path, problem, hint="run `git lfs pull`")
    expected = bytes((0, 0, _U8, dimensions))
    if head[:2] != expected[:2]:
        known = next((f" ({name})" for start, name in _OTHER_FORMATS if head.startswith(start)), "")
        raise _error(
            path,
            f"is not an IDX file: expected {expected.hex(' ')} at its start, "
            f"found {head[:4].hex(' ')}{known}",
            hint="unpack or fetch it again: IDX is read plain or inside gzip",
        )
    if len(head) < 4:
        raise _error(path, "is truncated: it ends inside its header")
    if head[2] != _U8:
        kind = _TYPES.get(head[2], "an unknown type")
        raise _error(
            path,
            f"holds {kind} (IDX type 0x{head[2]:02X}), expected u8 (IDX type 0x08)",
            hint="convert it to u8, or take it out of the folder: this source reads u8 only",
        )
    if head[3] != dimensions:
        raise _error(
            path,
            f"has {head[3]} dimension{'s' * (head[3] != 1)}, expected {dimensions}",
            hint="labels have 1 dimension, images have 3: check that this is the right file",
        )
    if len(head) < 4 + 4 * dimensions:
        raise _error(path, "is truncated: it ends inside its header")
    shape: tuple[int, ...] = unpack(f">{dimensions}I", head[4 : 4 + 4 * dimensions])
    if 0 in shape:
        raise _error(
            path,
            f"holds nothing: its header says {_times(shape)}",
            hint="take it out of the folder, or fetch it again",
        )
    if prod(shape[1:]) > _MAX_PIXELS:
        raise _error(
            path,
            f"has images of {_times(shape[1:])} pixels, more than {_MAX_PIXELS}",
            hint="its header is damaged, or such images need another source",
        )
    return shape


def _check_size(header: IdxHeader, found: int, path: str) -> None:
    says = f"its header says {_times(header.shape)}, {header.decoded} bytes with the header"
    if found < header.decoded:
        raise _error(path, f"is truncated: {says}, found {found}")
    if found > header.decoded:
        raise _error(path, f"has bytes after its data: {says}, found more")


def _times(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape))


def _error(
    path: str,
    problem: str,
    hint: str = "fetch it again, and compare its checksum with the publisher's",
) -> RawDataError:
    return RawDataError(f"`{safe(path)}` {problem}", hint=hint)
