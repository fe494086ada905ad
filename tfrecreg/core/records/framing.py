"""The frame around a record: length, checksum, payload, checksum.

A TFRecord stream is a sequence of such frames (all numbers little-endian)::

    u64  length of the payload
    u32  masked CRC32C of those 8 bytes
         payload
    u32  masked CRC32C of the payload

The format is TensorFlow's (``tensorflow/core/lib/io/record_writer.h``); ``docs/formats.md`` has it
byte by byte.
"""

from __future__ import annotations

import struct
from functools import lru_cache

import google_crc32c

HEADER_BYTES = 12
"""Size in bytes of a record's header: the length and the length's checksum."""

FOOTER_BYTES = 4
"""Size in bytes of the payload's checksum."""

OVERHEAD = HEADER_BYTES + FOOTER_BYTES
"""Number of bytes that the frame of a record adds to the payload."""

MAX_LENGTH = 2**31
"""Size of the largest payload in bytes: protobuf messages are limited to 2 GiB."""

MASK_DELTA = 0xA282EAD8

_U32 = 0xFFFFFFFF
_HEADER = struct.Struct("<QI")
_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")


def mask(crc: int) -> int:
    """The stored form of a CRC32C: rotated right by 15 bits, plus a constant, modulo 2^32."""
    return (((crc >> 15) | (crc << 17)) + MASK_DELTA) & _U32


def unmask(masked: int) -> int:
    """The CRC32C of a masked checksum: the inverse of :func:`mask`."""
    rotated = (masked - MASK_DELTA) & _U32
    return ((rotated >> 17) | (rotated << 15)) & _U32


def masked_crc(data: bytes) -> int:
    """The masked CRC32C of `data`."""
    return mask(google_crc32c.value(data))


def frame_header(length: int) -> bytes:
    """The 12 bytes before a payload of `length` bytes."""
    packed = _LENGTH.pack(length)
    return packed + _CRC.pack(masked_crc(packed))


def frame(payload: bytes) -> tuple[bytes, bytes]:
    """The 12 bytes before `payload` in the stream, and the 4 bytes after it."""
    return frame_header(len(payload)), _CRC.pack(masked_crc(payload))


def header_length(header: bytes) -> int | None:
    """The length in a header; None if its checksum is wrong or the header is too short.

    The length can be up to 2^64 - 1; the caller has to check it.
    """
    if len(header) < HEADER_BYTES:
        return None
    length, found = _HEADER.unpack_from(header)
    return int(length) if found == masked_crc(header[:8]) else None


_head = lru_cache(maxsize=1 << 12)(frame_header)


def sound_payload(frames: bytes, at: int, length: int) -> bytes | None:
    """The payload of the record at byte `at` of `frames`; None if it is not sound."""
    start = at + HEADER_BYTES
    end = start + length
    if length < 0 or frames[at:start] != _head(length):
        return None
    payload = frames[start:end]
    footer = frames[end : end + FOOTER_BYTES]
    return payload if footer == masked_crc(payload).to_bytes(FOOTER_BYTES, "little") else None
