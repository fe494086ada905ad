"""The extremes of a sample by their thumbnails."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from tfrecreg.builtin.pages.content import striking_looks
from tfrecreg.builtin.pages.records import PageImage, PageRecord


def record(number: int, pixels: np.ndarray) -> PageRecord:
    out = BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(out, "PNG")
    height, width = pixels.shape[:2]
    return PageRecord(
        split="train",
        shard="a",
        record=number,
        offset=0,
        length=1,
        key=None,
        marks=(),
        features=(),
        more_features=0,
        image=PageImage(format="png", data=out.getvalue(), width=width, height=height),
        problem="",
    )


def test_the_extremes_are_found() -> None:
    rng = np.random.default_rng(1)
    noise = rng.integers(-1, 2, (20, 12, 12, 3))
    # Each is lighter and sharper than the one before.
    sample = [record(n, 100 + 5 * n + n * noise[n]) for n in range(20)]
    found = {words: [each.record for each in records] for words, records in striking_looks(sample)}
    assert found == {
        "darkest of the sample": [0, 1, 2],
        "lightest of the sample": [19, 18, 17],
        "least sharp of the sample": [0, 1, 2],
    }


@pytest.mark.parametrize("shape", [(1, 1), (2, 40), (12, 12)])
def test_any_shape_is_judged(shape: tuple[int, int]) -> None:
    sample = [record(n, np.full(shape, n)) for n in range(18)]
    assert len(list(striking_looks(sample))) == 3


def test_a_small_sample_has_none() -> None:
    assert list(striking_looks([record(n, np.zeros((4, 4))) for n in range(17)])) == []
