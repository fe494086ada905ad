"""The index of a shard: one binary file beside it, small enough to be pulled alone.

It has the digest, length and key of every record, and the offsets of the shard's gzip members.
``docs/formats.md`` describes it byte by byte; the format never changes after 1.0.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from blake3 import blake3

from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.errors import ManifestError, NewerFormatError, UsageError, upgrade_hint
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:  # collecting rows needs no NumPy
    import numpy as np
    import numpy.typing as npt

INDEX_MAGIC = b"TFRINDEX"
INDEX_VERSION = 1
INDEX_LIMIT = 1 << 34
"""Largest index that is read, in bytes: 500 million records."""

_DIGEST_BYTES = 16
ROW_BYTES = _DIGEST_BYTES + 8 + 8
"""Size in bytes of a record's entry without its key."""
_HEADER = struct.Struct("<8sIIQQQ")
_HASH_BYTES = 32
_MEMBER = struct.Struct("<QQ")
"""A gzip member: where it begins in the file, and in the decompressed stream."""
_FRAME_BYTES = 16
_MAX_LENGTH = 2**31
_HINT = "restore the index from DVC, or build the dataset again"


class IndexBuilder:
    """Collects the rows of an index while its shard is written; about 80 bytes per record."""

    def __init__(self) -> None:
        self._digests = bytearray()
        self._lengths = array("Q")
        self._ends = array("Q")
        self._keys = bytearray()

    @classmethod
    def of(cls, digests: bytes, lengths: Iterable[int], keys: Sequence[str]) -> IndexBuilder:
        """The rows of many records at once."""
        made = cls()
        made._digests += digests
        made._lengths = array("Q", lengths)
        joined = "".join(keys)
        if joined.isascii():
            made._keys += joined.encode("ascii")
            made._ends.extend(accumulate(map(len, keys)))
        else:
            for key in keys:
                made._add_key(key)
        if not len(digests) == _DIGEST_BYTES * len(made) == _DIGEST_BYTES * len(keys):
            raise ValueError(
                f"{len(digests)} bytes of digests, {len(made)} lengths and {len(keys)} keys"
            )
        return made

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, digest: bytes, length: int, key: str) -> None:
        """Add the next record."""
        if len(digest) != _DIGEST_BYTES:
            raise ValueError(f"a record digest has 16 bytes, this one {len(digest)}")
        self._add_key(key)
        self._digests += digest
        self._lengths.append(length)

    def _add_key(self, key: str) -> None:
        try:
            self._keys += key.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise UsageError(
                f"the key `{safe(key)}` cannot be encoded as UTF-8",
                hint="let the source make keys of valid Unicode",
            ) from None
        self._ends.append(len(self._keys))

    def extend(self, other: IndexBuilder) -> None:
        """Add all rows of another builder, in their order."""
        before = len(self._keys)
        self._digests += other._digests
        self._lengths += other._lengths
        self._ends.extend(before + end for end in other._ends)
        self._keys += other._keys

    def render(self, members: Sequence[tuple[int, int]] = ()) -> bytes:
        """The index file."""
        import numpy as np

        header = _HEADER.pack(
            INDEX_MAGIC, INDEX_VERSION, ROW_BYTES, len(self), len(self._keys), len(members)
        )
        rows = np.empty(len(self), _row_type())
        rows["digest"] = np.frombuffer(self._digests, np.uint8).reshape(-1, _DIGEST_BYTES)
        rows["length"] = self._lengths
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
    """Shape (records,): bytes of each payload."""
    key_ends: npt.NDArray[np.uint64]
    """Shape (records,): where each key ends in `key_bytes`."""
    key_bytes: bytes
    """All keys, concatenated, as UTF-8 with surrogate escapes."""
    members: tuple[tuple[int, int], ...]
    """Where each gzip member begins: byte of the file, byte of the decompressed stream."""

    def __len__(self) -> int:
        return len(self.lengths)

    def key(self, record: int) -> str:
        """The key of the record with this number."""
        if not 0 <= record < len(self):
            raise IndexError(f"record {record} of an index of {len(self)}")
        start = int(self.key_ends[record - 1]) if record else 0
        return self.key_bytes[start : int(self.key_ends[record])].decode("utf-8", "surrogateescape")

    def keys(self) -> list[str]:
        """All keys, in the order of the records."""
        ends = self.key_ends.tolist()
        spans = zip([0, *ends], ends, strict=False)
        if self.key_bytes.isascii():
            text = self.key_bytes.decode("ascii")
            return [text[start:end] for start, end in spans]
        data = self.key_bytes
        return [data[start:end].decode("utf-8", "surrogateescape") for start, end in spans]

    def offsets(self) -> npt.NDArray[np.int64]:
        """Shape (records,): the byte of the decompressed stream where each record starts."""
        import numpy as np

        ends = np.cumsum(self.lengths.astype(np.int64) + _FRAME_BYTES)
        starts: npt.NDArray[np.int64] = np.concatenate((np.zeros(1, np.int64), ends))[:-1]
        return starts

    @property
    def stream_bytes(self) -> int:
        """Size of the shard's decompressed stream in bytes."""
        return int(self.lengths.sum(dtype="<u8")) + _FRAME_BYTES * len(self)


