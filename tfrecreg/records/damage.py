"""What is wrong with a gzip file at one place, and what is to be had before it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from tfrecreg.records.gzip import TRAILER

__all__ = ["Damage", "decoded_before", "trailer_problems"]


@dataclass(frozen=True, slots=True)
class Damage:
    """Why a gzip stream stops before its end."""

    member: int
    """Byte of the file where the damaged member begins."""
    begin: int
    """Byte of the stream where it begins."""
    stream: int
    """Byte of the stream up to which it could be decoded."""
    detail: str
    lossless: bool
    """Nothing of the stream is missing: only a header or a trailer is damaged."""
    inside: bool
    """It lies in a member, so that something of the stream is missing for certain."""
    cut: bool
    """The file ends too early: nothing follows."""
    padding: bool
    """It is nothing but zeros behind the last member."""
    misread: bool
    """It is sound: TensorFlow alone takes the member's end for that of the file."""
    tail: int | None
    """Bytes of the stream that zlib, which mends nothing, would make of the rest before the file
    ends; None where it would report an error."""


def decoded_before(inflater: zlib._Decompress, data: bytes, limit: int) -> bytes:
    """What `data` decode to before they stop making sense: zlib itself drops it with the error."""
    parts = []
    for step in (4096, 64, 1):
        while data:
            attempt = inflater.copy()
            try:
                parts.append(attempt.decompress(data[:step], limit))
            except zlib.error:
                break
            inflater, data = attempt, data[step:]
    return b"".join(parts)


def trailer_problems(trailer: bytes, crc: int, length: int) -> list[str]:
    """In what the trailer of a member disagrees with what was decoded: at most two things.

    Args:
        trailer: its eight bytes.
        crc: the CRC-32 of what was decoded.
        length: how many bytes that is.
    """
    stored_crc, stored_length = TRAILER.unpack(trailer)
    problems = []
    if stored_crc != crc:
        problems.append(f"its CRC-32 should be 0x{stored_crc:08x}, found 0x{crc:08x}")
    if stored_length != length & 0xFFFFFFFF:
        problems.append(
            f"it should have {stored_length} bytes, found {length & 0xFFFFFFFF} (modulo 2^32)"
        )
    return problems
