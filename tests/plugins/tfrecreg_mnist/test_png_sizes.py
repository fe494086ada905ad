"""The encoder's fixed choices against the others, on real images: the table of the docs.

python -m pytest -m slow -s tests/plugins/tfrecreg_mnist/test_png_sizes.py
"""

from __future__ import annotations

import gzip
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tfrecreg_mnist import grey_png

pytestmark = [pytest.mark.realdata, pytest.mark.slow]


def scanlines(pixels: NDArray[np.uint8]) -> dict[str, NDArray[np.uint8]]:
    """Every image's scanlines under each filter of PNG, and under the usual heuristic."""
    x = pixels.astype(np.int16)
    left, up, corner = np.zeros((3, *x.shape), np.int16)
    left[:, :, 1:] = x[:, :, :-1]
    up[:, 1:] = x[:, :-1]
    corner[:, 1:, 1:] = x[:, :-1, :-1]
    near = [abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)]
    paeth = np.where(
        (near[0] <= near[1]) & (near[0] <= near[2]), left, np.where(near[1] <= near[2], up, corner)
    )
    filtered = {
        "none": x,
        "sub": x - left,
        "up": x - up,
        "average": x - (left + up) // 2,
        "paeth": x - paeth,
    }
    lines = {
        name: np.insert((each & 255).astype(np.uint8), 0, kind, axis=2)
        for kind, (name, each) in enumerate(filtered.items())
    }
    rows = np.stack(list(lines.values()))
    best = np.abs(rows[..., 1:].view(np.int8).astype(np.int16)).sum(3).argmin(0)
    lines["least sum"] = np.choose(best[..., None], rows)
    return lines


@pytest.mark.parametrize("name", ["mnist-t10k", "notmnist-t10k"])
def test_no_filter_is_the_smallest_there_is(name: str, realdata: Path) -> None:
    file = realdata / "mnist" / name / "t10k-images-idx3-ubyte.gz"
    data = gzip.decompress(file.read_bytes())[16:]
    pixels = np.frombuffer(data, np.uint8).reshape(-1, 28, 28)
    print(f"\n{name}, {len(pixels)} images, zlib {zlib.ZLIB_RUNTIME_VERSION}, bytes an image")
    sizes = {}
    for kind, lines in scanlines(pixels).items():
        rows = [each.tobytes() for each in lines]
        sizes[kind] = sum(len(zlib.compress(each, 5)) for each in rows) / len(rows)
        print(f"level 5, filter {kind:10} {sizes[kind] + 57:6.1f}")
    rows = [each.tobytes() for each in scanlines(pixels)["none"]]
    for level in (1, 4, 5, 6, 9):
        start = time.process_time()
        size = sum(len(zlib.compress(each, level)) for each in rows) / len(rows)
        spent = (time.process_time() - start) / len(rows)
        print(f"level {level}, filter none       {size + 57:6.1f} {1e6 * spent:5.1f} µs in zlib")
    assert min(sizes, key=lambda kind: sizes[kind]) == "none"
    images = [each.tobytes() for each in pixels]
    start = time.process_time()
    total = sum(len(grey_png.encode_png(each, 28, 28)) for each in images)
    spent = (time.process_time() - start) / len(images)
    print(f"grey_png.encode            {total / len(images):6.1f} {1e6 * spent:5.1f} µs in all")
    # Its smaller window and blocks cost next to nothing.
    usual = sum(len(zlib.compress(each, 5)) + 57 for each in rows)
    assert usual * 0.999 <= total <= usual * 1.001
