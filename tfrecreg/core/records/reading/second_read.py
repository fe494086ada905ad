"""Damage in a file of a store: whether it is in the store or happened in transfer.

The bytes of a fault are read from the store again. If they are the same, the fault says so; if they
are not, the scan ends in a :class:`~tfrecreg.core.values.errors.TransferError`, and whoever needs
the file reads it again from its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from tfrecreg.core.records.batch import Fault
from tfrecreg.core.records.framing import HEADER_BYTES, OVERHEAD
from tfrecreg.core.records.gzip.writer import Compression
from tfrecreg.core.storage.interface import Reader

SAME_BYTES = "a second read of the store gave the same bytes"
"""The end of the text of such a fault."""

T = TypeVar("T")


def confirmed(events: Iterator[T], reader: Reader, compression: Compression) -> Iterator[T]:
    """The events of a scan; each fault was compared with a second read, if the reader has one."""
    # `isinstance` of a protocol takes a third as long as the scan of a small file.
    confirm: Callable[[int, int], bool] | None = getattr(reader, "confirm", None)
    if confirm is None:
        yield from events
        return
    for event in events:
        if isinstance(event, Fault):
            start, stop = _bytes_of(event, compression, reader.size)
            if confirm(start, stop):
                yield replace(event, detail=f"{event.detail}; {SAME_BYTES}")
                continue
        yield event


def _bytes_of(fault: Fault, compression: Compression, size: int) -> tuple[int, int]:
    """The bytes of the file that a fault is about."""
    if compression != "none":
        return 0, size  # offsets are in the decompressed stream: compare all bytes read
    length = fault.length if fault.length is not None else HEADER_BYTES
    return fault.offset, min(size, fault.offset + OVERHEAD + length)
