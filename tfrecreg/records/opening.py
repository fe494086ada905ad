"""Opening a shard: which compression its bytes have, also where its first ones are lost."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from tfrecreg.records.file import HashedFile, places_of
from tfrecreg.records.framing import header_length
from tfrecreg.records.gzip import MAGIC, Compression
from tfrecreg.records.inflate import GzipStream
from tfrecreg.records.resync import sound_records
from tfrecreg.records.stream import SNIFF_BYTES, ByteStream, PlainStream, sniff
from tfrecreg.storage.interface import Reader

__all__ = ["open_stream"]

_NOWHERE = 1 << 62
_TRIED = 64
"""So many places are tried that look like the beginning of a member."""


def open_stream(
    reader: Reader,
    *,
    digest: bool,
    declared: Compression | None = None,
    members: Sequence[tuple[int, int]] = (),
) -> tuple[ByteStream, HashedFile]:
    """The stream of an open file, and the file, which knows its own digest when all is read.

    Args:
        reader: the file; the caller closes it.
        digest: whether to hash the file as it lies and the stream, with blake3, as it is read.
        declared: the compression that a manifest declares; only a tie is decided by it.
        members: where gzip members begin (byte of the file, byte of the stream), from an index.

    Raises:
        StorageError: the file system failed to deliver.
    """
    file = HashedFile(reader, digest=digest)
    head = file.read(0, SNIFF_BYTES)
    if sniff(head, declared) == "gzip" or (
        # An index that has members is that of a gzip file, even if nothing of the first is left.
        head and header_length(head) is None and (len(members) or _is_headless(file, declared))
    ):
        return GzipStream(file, digest=digest, members=members, misread=True), file
    return PlainStream(file), file


def _is_headless(file: HashedFile, declared: Compression | None) -> bool:
    """Whether a file whose first bytes say nothing is gzip of records that lost its beginning."""
    if declared == "none" or next(places_of(MAGIC, file, 0), None) is None:
        return False
    # A plain shard may hold gzip in its payloads, which leads to no end of the file; and gzip may
    # hold records as they are.
    gzip = GzipStream(file, digest=False)
    if any(gzip.leads_on(at) for at in itertools.islice(places_of(MAGIC, file, 0), _TRIED)):
        return True
    plain = 0 if declared == "gzip" else _sound_bytes(PlainStream(file))
    return _sound_bytes(gzip) > plain


def _sound_bytes(stream: ByteStream) -> int:
    """How many bytes of the stream are sound records, behind whatever damage."""
    total = at = 0
    while True:
        total += sum(end - start for start, end in sound_records(stream, at, _NOWHERE))
        if stream.interruption is None or not stream.resume():
            return total
        at = stream.position
