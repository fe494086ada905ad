"""The extremes of a sample by their thumbnails."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from tfrecreg.pages.looks import look_galleries
from tfrecreg.pages.records import PageImage, PageRecord


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
        label="",
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
    found = {each.heading: [r.record for r in each.records] for each in look_galleries(sample)}
    assert found == {
        "Darkest images": [0, 1, 2, 3, 4, 5],
        "Lightest images": [19, 18, 17, 16, 15, 14],
        "Least sharp images": [0, 1, 2, 3, 4, 5],
    }


@pytest.mark.parametrize("shape", [(1, 1), (2, 40), (12, 12)])
def test_any_shape_is_judged(shape: tuple[int, int]) -> None:
    sample = [record(n, np.full(shape, n)) for n in range(18)]
    assert len(list(look_galleries(sample))) == 3


def test_a_small_sample_has_none() -> None:
    assert list(look_galleries([record(n, np.zeros((4, 4))) for n in range(17)])) == []
