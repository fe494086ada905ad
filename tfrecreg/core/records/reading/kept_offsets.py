"""A cache of record offsets for shards without an index.

An entry, one a shard, is a file in ``tfrecreg/offsets`` below `XDG_CACHE_HOME` or ``~/.cache``. It
has 16 bytes per record and a digest of its own, and is taken only while size and modification time
of the shard are the same. Offsets are not trusted further: each read compares length and checksums.

As with git's index, the entry of a shard that was changed less than two seconds ago is not kept:
its time would not tell the next change. Nor is that of a damaged shard. Where a manifest names the
digest of the stream, an entry is taken only if all of the stream was read for it and had that
digest.

The form of an entry may change with any version; entries of another form are made again. Today it
is, all little-endian: magic, size and modification time of the shard, numbers of records and gzip
members, whether it is gzip, the digest of the stream (zeros where it is unknown); the offsets, the
lengths, and where members begin, in 8 bytes a number; blake3 of all that.
"""

from __future__ import annotations

import os
import struct
import time
from contextlib import suppress

import numpy as np
from blake3 import blake3

from tfrecreg.core.records.index import INDEX_LIMIT
from tfrecreg.core.records.reading.offsets import RecordOffsets, find_offsets, has_own_index
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.storage.local import user_cache
from tfrecreg.core.values.errors import TfrecregError

_MAGIC = b"TFROFFS2"
_HEADER = struct.Struct("<8sQQQQI32s")
"""Magic, size and modification time of the shard, records, gzip members, whether it is gzip, and
the digest of its stream.
"""
_HASH_BYTES = 32
_RACY_NS = 2_000_000_000
_FOLDER = "tfrecreg/offsets"


def kept_offsets(
    storage: Readable, path: str, shown: str, stream_blake3: str = ""
) -> RecordOffsets:
    """The offsets of a shard's records: from its own index, an entry, or by reading the shard."""
    cache = user_cache()
    entry = storage.stat(path)
    # A web server may send neither time nor ETag: then a change would not show.
    is_dated = entry is not None and entry.mtime_ns > 0
    if cache is None or entry is None or not is_dated or has_own_index(storage, path):
        return find_offsets(storage, path, None, shown, stream_blake3=stream_blake3)
    name = f"{_FOLDER}/{blake3(os.fsencode(f'{storage.root}/{path}')).hexdigest(16)}"
    stamp = entry.size, entry.mtime_ns
    with suppress(TfrecregError):  # an entry that cannot be read is as good as none
        if cache.stat(name) is not None:
            known = _parse(cache.read(name, limit=INDEX_LIMIT), stamp)
            if known is not None and stream_blake3 in ("", known.stream_blake3):
                return known
    now = time.time_ns()
    found = find_offsets(storage, path, None, shown, stream_blake3=stream_blake3)
    sound = not found.faults and not (found.lengths < 0).any()
    if sound and now - found.mtime_ns >= _RACY_NS:
        with suppress(TfrecregError), cache.create(name, durable=False) as writer:
            writer.write(_render(found))
    return found


def _render(found: RecordOffsets) -> bytes:
    header = _HEADER.pack(
        _MAGIC,
        found.size,
        found.mtime_ns,
        len(found.offsets),
        len(found.members),
        found.gzip,
        bytes.fromhex(found.stream_blake3),
    )
    members = np.array(found.members, "<i8").reshape(-1, 2)
    body = b"".join(
        (
            header,
            found.offsets.astype("<i8").tobytes(),
            found.lengths.astype("<i8").tobytes(),
            members.tobytes(),
        )
    )
    return body + blake3(body).digest()


def _parse(data: bytes, stamp: tuple[int, int]) -> RecordOffsets | None:
    """Parse an entry; None if it is damaged, or the shard has another stamp."""
    if len(data) < _HEADER.size + _HASH_BYTES:
        return None
    magic, size, mtime_ns, records, members, gzip, digest = _HEADER.unpack_from(data)
    expected = _HEADER.size + 16 * (records + members) + _HASH_BYTES
    if magic != _MAGIC or (size, mtime_ns) != stamp or len(data) != expected:
        return None
    if blake3(memoryview(data)[:-_HASH_BYTES]).digest() != data[-_HASH_BYTES:]:
        return None
    numbers = np.frombuffer(data, "<i8", 2 * (records + members), _HEADER.size).astype(np.int64)
    table = numbers[2 * records :].reshape(-1, 2)
    return RecordOffsets(
        size,
        mtime_ns,
        numbers[:records],
        numbers[records : 2 * records],
        members=tuple((int(file), int(stream)) for file, stream in table),
        gzip=bool(gzip),
        stream_blake3=digest.hex() if any(digest) else "",
    )
