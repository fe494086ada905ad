"""WAVE files: RIFF, and RF64 or BW64 for those above 4 GiB.

Source: "Multimedia Programming Interface and Data Specifications 1.0" (IBM and Microsoft, 1991) for
the chunks, and EBU Tech 3306 for RF64.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tfrecreg.media.model import MAX_RATE, MediaError, MediaHeader

_MAX_CHUNKS = 10_000
_UNKNOWN = 0xFFFFFFFF
_PCM = frozenset({1, 3, 6, 7, 0xFFFE})
"""Formats whose samples all have the same size: PCM, float, A-law, µ-law, extensible."""


def read_wav(data: bytes) -> MediaHeader:
    """The header of a WAVE file."""
    fmt: bytes | None = None
    fact = long_size = 0
    for name, start, size in _chunks(data):
        if name == b"fmt ":
            fmt = data[start : start + min(size, 40)]
        elif name == b"ds64" and size >= 16:
            long_size = int.from_bytes(data[start + 8 : start + 16], "little")
        elif name == b"fact" and size >= 4:
            fact = int.from_bytes(data[start : start + 4], "little")
        elif name == b"data":
            if fmt is None:
                raise MediaError("a WAV whose samples come before their format")
            if size == _UNKNOWN:  # of RF64, or written to a pipe
                size = long_size or len(data) - start
            return _header(fmt, size, len(data) - start, fact)
    raise MediaError(f"a WAV that ends after {len(data)} bytes, before its samples")


def _chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Name, first byte and size of each chunk."""
    at = 12
    for _ in range(_MAX_CHUNKS):
        if at + 8 > len(data):
            return
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        yield data[at : at + 4], at + 8, size
        at += 8 + size + (size & 1)
    raise MediaError(f"a WAV of more than {_MAX_CHUNKS} chunks")


def _header(fmt: bytes, size: int, found: int, fact: int) -> MediaHeader:
    if len(fmt) < 16:
        raise MediaError("a WAV whose format has fewer than 16 bytes")
    tag, channels, rate, byte_rate, block, _ = struct.unpack("<HHIIHH", fmt[:16])
    if not channels or not 0 < rate <= MAX_RATE or not block:
        raise MediaError(
            f"a WAV of {channels} channels, {rate} samples per second, {block} bytes per sample"
        )
    present = min(size, found)
    if tag in _PCM:
        duration: float | None = present // block / rate
    elif fact and present == size:
        duration = fact / rate
    else:
        duration = present / byte_rate if byte_rate else None
    problem = f"{size} bytes of sound expected, found {found}" if size > found else ""
    return MediaHeader(
        format="wav", duration=duration, sample_rate=rate, channels=channels, problem=problem
    )
