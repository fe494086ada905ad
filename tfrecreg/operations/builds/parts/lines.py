"""Compressed lists: a line of JSON for each entry, hashed before compression.

The JSON is ASCII, so that names that are not UTF-8 keep their bytes as surrogate escapes. The
digest is that of the text: another zlib compresses it to other bytes.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import msgspec
from blake3 import blake3

from tfrecreg.errors import UsageError
from tfrecreg.storage.interface import Readable, Reader, Storage, Writer
from tfrecreg.text import safe

R = TypeVar("R")

WRITE_AGAIN = "write the plan again, into a new folder: `tfrecreg parts plan NAME DIR`"
"""The hint where a plan was changed."""
_CHUNK = 1 << 18
_ROWS = 4096
"""Rows that are encoded at a time."""
_LINE_LIMIT = 1 << 26
"""Longest line that is read, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDigest:
    """The text of a compressed list."""

    lines: int
    bytes: int
    """Size of the text, before compression."""
    blake3: str
    """Hex digest of the text."""


def write_lines(storage: Storage, path: str, rows: Iterable[Any]) -> TextDigest:
    """Write a list, one row after the other.

    Args:
        rows: data that JSON can hold; bytes become base64.
    """
    hasher = blake3()
    size = count = 0
    # Neither a name nor a time: equal lists make equal files.
    with storage.create(path) as writer, gzip.GzipFile("", "wb", 6, _ToWriter(writer), 0) as packed:
        left = iter(rows)
        while some := list(islice(left, _ROWS)):
            data = _encoded(some)
            hasher.update(data)
            size += len(data)
            count += len(some)
            packed.write(data)
    return TextDigest(lines=count, bytes=size, blake3=hasher.hexdigest())


def _encoded(rows: Sequence[Any]) -> bytes:
    with suppress(UnicodeEncodeError):  # it knows no surrogate escapes
        data = msgspec.json.Encoder().encode_lines(rows)
        if data.isascii():
            return data
    return b"".join(map(json_line, rows))


def json_line(row: Any) -> bytes:
    """One line: JSON in ASCII, with sorted keys and without spaces. Bytes are base64."""
    text = json.dumps(row, separators=(",", ":"), sort_keys=True, default=_base64)
    return text.encode("ascii") + b"\n"


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def read_lines(
    storage: Readable, path: str, said: TextDigest, row: type[R], *, where: str
) -> Iterator[R]:
    """The rows of a list, in bounded memory. The digest is compared at the end.

    Args:
        said: what it has to be.

    Raises:
        UsageError: it is not the list that was written.
    """
    hasher = blake3()
    size = count = 0
    decoder = msgspec.json.Decoder(row)
    with storage.open(path) as reader:
        packed = gzip.GzipFile(mode="rb", fileobj=io.BufferedReader(_FromReader(reader), _CHUNK))
        try:
            buffer = io.BufferedReader(packed, _CHUNK)
            while data := buffer.read(_CHUNK):
                # A longer line is cut, and then it does not parse.
                data += b"" if data.endswith(b"\n") else buffer.readline(_LINE_LIMIT)
                size += len(data)
                if size > said.bytes:
                    raise _changed(where)
                count += data.count(b"\n")
                hasher.update(data)
                try:
                    yield from decoder.decode_lines(data)
                except msgspec.DecodeError:  # it knows no surrogate escapes
                    lines = data.removesuffix(b"\n").split(b"\n")
                    yield from (msgspec.convert(json.loads(line), row) for line in lines)
        except (EOFError, OSError, RecursionError, ValueError, zlib.error):
            raise _changed(where) from None
    if TextDigest(lines=count, bytes=size, blake3=hasher.hexdigest()) != said:
        raise _changed(where)


def _changed(where: str) -> UsageError:
    return UsageError(
        f"`{safe(where, limit=1000)}` is not the file that the plan names: it was changed or "
        "damaged",
        hint=WRITE_AGAIN,
    )


class _ToWriter(io.RawIOBase):
    """A writer of a storage as a file."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._writer.write(bytes(data))
        return len(data)


class _FromReader(io.RawIOBase):
    """A reader of a storage as a file."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._reader.read_at(self._at, len(buffer))
        self._at += len(data)
        buffer[: len(data)] = data
        return len(data)
