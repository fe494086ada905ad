"""Computes digests of files, and digests of the content of a record and of a dataset. The content
digests do not depend on the division into shards; ``docs/formats.md`` has their formulas.

hashlib and blake3 release the GIL for large pieces. So a thread hashes on another core while the
next records are made or checked.
"""

from __future__ import annotations

import hashlib
import os
import struct
import sys
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, Union

from blake3 import blake3

from tfrecreg.core.storage.interface import Readable, Writer

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    import numpy as np
    import numpy.typing as npt

_LARGE = 2 << 20
"""Pieces of at least this size are hashed immediately: a queue of such pieces would take too much
memory.
"""
_CHUNK = 1 << 20
_REUSED = 8 << 20
"""A block of this size is allocated and freed once, so that glibc keeps freed memory. Otherwise
glibc returns memory to the system and requests it again for every piece, which costs as much as
hashing: see mallopt(3), M_MMAP_THRESHOLD.
"""

_Piece = bytes | memoryview


class FileDigest(NamedTuple):
    """Size and digests of a file."""

    bytes: int
    blake3: str
    """Hex digest; verified by `check`."""
    sha256: str
    """Hex digest, for other tools; empty if it was not computed."""


def hash_file(
    storage: Readable,
    path: str,
    *,
    sha256: bool = False,
    expected: str = "",
    copy: Writer | None = None,
) -> FileDigest:
    """Read a file in bounded memory; return its size and its digests, with sha256 on request."""
    hasher = FileHasher(sha256=sha256, ahead=8 if sha256 else 0)
    with storage.open(path) as reader:
        try:
            while chunk := reader.read_at(hasher.bytes, _CHUNK):
                hasher.update(chunk)
                if copy is not None:
                    copy.write(chunk)
        finally:
            hasher.close()
        found = hasher.digest()
        if expected and found.blake3 != expected:
            reader.confirm(0, found.bytes)
    return found


def threads_pay() -> bool:
    """True if the machine has several cores, so that a thread saves time. False in a worker
    process, because it shares the cores with other workers.
    """
    # `multiprocessing` is slow to import, and a worker process has always imported it.
    workers = sys.modules.get("multiprocessing")
    is_worker = workers is not None and workers.parent_process() is not None
    return not is_worker and (os.cpu_count() or 1) > 1


class FileHasher:
    """Computes blake3 and sha256 of a file from its pieces.

    If `ahead` is not 0, the second piece starts a thread. At most `ahead` pieces wait for the
    thread. The thread ends with :meth:`close`, or when this object is garbage collected.
    """

    def __init__(self, *, sha256: bool = True, ahead: int = 0) -> None:
        self.bytes = 0
        """Size of all pieces so far."""
        self._blake3 = blake3()
        self._sha256 = hashlib.sha256() if sha256 else None
        self._ahead = ahead
        self._thread: ThreadPoolExecutor | None = None
        self._waiting: deque[Future[None]] = deque()

    def update(self, piece: _Piece) -> None:
        """Add the next piece; it may be hashed later."""
        if self._thread is None and self._ahead and self.bytes:
            from concurrent.futures import ThreadPoolExecutor  # slow to import

            bytes(_REUSED)
            self._thread = ThreadPoolExecutor(1, "tfrecreg-hash")
        self.bytes += len(piece)
        is_large = len(piece) >= _LARGE
        while self._waiting and (is_large or len(self._waiting) >= self._ahead):
            self._waiting.popleft().result()
        if self._thread is None or is_large:
            self._hash(piece)
        else:
            self._waiting.append(self._thread.submit(self._hash, piece))

    def _hash(self, piece: _Piece) -> None:
        self._blake3.update(piece)
        if self._sha256 is not None:
            self._sha256.update(piece)

    def close(self) -> None:
        """Wait until all pieces are hashed. A second call does nothing."""
        while self._waiting:
            self._waiting.popleft().result()
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None

    def digest(self) -> FileDigest:
        """Size and digests of all pieces."""
        self.close()
        sha256 = self._sha256.hexdigest() if self._sha256 is not None else ""
        return FileDigest(self.bytes, self._blake3.hexdigest(), sha256)


DIGEST_BYTES = 16

Digests: TypeAlias = Union[bytes, "npt.NDArray[Any]"]
"""Concatenated record digests: bytes, or an array of 16 bytes per element or row."""

_PREFIX = b"tfrecreg content digest v1\n"
_U64 = struct.Struct("<Q")


def record_digest(canonical_payload: bytes | memoryview) -> bytes:
    """The record digest: the first 16 bytes of the blake3 of a payload in canonical form."""
    return blake3(canonical_payload).digest(DIGEST_BYTES)


def content_digest(splits: Iterable[tuple[str, Digests]]) -> str:
    r"""The content digest of splits, as 64 hex digits. A split may come in several parts, in any
    order.

    It is the blake3 of ``b"tfrecreg content digest v1\n"`` and then, for each split in order of the
    UTF-8 bytes of its name: the length of the name (u64le), the name, the number of records
    (u64le), and the record digests sorted by bytes. Duplicate digests are kept.
    """
    import numpy as np  # the digest of a record does not need NumPy

    parts: dict[bytes, list[npt.NDArray[np.bytes_]]] = {}
    for split, digests in splits:
        name = split.encode("utf-8", "surrogateescape")
        data = digests if isinstance(digests, bytes) else np.ascontiguousarray(digests).tobytes()
        parts.setdefault(name, []).append(np.frombuffer(data, dtype=f"S{DIGEST_BYTES}"))
    hasher = blake3(_PREFIX)
    for name in sorted(parts):
        rows = np.concatenate(parts[name])
        rows.sort()
        hasher.update(_U64.pack(len(name)) + name + _U64.pack(len(rows)))
        # NumPy strips trailing NULs when it returns an 'S16' element, but not in the buffer.
        hasher.update(rows.view(np.uint8).data)
    return hasher.hexdigest()
