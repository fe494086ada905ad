"""The index of a shard: a small binary file, which can be downloaded without the shard.

The index has the digest, length and key of every record, and the offsets of the shard's gzip
members. ``docs/formats.md`` describes it byte by byte. The format never changes after 1.0.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from blake3 import blake3

from tfrecreg.core.records.framing import MAX_LENGTH, OVERHEAD
from tfrecreg.core.records.hashing import DIGEST_BYTES
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.errors import ManifestError, NewerFormatError, UsageError, upgrade_hint

if TYPE_CHECKING:  # IndexBuilder needs no NumPy
    import numpy as np
    import numpy.typing as npt

INDEX_MAGIC = b"TFRINDEX"
INDEX_VERSION = 1
INDEX_LIMIT = 1 << 34
"""Maximum size in bytes of an index that is read. It is enough for about 500 million records."""

ROW_BYTES = DIGEST_BYTES + 8 + 8
"""Size in bytes of a record's entry without its key."""
_HEADER = struct.Struct("<8sIIQQQ")
_HASH_BYTES = 32
_MEMBER = struct.Struct("<QQ")
"""A gzip member: where it begins in the file, and in the decompressed stream."""


class IndexBuilder:
    """Collects the rows of an index while its shard is written; about 80 bytes per record."""

    def __init__(self) -> None:
        self.lengths = array("Q")
        """Size of each payload in bytes."""
        self._digests = bytearray()
        self._ends = array("Q")
        self._keys = bytearray()

    def __len__(self) -> int:
        return len(self.lengths)

    def add(self, digest: bytes, length: int, key: str) -> None:
        """Add the next record."""
        try:
            self._keys += key.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise UsageError(f"the key `{key}` cannot be encoded as UTF-8") from None
        self._ends.append(len(self._keys))
        self._digests += digest
        self.lengths.append(length)

    def extend(self, other: IndexBuilder) -> None:
        """Add all rows of another builder, in their order."""
        before = len(self._keys)
        self._digests += other._digests
        self.lengths += other.lengths
        self._ends.extend(before + end for end in other._ends)
        self._keys += other._keys

    def render(self, members: Sequence[tuple[int, int]] = ()) -> bytes:
        """The index file."""
        import numpy as np

        header = _HEADER.pack(
            INDEX_MAGIC, INDEX_VERSION, ROW_BYTES, len(self), len(self._keys), len(members)
        )
        rows = np.empty(len(self), _row_type())
        rows["digest"] = np.frombuffer(self._digests, np.uint8).reshape(-1, DIGEST_BYTES)
        rows["length"] = self.lengths
        rows["key_end"] = self._ends
        table = (_MEMBER.pack(*member) for member in members)
        body = b"".join((header, rows.tobytes(), self._keys, *table))
        return body + blake3(body).digest()


@dataclass(frozen=True, slots=True)
class Index:
    """The content of an index file. The arrays are views of the file's bytes: read-only."""

    digests: npt.NDArray[np.uint8]
    """Shape (records, 16): the record digests, in the order of the records."""
    lengths: npt.NDArray[np.uint64]
    """Shape (records,): size of each payload in bytes."""
    key_ends: npt.NDArray[np.uint64]
    """Shape (records,): the position in `key_bytes` at which each key ends."""
    key_bytes: bytes
    """All keys, concatenated, as UTF-8 with surrogate escapes."""
    members: tuple[tuple[int, int], ...]
    """Where each gzip member begins: its offsets in the file and in the decompressed stream."""

    def __len__(self) -> int:
        return len(self.lengths)

    def key(self, record: int) -> str:
        """The key of the record with this number."""
        start = int(self.key_ends[record - 1]) if record else 0
        return self.key_bytes[start : int(self.key_ends[record])].decode("utf-8", "surrogateescape")

    def keys(self) -> list[str]:
        """All keys, in the order of the records."""
        ends = self.key_ends.tolist()
        spans = zip([0, *ends], ends, strict=False)
        data = self.key_bytes
        return [data[start:end].decode("utf-8", "surrogateescape") for start, end in spans]

    def offsets(self) -> npt.NDArray[np.int64]:
        """Shape (records,): the byte of the decompressed stream at which each record starts."""
        import numpy as np

        sizes = self.lengths.astype(np.int64) + OVERHEAD
        starts: npt.NDArray[np.int64] = np.cumsum(sizes) - sizes
        return starts

    @property
    def stream_bytes(self) -> int:
        """Size of the shard's decompressed stream in bytes."""
        return int(self.lengths.sum(dtype="<u8")) + OVERHEAD * len(self)