def load_index(storage: Readable, path: str, *, blake3_hex: str = "") -> Index:
    """Read the index at `path`."""
    data = storage.read(path, limit=INDEX_LIMIT)
    index = read_index(data, path)
    found = blake3(data).hexdigest() if blake3_hex else ""
    if found != blake3_hex:
        raise ManifestError(
            f"`{safe(path, limit=1000)}` is not the index that the manifest names: its digest "
            f"should be {blake3_hex[:16]}…, found {found[:16]}…",
            hint=_HINT,
        )
    return index


def read_index(data: bytes, where: str) -> Index:
    """Read an index file and check its own digest."""
    if len(data) < _HEADER.size + _HASH_BYTES or data[:8] != INDEX_MAGIC:
        found = f"{len(data)} bytes that begin with {data[:8].hex() or 'nothing'}"
        raise ManifestError(f"`{where}` is not an index: {found}", hint=_HINT)
    _, version, row_bytes, records, key_bytes, members = _HEADER.unpack_from(data)
    if version > INDEX_VERSION:
        raise NewerFormatError(
            f"`{where}` has index format {version}, this tfrecreg supports {INDEX_VERSION}",
            hint=upgrade_hint(),
        )
    if version != INDEX_VERSION or row_bytes != ROW_BYTES:
        raise ManifestError(
            f"`{where}` is not an index: version {version} with rows of {row_bytes} bytes",
            hint=_HINT,
        )
    expected = _HEADER.size + records * ROW_BYTES + key_bytes + members * _MEMBER.size + _HASH_BYTES
    if len(data) != expected:
        raise ManifestError(
            f"`{where}` is damaged: its header makes {expected} bytes, it has {len(data)}",
            hint=_HINT,
        )
    covered = memoryview(data)[:-_HASH_BYTES]
    digest = blake3(covered).digest()
    if digest != data[-_HASH_BYTES:]:
        raise ManifestError(
            f"`{where}` was changed after it was written: its digest should be "
            f"{digest.hex()[:16]}…, found {data[-_HASH_BYTES:].hex()[:16]}…",
            hint=_HINT,
        )
    import numpy as np

    rows = np.frombuffer(data, _row_type(), records, _HEADER.size)
    keys_at = _HEADER.size + rows.nbytes
    member = np.dtype([("file", "<u8"), ("stream", "<u8")])
    table = np.frombuffer(data, member, members, keys_at + key_bytes)
    problem = _problem(rows, key_bytes, table)
    if problem:
        raise ManifestError(f"`{where}` is not an index: {problem}", hint=_HINT)
    return Index(
        digests=rows["digest"],
        lengths=rows["length"],
        key_ends=rows["key_end"],
        key_bytes=data[keys_at : keys_at + key_bytes],
        members=tuple((int(file), int(stream)) for file, stream in table),
    )


def _row_type() -> np.dtype[np.void]:
    """A record: its digest, the size of its payload in bytes, and the end of its key among the
    keys.
    """
    import numpy as np

    return np.dtype([("digest", np.uint8, (_DIGEST_BYTES,)), ("length", "<u8"), ("key_end", "<u8")])


def _problem(rows: npt.NDArray[np.void], key_bytes: int, table: npt.NDArray[np.void]) -> str:
    """An inconsistency that the digest does not reveal; empty if there is none."""
    import numpy as np

    ends = rows["key_end"]
    if np.any(ends[1:] < ends[:-1]) or (int(ends[-1]) if len(ends) else 0) != key_bytes:
        return "the ends of its keys do not fit its keys"
    if np.any(rows["length"] > _MAX_LENGTH):
        return f"a record longer than {_MAX_LENGTH} bytes"
    file, stream = table["file"], table["stream"]
    if np.any(file[1:] <= file[:-1]) or np.any(stream[1:] < stream[:-1]):
        return "its gzip members are not in order"
    return ""
