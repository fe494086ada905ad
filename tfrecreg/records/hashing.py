"""Hashing files: those that are read again, and those that pass by as they are written.

What passes by is hashed beside the work on it: hashlib and blake3 let go of the GIL for large
pieces, so a thread hashes on another core while the next records are made or checked.
"""

from __future__ import annotations

import hashlib
import os
import sys
import weakref
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import NamedTuple

from blake3 import blake3

from tfrecreg.storage.interface import Storage

_LARGE = 2 << 20
"""Pieces of this size are hashed at once: to let them wait would take too much memory."""

_CHUNK = 1 << 20

_REUSED = 8 << 20
"""glibc gives memory back to the system and takes it again with every piece, which costs as much as
hashing it, until a block of this size was freed once: see mallopt(3), M_MMAP_THRESHOLD."""

Piece = bytes | memoryview


class FileDigest(NamedTuple):
    """Size and digests of a file."""

    bytes: int
    blake3: str
    """Hex digest; verified by `check`."""
    sha256: str
    """Hex digest, for other tools."""


def hash_file(storage: Storage, path: str) -> tuple[int, str]:
    """Read a file and return its bytes and its blake3 as hex, in bounded memory.

    Raises:
        StorageError: the file system refused.
    """
    hasher = blake3()
    position = 0
    with storage.open(path) as reader:
        while chunk := reader.read_at(position, _CHUNK):
            hasher.update(chunk)
            position += len(chunk)
    return position, hasher.hexdigest()


class HashThread:
    """Hands pieces to hashers in a thread of its own, in their order.

    The thread ends with :meth:`close`, or when nobody holds this any more: whoever is stopped by
    an error needs to do nothing.

    Args:
        hashers: what takes each piece: the `update` of a hash.
        ahead: pieces that may wait. Few stay in the processor's caches; many let one side rest.
    """

    def __init__(self, *hashers: Callable[[Piece], object], ahead: int = 2) -> None:
        bytes(_REUSED)
        self._hashers = hashers
        self._process = os.getpid()
        self._ahead = ahead
        self._room = Semaphore(ahead)
        self._queue: SimpleQueue[Piece | None] = SimpleQueue()
        arguments = (self._queue, self._room, hashers)
        self._thread = Thread(target=_work, args=arguments, name="tfrecreg-hash", daemon=True)
        self._thread.start()
        self._end = weakref.finalize(self, self._queue.put, None)

    @staticmethod
    def pays() -> bool:
        """Whether a core may be idle: not in a worker process, which has others beside it."""
        # Importing it takes a while, and whoever is a worker has imported it.
        workers = sys.modules.get("multiprocessing")
        is_worker = workers is not None and workers.parent_process() is not None
        return not is_worker and (os.cpu_count() or 1) > 1

    @property
    def is_lost(self) -> bool:
        """Whether this is a fork, in which the thread is not."""
        return self._process != os.getpid()

    def update(self, piece: Piece) -> None:
        """Take in the next piece; it is hashed later, unless it is a large one."""
        self._room.acquire()
        if len(piece) < _LARGE:
            self._queue.put(piece)
            return
        for _ in range(self._ahead - 1):  # until nothing waits
            self._room.acquire()
        for update in self._hashers:
            update(piece)
        self._room.release(self._ahead)

    def close(self) -> None:
        """Wait until all is hashed. Safe to call again."""
        self._end()
        self._thread.join()


def _work(
    queue: SimpleQueue[Piece | None], room: Semaphore, hashers: Sequence[Callable[[Piece], object]]
) -> None:
    """All that the thread does. It must not hold the object whose end is its own."""
    while (piece := queue.get()) is not None:
        for update in hashers:
            update(piece)
        del piece
        room.release()


class FileHasher:
    """blake3 and sha256 of a file that comes in pieces.

    The first piece is hashed in place, for most small files have no other; with the second one
    the thread begins.
    """

    def __init__(self) -> None:
        self._blake3 = blake3()
        self._sha256 = hashlib.sha256()
        self._bytes = 0
        self._pieces = 0
        self._thread: HashThread | None = None

    def update(self, piece: bytes) -> None:
        """Take in the next piece; it may be hashed later."""
        self._bytes += len(piece)
        self._pieces += 1
        if self._pieces == 1:
            self._blake3.update(piece)
            self._sha256.update(piece)
            return
        if self._thread is None:
            self._thread = HashThread(self._blake3.update, self._sha256.update, ahead=8)
        self._thread.update(piece)

    def close(self) -> None:
        """Wait until all is hashed. Safe to call again."""
        if self._thread is not None:
            self._thread.close()
            self._thread = None

    def digest(self) -> FileDigest:
        """Size and digests of all pieces."""
        self.close()
        return FileDigest(self._bytes, self._blake3.hexdigest(), self._sha256.hexdigest())