def load_index(storage: Readable, path: str, *, blake3_hex: str = "") -> Index:
    """Read the index at `path`. Refuses an index whose digest is not `blake3_hex`."""
    data = storage.read(path, limit=INDEX_LIMIT)
    index = read_index(data, path)
    found = blake3(data).hexdigest() if blake3_hex else ""
    if found != blake3_hex:
        raise ManifestError(
            f"`{path}` is not the index that the manifest names: its digest should be "
            f"{blake3_hex[:16]}…, found {found[:16]}…"
        )
    return index


def read_index(data: bytes, where: str) -> Index:
    """Read an index file and check its own digest."""
    if len(data) < _HEADER.size + _HASH_BYTES or data[:8] != INDEX_MAGIC:
        found = f"{len(data)} bytes that begin with {data[:8].hex() or 'nothing'}"
        raise ManifestError(f"`{where}` is not an index: {found}")
    _, version, row_bytes, records, key_bytes, members = _HEADER.unpack_from(data)
    if version > INDEX_VERSION:
        raise NewerFormatError(
            f"`{where}` has index format {version}, but this tfrecreg supports {INDEX_VERSION}",
            hint=upgrade_hint(),
        )
    if version != INDEX_VERSION or row_bytes != ROW_BYTES:
        raise ManifestError(
            f"`{where}` is not an index: it has version {version} and rows of {row_bytes} bytes"
        )
    expected = _HEADER.size + records * ROW_BYTES + key_bytes + members * _MEMBER.size + _HASH_BYTES
    if len(data) != expected:
        raise ManifestError(
            f"`{where}` is damaged: it should have {expected} bytes, found {len(data)}"
        )
    covered = memoryview(data)[:-_HASH_BYTES]
    digest = blake3(covered).digest()
    if digest != data[-_HASH_BYTES:]:
        raise ManifestError(
            f"`{where}` was changed after it was written: its digest should be "
            f"{digest.hex()[:16]}…, found {data[-_HASH_BYTES:].hex()[:16]}…"
        )
    import numpy as np

    rows = np.frombuffer(data, _row_type(), records, _HEADER.size)
    keys_at = _HEADER.size + rows.nbytes
    table = np.frombuffer(data, "<u8", 2 * members, keys_at + key_bytes).reshape(-1, 2)
    ends = rows["key_end"]
    # A wrong writer can make these problems: the digest does not reveal them.
    if (
        np.any(ends[1:] < ends[:-1])
        or (int(ends[-1]) if records else 0) != key_bytes
        or np.any(rows["length"] > MAX_LENGTH)
        or np.any(table[1:, 0] <= table[:-1, 0])
        or np.any(table[1:, 1] < table[:-1, 1])
    ):
        raise ManifestError(f"`{where}` is not an index: its positions or lengths are impossible")
    return Index(
        digests=rows["digest"],
        lengths=rows["length"],
        key_ends=ends,
        key_bytes=data[keys_at : keys_at + key_bytes],
        members=tuple((file, stream) for file, stream in table.tolist()),
    )


def _row_type() -> np.dtype[np.void]:
    import numpy as np

    return np.dtype([("digest", np.uint8, (DIGEST_BYTES,)), ("length", "<u8"), ("key_end", "<u8")])
