"""Index sidecars of other tools: a line for each record, its byte in the file and its size.

``tfrecord2idx`` of NVIDIA DALI and of the package `tfrecord` on PyPI write them, as ``.idx``,
``.tfindex`` or ``.index``: two decimal numbers, a space between, a newline behind. The size is that
of the whole frame, 16 bytes more than the payload. There is no checksum and no compression in the
format: the offsets are those of a plain file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from tfrecreg.errors import UsageError
from tfrecreg.records.framing import MAX_LENGTH, OVERHEAD

__all__ = ["parse_sidecar", "render_sidecar"]

_LINES = 1 << 14
"""So many are written at once."""
_HINT = "make it again with `tfrecord2idx`, or leave it out: then the shard itself is read"


def render_sidecar(lengths: Iterable[int]) -> Iterator[bytes]:
    """The lines of a sidecar, in pieces.

    Args:
        lengths: bytes of each payload, in the order of the records.
    """
    at = 0
    lines: list[str] = []
    for length in lengths:
        size = int(length) + OVERHEAD
        lines.append(f"{at} {size}\n")
        at += size
        if len(lines) == _LINES:
            yield "".join(lines).encode("ascii")
            lines.clear()
    if lines:
        yield "".join(lines).encode("ascii")


def parse_sidecar(data: bytes, where: str) -> npt.NDArray[np.int64]:
    """The payload lengths that a sidecar states.

    Args:
        data: the sidecar.
        where: what messages call it, escaped.

    Returns:
        Shape (records,): bytes of each payload. Records follow each other without a gap, so their
        offsets are the sums of these and of the 16 bytes of every frame.

    Raises:
        UsageError: it is none: the line is named where a record does not begin where the one
            before it ends, or is shorter than a frame.
    """
    words = data.split()
    lines = sum(1 for line in data.splitlines() if line.strip())
    if len(words) != 2 * lines or not all(map(bytes.isdigit, words)):
        raise UsageError(
            f"`{where}` is no index of records: expected lines of `offset size`, found "
            f"{data[:12].hex(' ') or 'nothing'}{' …' if len(data) > 12 else ''}",
            hint=_HINT,
        )
    try:
        rows = np.array(words, dtype=np.bytes_).astype(np.int64).reshape(lines, 2)
    except (ValueError, OverflowError):
        raise UsageError(f"`{where}` has numbers of more than 63 bits", hint=_HINT) from None
    offsets, sizes = rows[:, 0], rows[:, 1]
    small = np.flatnonzero((sizes < OVERHEAD) | (sizes > MAX_LENGTH + OVERHEAD))
    if len(small):
        line = int(small[0])
        raise UsageError(
            f"line {line + 1} of `{where}`: a record of {int(sizes[line])} bytes, expected "
            f"{OVERHEAD} to {MAX_LENGTH + OVERHEAD}",
            hint=_HINT,
        )
    expected = np.cumsum(sizes) - sizes
    wrong = np.flatnonzero(offsets != expected)
    if len(wrong):
        line = int(wrong[0])
        raise UsageError(
            f"line {line + 1} of `{where}`: a record at byte {int(offsets[line])}, expected "
            f"{int(expected[line])}, where the one before it ends",
            hint=_HINT,
        )
    lengths: npt.NDArray[np.int64] = sizes - OVERHEAD
    return lengths
