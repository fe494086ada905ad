"""Digests of content: of a record, and of a dataset, independent of its shards.

``docs/formats.md`` has both formulas byte by byte; they never change after 1.0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from blake3 import blake3

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

DIGEST_BYTES = 16

Digests: TypeAlias = Union[bytes, "npt.NDArray[Any]"]
"""Concatenated record digests: bytes, or an array of 16 bytes per element or row."""

_PREFIX = b"tfrecreg content digest v1\n"
_U64 = struct.Struct("<Q")


def record_digest(canonical_payload: bytes | memoryview) -> bytes:
    """The first 16 bytes of blake3 of a payload in canonical form."""
    return blake3(canonical_payload).digest(DIGEST_BYTES)


class ContentHasher:
    """Collects the record digests of a dataset, in any order, shard by shard.

    Keeps the digests in memory: 16 bytes per record.
    """

    def __init__(self) -> None:
        self._splits: dict[str, list[npt.NDArray[np.bytes_]]] = {}

    def add(self, split: str, digests: Digests) -> None:
        """Add the digests of some records of `split`, for instance of one of its shards."""
        self._splits.setdefault(split, []).append(_as_rows(digests))

    def hexdigest(self) -> str:
        r"""The content digest of the records added so far, as 64 hex digits.

        blake3 over ``b"tfrecreg content digest v1\n"`` and then, for each split in order of the
        UTF-8 bytes of its name: length of the name (u64le), the name, number of records (u64le),
        and their digests sorted by bytes; duplicate digests are kept.
        """
        import numpy as np  # which the digest of a record does not need

        hasher = blake3(_PREFIX)
        encoded = {name.encode("utf-8", "surrogateescape"): name for name in self._splits}
        for name in sorted(encoded):
            rows = np.concatenate(self._splits[encoded[name]])
            rows.sort()
            hasher.update(_U64.pack(len(name)) + name + _U64.pack(len(rows)))
            # NumPy strips trailing NULs when it returns an 'S16' element, but not in the buffer.
            hasher.update(rows.view(np.uint8).data)
        return hasher.hexdigest()


def content_digest(splits: Iterable[tuple[str, Digests]]) -> str:
    """The content digest of whole splits, or of shards of splits; see :class:`ContentHasher`."""
    hasher = ContentHasher()
    for name, digests in splits:
        hasher.add(name, digests)
    return hasher.hexdigest()


def _as_rows(digests: Digests) -> npt.NDArray[np.bytes_]:
    import numpy as np

    data = digests if isinstance(digests, bytes) else np.ascontiguousarray(digests).tobytes()
    if len(data) % DIGEST_BYTES:
        raise ValueError(f"{len(data)} bytes are not a whole number of digests of {DIGEST_BYTES}")
    return np.frombuffer(data, dtype=f"S{DIGEST_BYTES}")
