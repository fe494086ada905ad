"""The darkest, lightest and least sharp images of a sample, judged by their thumbnails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tfrecreg.builtin.pages.records import PageRecord
from tfrecreg.core.images.pixels import decode_pixels

_SHOWN = 3
"""Images of each kind."""
_ENOUGH = 6 * _SHOWN
"""Images of a sample from which on the extremes of it say something."""


def striking_looks(sample: Sequence[PageRecord]) -> Iterator[tuple[str, list[PageRecord]]]:
    """The extremes of a sample, in words, with their records; none if it is small.

    Sharpness is the variance of the Laplacian, the usual measure of focus (Pech-Pacheco et al.,
    "Diatom autofocusing in brightfield microscopy", ICPR 2000), of the thumbnail's grey values.
    """
    judged = []
    for record in sample:
        if record.image is not None:
            grey = decode_pixels(record.image.data)[:, :, :3].mean(axis=2)
            judged.append((record, float(grey.mean()), _sharpness(grey)))
    if len(judged) < _ENOUGH:
        return
    by_light = sorted(judged, key=lambda each: each[1])
    by_focus = sorted(judged, key=lambda each: each[2])
    for words, chosen in (
        ("darkest of the sample", by_light[:_SHOWN]),
        ("lightest of the sample", by_light[: -_SHOWN - 1 : -1]),
        ("least sharp of the sample", by_focus[:_SHOWN]),
    ):
        yield words, [each[0] for each in chosen]


def _sharpness(grey: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    if min(grey.shape) < 3:
        return 0.0
    middle = grey[1:-1, 1:-1]
    around = grey[:-2, 1:-1] + grey[2:, 1:-1] + grey[1:-1, :-2] + grey[1:-1, 2:]
    return float((around - 4 * middle).var())
