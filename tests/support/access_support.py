"""Shards in each form of compression, for access by number."""

from __future__ import annotations

import gzip
from collections.abc import Sequence

from scan_support import framed

from tfrecreg.core.records.gzip_writer import GzipEncoder

PAYLOADS = [bytes([number]) * (number * 7 % 90) for number in range(60)]
STREAM = b"".join(map(framed, PAYLOADS))


def members(payloads: Sequence[bytes], size: int = 500) -> bytes:
    """As this package compresses, with small members."""
    encoder = GzipEncoder(size)
    return b"".join(map(encoder.write, map(framed, payloads))) + encoder.close()


def blocks(stream: bytes, size: int = 77) -> bytes:
    """Members that end anywhere, inside records too, as bgzip makes them, and an empty one last."""
    parts = [stream[at : at + size] for at in range(0, len(stream), size)]
    return b"".join(map(gzip.compress, [*parts, b""]))
