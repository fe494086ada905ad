"""TensorFlow's reader, simulated as far as needed to say what it does at a fault.

Known facts (seen with 2.16, and in `record_reader.cc` and `zlib_inputstream.cc`):

- where fewer than the 12 bytes of a header are left, it takes that for the end of the file, and
  so for gzip, however the file ended: in a member, in a trailer, in the header of a member;
- any checksum that does not hold, and whatever zlib objects to, is an error: it stops;
- of a plain file it allocates what a header asks for before it reads, and does not look whether
  it was given it: above the memory of the machine it crashes. From 2^63 on the number is negative
  to it, which is an error again. gzip grows as it is read, so that nothing crashes there.

So it never gets past a fault, except a record above the limit that is really there.

And it loses records of gzip files that are sound: see :class:`InputBuffer`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

from tfrecreg.findings import TensorflowOutcome
from tfrecreg.records.framing import FOOTER_BYTES, HEADER_BYTES
from tfrecreg.records.gzip_writer import GZIP_BITS, INPUT_BUFFER, Compression

CRASH_LENGTH = 1 << 35
"""From this length on TensorFlow is taken to crash. It does where the machine has less memory: one
of 24 GB stops at 2^34 with an error, and dies of 2^35."""

_NEGATIVE = (1 << 63) - FOOTER_BYTES
_PIECE = 1 << 16


def of_rest(left: int) -> TensorflowOutcome:
    """The outcome of bytes at the end of a stream that do not begin a record."""
    return TensorflowOutcome.READS if left < HEADER_BYTES else TensorflowOutcome.STOPS


def of_length(length: int, left: int) -> TensorflowOutcome:
    """The outcome of a sound header in a plain file that does not hold the record.

    Args:
        length: what is stated.
        left: bytes of the file behind the header: without any, it does not use what it allocated.
    """
    if CRASH_LENGTH <= length < _NEGATIVE and left > 0:
        return TensorflowOutcome.CRASHES
    return TensorflowOutcome.STOPS


def of_misread(
    declared: Compression, read: Callable[[int, int], bytes], size: int
) -> TensorflowOutcome:
    """The outcome of a file whose compression is not what TensorFlow is told.

    Args:
        declared: what it is told.
        read: returns bytes of the file, given an offset and the most bytes to return.
        size: bytes of the file.
    """
    if declared == "none":
        return of_rest(size)
    made = zlib_makes(read, 0, size)
    return TensorflowOutcome.STOPS if made is None else of_rest(made)


def zlib_makes(read: Callable[[int, int], bytes], at: int, limit: int) -> int | None:
    """How many bytes zlib makes of a gzip file from `at` on; None where it reports an error.

    Args:
        read: returns bytes of the file, given an offset and the most bytes to return.
        at: where a member begins, or should.
        limit: bytes of the file to look at; beyond, an error is assumed.

    Returns:
        At most the 12 bytes of a header: with that many, TensorFlow does not see an end.
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
    """What of a gzip file TensorFlow holds in its input buffer, to see where it stops too early.

    It calls zlib until the end of a member, of the buffer, or of the room for output. A call that
    made nothing tells it to read on in the file; if the file has no more to read, that is the end,
    even if the buffer holds members that zlib was not yet given. So it loses all that follows
    where nothing of a member was made by the last call: where the member is empty, or the buffer
    ends between the last byte that made something and the last of the trailer.
    """

    def __init__(self) -> None:
        self.end = 0
        """The byte of the file that it has been read up to."""
        self._made = 0

    def reach(self, at: int, size: int) -> None:
        """Bytes of the file are used up to `at`, which may take more of them.

        Args:
            at: a byte of the file; not beyond `size`.
            size: bytes of the file.
        """
        while self.end < at:
            self.end = min(self.end + INPUT_BUFFER, size)
            self._made = 0

    def make(self, count: int) -> None:
        """`count` bytes were decompressed from the input since the last call."""
        self._made += count

    def close(self, at: int, size: int) -> bool:
        """A member ends at byte `at`: whether TensorFlow takes that for the end of the file."""
        made, self._made = self._made, 0
        if made:
            return False
        if self.end == size:
            return at < size
        self.end = min(at + INPUT_BUFFER, size)
        return False
