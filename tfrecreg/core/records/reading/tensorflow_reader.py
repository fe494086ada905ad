"""A simulation of TensorFlow's reader, as far as needed to predict its behavior at a fault.

Known facts (observed with 2.16, and read in `record_reader.cc` and `zlib_inputstream.cc`):

- if fewer than the 12 bytes of a header are left, it takes them for the end of the file; for gzip,
  too, wherever the file ends: in a member, in a trailer, in the header of a member;
- a checksum that does not hold, or an error of zlib, is an error: it stops;
- for a plain file it allocates the length in a header before it reads, and does not check that the
  allocation succeeded: above the memory of the machine it crashes. From 2^63 on it reads the number
  as negative, which is an error again. For gzip the buffer grows while it is read, so it does not
  crash.

So it never reads past a fault, except past a complete record above the limit.

It also loses records of sound gzip files: see :class:`InputBuffer`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

from tfrecreg.core.records.framing import FOOTER_BYTES, HEADER_BYTES
from tfrecreg.core.records.gzip_writer import GZIP_BITS, INPUT_BUFFER, Compression
from tfrecreg.core.values.findings import TensorflowOutcome

CRASH_LENGTH = 1 << 35
"""Length in bytes from which on TensorFlow is assumed to crash. It crashes if the machine has less
memory: one of 24 GB stops at 2^34 with an error, and crashes at 2^35.
"""

_NEGATIVE = (1 << 63) - FOOTER_BYTES
_PIECE = 1 << 16


def of_rest(left: int) -> TensorflowOutcome:
    """The outcome for bytes at the end of a stream that do not begin a record."""
    return TensorflowOutcome.READS if left < HEADER_BYTES else TensorflowOutcome.STOPS


def of_length(length: int, left: int) -> TensorflowOutcome:
    """The outcome for a sound header in a plain file that ends inside the record."""
    if CRASH_LENGTH <= length < _NEGATIVE and left > 0:
        return TensorflowOutcome.CRASHES
    return TensorflowOutcome.STOPS


def of_misread(
    declared: Compression, read: Callable[[int, int], bytes], size: int
) -> TensorflowOutcome:
    """The outcome for a file whose compression is not the one passed to TensorFlow."""
    if declared == "none":
        return of_rest(size)
    made = zlib_makes(read, 0, size)
    return TensorflowOutcome.STOPS if made is None else of_rest(made)


def zlib_makes(read: Callable[[int, int], bytes], at: int, limit: int) -> int | None:
    """Number of bytes that zlib decompresses from a gzip file from `at` on; None if it reports an
    error.
    """
    inflater = zlib.decompressobj(GZIP_BITS)
    made = 0
    begin = at
    try:
        while data := read(at, _PIECE):
            at += len(data)
            if at - begin > limit:
                return None
            while data and made < HEADER_BYTES:
                made += len(inflater.decompress(data, HEADER_BYTES - made))
                data = inflater.unconsumed_tail
                if inflater.eof:
                    data = inflater.unused_data
                    inflater = zlib.decompressobj(GZIP_BITS)
            if made == HEADER_BYTES:
                break
    except zlib.error:
        return None
    return made


class InputBuffer:
    """A simulation of TensorFlow's input buffer for a gzip file, to detect where it stops too
    early.

    It calls zlib until the end of a member, of the buffer, or of the room for output. After a call
    without output it reads more of the file; if the file is read to its end, it stops, even if the
    buffer holds members that zlib has not seen. So it loses the rest of the file if the last call
    for a member has no output: if the member is empty, or if the buffer ends between the last byte
    that yields output and the last byte of the trailer.
    """

    def __init__(self) -> None:
        self.end = 0
        """Number of bytes of the file that have been read."""
        self._made = 0

    def reach(self, at: int, size: int) -> None:
        """Note that bytes of the file up to `at` are used, which may require reading more."""
        while self.end < at:
            self.end = min(self.end + INPUT_BUFFER, size)
            self._made = 0

    def make(self, count: int) -> None:
        """Note that `count` bytes were decompressed since the last call."""
        self._made += count

    def close(self, at: int, size: int) -> bool:
        """Note the end of a member at byte `at`; return whether TensorFlow takes it for the end of
        the file.
        """
        made, self._made = self._made, 0
        if made:
            return False
        if self.end == size:
            return at < size
        self.end = min(at + INPUT_BUFFER, size)
        return False
