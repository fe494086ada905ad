"""FLAC files: the first metadata block. Source: RFC 9639."""

from __future__ import annotations

from tfrecreg.media.model import MediaError, MediaHeader

_MAX_BLOCKS = 10_000


def read_flac(data: bytes) -> MediaHeader:
    """The header of a FLAC file. Whether frames are missing at its end shows only in decoding."""
    if len(data) < 42:
        raise MediaError(f"a FLAC that ends after {len(data)} bytes, before its header ends")
    if data[4] & 0x7F or int.from_bytes(data[5:8], "big") != 34:
        raise MediaError("a FLAC that does not begin with the block STREAMINFO")
    packed = int.from_bytes(data[18:26], "big")
    rate, channels = packed >> 44, (packed >> 41 & 7) + 1
    samples = packed & ((1 << 36) - 1)
    if not rate:
        raise MediaError("a FLAC of 0 samples per second")
    at = 4
    for _ in range(_MAX_BLOCKS):
        if at + 4 > len(data):
            raise MediaError(f"a FLAC that ends after {len(data)} bytes, in its metadata")
        last = data[at] & 0x80
        at += 4 + int.from_bytes(data[at + 1 : at + 4], "big")
        if last:
            break
    else:
        raise MediaError(f"a FLAC of more than {_MAX_BLOCKS} blocks of metadata")
    problem = ""
    if samples and at >= len(data):
        problem = f"{samples} samples expected, found no sound behind the metadata"
    return MediaHeader(
        format="flac",
        duration=samples / rate if samples else None,
        sample_rate=rate,
        channels=channels,
        problem=problem,
    )
