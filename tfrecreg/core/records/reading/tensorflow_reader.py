"""Predicts what TensorFlow's reader does at a fault.

What the reader does (observed with 2.16, and read in `record_reader.cc` and `zlib_inputstream.cc`):

- If fewer bytes are left than a header has (12), it treats them as the end of the file. For gzip,
  it does the same, even if the file ends inside a member's data, trailer or header.
- If a checksum is wrong, or zlib reports an error, it raises an error and stops.
- For a plain file, it allocates as much memory as the length in a header says, and does not check
  the allocation. So it crashes if the length exceeds the machine's memory. It reads a length
  of 2^63 or more as a negative number, and raises an error. For gzip, the buffer grows with the
  data, so it does not crash.

So TensorFlow continues after only one kind of fault: a complete record above the size limit.

TensorFlow may also lose records of sound gzip files: see :class:`InputBuffer`.
"""

from __future__ import annotations

import zlib

from tfrecreg.core.records.framing import FOOTER_BYTES, HEADER_BYTES
from tfrecreg.core.records.gzip_writer import GZIP_BITS, INPUT_BUFFER, Compression
from tfrecreg.core.values.findings import TensorflowOutcome

CRASH_LENGTH = 1 << 35
"""TensorFlow is assumed to crash at lengths of this many bytes or more, because machines have less
memory. A machine with 24 GB stops with an error at 2^34, and crashes at 2^35.
"""

_NEGATIVE = (1 << 63) - FOOTER_BYTES


def of_rest(left: int) -> TensorflowOutcome:
    """The outcome if no record begins in the rest of a stream. `left` is the size of the rest."""
    return TensorflowOutcome.READS if left < HEADER_BYTES else TensorflowOutcome.STOPS


def of_length(length: int, left: int) -> TensorflowOutcome:
    """The outcome if a plain file ends inside a record whose header is sound."""
    if CRASH_LENGTH <= length < _NEGATIVE and left > 0:
        return TensorflowOutcome.CRASHES
    return TensorflowOutcome.STOPS


def of_misread(declared: Compression, head: bytes) -> TensorflowOutcome:
    """The outcome if TensorFlow reads the file with the compression `declared`, which is wrong.
    `head` has at least the first 12 bytes of the file.
    """
    made = len(head) if declared == "none" else zlib_makes(head)
    return TensorflowOutcome.STOPS if made is None else of_rest(made)


def zlib_makes(data: bytes) -> int | None:
    """Number of bytes that zlib outputs for `data`, at most 12; None if zlib reports an error."""
    made = 0
    try:
        while data and made < HEADER_BYTES:
            inflater = zlib.decompressobj(GZIP_BITS)
            made += len(inflater.decompress(data, HEADER_BYTES - made))
            data = inflater.unused_data
    except zlib.error:
        return None
    return made


class InputBuffer:
    """Simulates TensorFlow's input buffer for a gzip file, to detect where reading stops too early.

    Each call of zlib stops at the end of a member, of the buffer, or of the output space. If a
    call gives no output, TensorFlow reads more of the file. If the file was read to its end,
    TensorFlow stops, even if the buffer holds members that zlib has not seen. So these members are
    lost if the last zlib call for the member before them gives no output. A call gives no output
    in two cases. In the first case, the member is empty. In the second case, a buffer ended inside
    the member, after the last byte that gives output.
    """

    def __init__(self) -> None:
        self.end = 0
        """Number of bytes of the file that have been read."""
        self._made = 0

    def reach(self, at: int, size: int) -> None:
        """Update the state: zlib has consumed the file up to byte `at`. TensorFlow may have read
        further, because it reads whole buffers.
        """
        while self.end < at:
            self.end = min(self.end + INPUT_BUFFER, size)
            self._made = 0

    def make(self, count: int) -> None:
        """Add the number of bytes that were decompressed since the last call."""
        self._made += count

    def close(self, at: int, size: int) -> bool:
        """End a member. Return whether TensorFlow treats the member's end as the file's end."""
        made, self._made = self._made, 0
        if made:
            return False
        if self.end == size:
            return at < size
        self.end = min(at + INPUT_BUFFER, size)
        return False
