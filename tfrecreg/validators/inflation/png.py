"""How large pixels are as a PNG: they are encoded, and nothing is kept but the size.

W3C Portable Network Graphics, third edition: 9 (filtering), 12.7 (how to choose a filter: that of
the least sum of absolute differences, row by row).
"""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

__all__ = ["png_bytes"]

Pixels = npt.NDArray[np.uint8]
"""Shape (height, width, channels)."""

_AROUND = 8 + 25 + 12 + 12
"""Bytes of the signature, of IHDR and IEND, and around the data in IDAT."""
_LEVEL = 6


def png_bytes(pixels: Pixels) -> int:
    """Bytes of a PNG of these pixels as libpng makes it: a filter is chosen for each row.

    That is what TensorFlow and Pillow write; without a filter drawings become smaller, with an
    encoder that tries.

    Args:
        pixels: uint8, shape (height, width, channels), 1 to 4 channels.
    """
    lines = _filtered(pixels.reshape(len(pixels), -1), pixels.shape[2])
    squeeze = zlib.compressobj(_LEVEL, strategy=zlib.Z_FILTERED)
    return _AROUND + len(squeeze.compress(lines.tobytes())) + len(squeeze.flush())


def _filtered(rows: npt.NDArray[np.uint8], step: int) -> npt.NDArray[np.uint8]:
    """The rows with the filter that suits each, its number in front."""
    here = rows.astype(np.int16)
    left, up, corner = np.zeros_like(here), np.zeros_like(here), np.zeros_like(here)
    left[:, step:] = here[:, :-step]
    up[1:] = here[:-1]
    corner[1:, step:] = here[:-1, :-step]
    guesses = np.stack((np.zeros_like(here), left, up, (left + up) // 2, _paeth(left, up, corner)))
    filtered = (here - guesses).astype(np.uint8)
    cost = np.abs(filtered.view(np.int8).astype(np.int16)).sum(axis=2, dtype=np.int64)
    best = cost.argmin(axis=0)
    lines = np.empty((len(rows), 1 + rows.shape[1]), np.uint8)
    lines[:, 0] = best
    lines[:, 1:] = filtered[best, np.arange(len(rows))]
    return lines


def _paeth(
    left: npt.NDArray[np.int16], up: npt.NDArray[np.int16], corner: npt.NDArray[np.int16]
) -> npt.NDArray[np.int16]:
    guess = left + up - corner
    far_left, far_up, far_corner = (np.abs(guess - each) for each in (left, up, corner))
    upper = np.where(far_up <= far_corner, up, corner)
    return np.where((far_left <= far_up) & (far_left <= far_corner), left, upper)
