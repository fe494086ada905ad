"""How large a gzip file is when its compression is taken off: a base of size inflation."""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.errors import StorageError
from tfrecreg.records.file import HashedFile
from tfrecreg.records.gzip import MAGIC, MEMBER_BYTES
from tfrecreg.records.inflate import GzipStream
from tfrecreg.storage.interface import Storage
from tfrecreg.text import safe

__all__ = ["decoded_size", "inflated"]


def decoded_size(storage: Storage, path: str) -> int | None:
    """Bytes that a gzip file decompresses to; None where it is no gzip, or damaged.

    Reads the whole file in bounded memory: the size in the trailer is only that of the last
    member, modulo 2^32.

    Raises:
        StorageError: the file cannot be read.
    """
    with storage.open(path) as reader:
        if reader.read_at(0, len(MAGIC)) != MAGIC:
            return None
        stream = GzipStream(HashedFile(reader, digest=False), digest=False)
        for piece in _windows(stream):
            del piece
        damage = stream.interruption
        return stream.position if damage is None or damage.padding else None


def inflated(storage: Storage, path: str) -> Iterator[bytes]:
    """What a gzip file of our own decompresses to, in pieces; nothing of an empty file.

    Raises:
        StorageError: the file cannot be read, or is damaged.
    """
    with storage.open(path) as reader:
        if not reader.size:
            return
        stream = GzipStream(HashedFile(reader, digest=False), digest=False)
        yield from _windows(stream)
        if stream.interruption is not None:
            raise StorageError(f"`{safe(path)}` is damaged", hint="is the disk well?")


def _windows(stream: GzipStream) -> Iterator[bytes]:
    while piece := stream.window(stream.position, MEMBER_BYTES):
        yield piece
