"""The inner loop of reading: from record to record through a stretch of memory.

Pure Python at its fastest: what is left a record is two checksums computed in C and a dictionary.
:mod:`tfrecreg.records.native` walks the same way without any Python a record.
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

import google_crc32c
import numpy as np

from tfrecreg.records.framing import HEADER_BYTES, MASK_DELTA, MAX_LENGTH, OVERHEAD, header_length

__all__ = ["PythonWalker", "Stop", "Walk", "Walker"]

_VIEW_BYTES = 1 << 14
"""From this payload on, a view that is made for the checksum is cheaper than a copy."""

_HEADERS = 1 << 16
"""So many headers are remembered; records of equal length have equal headers."""


class Stop(Enum):
    """Why a walk ends."""

    SHORT = auto()
    """The memory ends in the record, or right before it."""
    LENGTH = auto()
    """The checksum over the record's length does not hold."""
    HUGE = auto()
    """It holds, and the length is above the limit."""
    DATA = auto()
    """The checksum over its data does not hold."""


@dataclass(slots=True)
class Walk:
    """Where a walk led, and what is there. The columns are arrays of signed 64-bit numbers."""

    offsets: array[int]
    """Where each record starts in the stream whose checksums hold."""
    starts: array[int]
    """Where its payload starts in the memory."""
    lengths: array[int]
    """Bytes of the payload."""
    payload_bytes: int
    """The sum of the lengths."""
    end: int
    """Where the first record starts in the memory that was not walked over."""
    stop: Stop
    length: int | None
    """What that record's header states, if it is there and holds."""
    crc: int = 0
    """With `DATA`: the masked checksum of the data, as they are,"""
    stored: int = 0
    """and the one that stands behind them."""

    @classmethod
    def nowhere(cls, length: int, crc: int, stored: int) -> Walk:
        """A walk that ends at once, at a record whose data checksum does not hold."""
        none = (array("q"), array("q"), array("q"))
        return cls(*none, 0, 0, Stop.DATA, length, crc, stored)

    @property
    def needs(self) -> int:
        """With `SHORT`: bytes from `end` on that it takes to go on."""
        return HEADER_BYTES if self.length is None else OVERHEAD + self.length


class Walker(Protocol):
    """Walks through one stream, stretch by stretch. Not to be shared by threads."""

    def __call__(self, memory: bytes, base: int) -> Walk:
        """Walk over the records in `memory`, which starts with one; check both their checksums.

        Args:
            memory: a stretch of the stream.
            base: the byte of the stream where it starts.
        """


class PythonWalker:
    """The walker that is always there."""

    def __init__(self) -> None:
        self._headers: dict[bytes, int] = {}

    def __call__(self, memory: bytes, base: int) -> Walk:
        # Local names: attribute look-ups would be a quarter of the time.
        value = google_crc32c.value
        footer = struct.Struct("<I").unpack_from
        headers = self._headers
        view = np.frombuffer(memory, np.uint8)
        size = len(memory)
        starts: array[int] = array("q")
        lengths: array[int] = array("q")
        length: int | None
        crc = stored = 0
        at = 0
        while True:
            start = at + 12
            if start > size:
                stop, length = Stop.SHORT, None
                break
            header = memory[at:start]
            length = headers.get(header)
            if length is None:
                length = header_length(header)
                if length is None:
                    stop = Stop.LENGTH
                    break
                if length > MAX_LENGTH:
                    stop = Stop.HUGE
                    break
                if len(headers) < _HEADERS:
                    headers[header] = length
            end = start + length
            if end + 4 > size:
                stop = Stop.SHORT
                break
            crc = value(memory[start:end] if length < _VIEW_BYTES else view[start:end])
            crc = (((crc >> 15) | (crc << 17)) + MASK_DELTA) & 0xFFFFFFFF
            (stored,) = footer(memory, end)
            if crc != stored:
                stop = Stop.DATA
                break
            starts.append(start)
            lengths.append(length)
            at = end + 4
        if stop is not Stop.DATA:
            crc = stored = 0
        offsets = array("q", (np.frombuffer(starts, np.int64) + (base - HEADER_BYTES)).tobytes())
        total = int(np.frombuffer(lengths, np.int64).sum())
        return Walk(offsets, starts, lengths, total, at, stop, length, crc, stored)
