"""Levels, ranges, sides, PNG sizes and repeats, each against a plain way to get them."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.builtin.validators.inflation.feature_sample import (
    png_bytes,
)
from tfrecreg.builtin.validators.inflation.stored_numbers import (
    decompressed,
    read_npy,
)
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import float_feature


@settings(max_examples=30)
@given(
    height=st.integers(1, 20),
    width=st.integers(1, 20),
    channels=st.sampled_from([1, 3, 4]),
    seed=st.integers(0, 99),
)
def test_a_png_is_about_as_large_as_pillow_makes_it(
    height: int, width: int, channels: int, seed: int
) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    dice = np.random.default_rng(seed)
    steps = dice.integers(-3, 4, (height, width, channels)).cumsum(axis=0).cumsum(axis=1)
    pixels = steps.astype(np.uint8)
    data = io.BytesIO()
    image.fromarray(pixels[:, :, 0] if channels == 1 else pixels).save(data, "PNG")
    assert png_bytes(pixels) <= len(data.getvalue()) * 1.15 + 20


class TestWrapped:
    def test_an_npy_is_read_without_evaluating_its_header(self) -> None:
        made = io.BytesIO()
        array = np.arange(24, dtype=">i2").reshape(2, 3, 4)
        np.save(made, array)
        found = read_npy(made.getvalue())
        assert found is not None
        assert (found.dtype, found.tolist()) == (array.dtype, array.tolist())
        assert read_npy(made.getvalue()[:-1]) is None
        assert read_npy(made.getvalue().replace(b">i2", b"|O8")) is None
        huge = made.getvalue().replace(b"(2, 3, 4)", b"(99999999,)")
        assert read_npy(huge) is None
        assert read_npy(b"\x93NUMPY\x01\x00") is None

    @pytest.mark.parametrize(
        ("header", "values"),
        [
            (b"{'shape': (128", None),
            (b"'''abc", None),
            (b"{'descr': '<f4', 'fortran_order': False, 'shape': (128L,), }", [0.0] * 128),
        ],
        ids=["open bracket", "open string", "python 2"],
    )
    def test_a_strange_npy_header_raises_and_warns_of_nothing(
        self, header: bytes, values: list[float] | None
    ) -> None:
        size = len(header).to_bytes(2, "little")
        found = read_npy(b"\x93NUMPY\x01\x00" + size + header + bytes(512))
        assert (None if found is None else found.tolist()) == values

    def test_what_unpacks_to_too_much_is_left_alone(self) -> None:
        assert decompressed(gzip.compress(bytes(1 << 20))) == bytes(1 << 20)
        assert decompressed(gzip.compress(bytes((1 << 24) + 1))) is None
        assert decompressed(gzip.compress(b"x" * 999)[:-5]) is None
        assert decompressed(b"\x78\x9c no zlib") is None
        assert decompressed(b"text") is None


def test_parts_are_small_whatever_the_features_are_called() -> None:
    from scan_support import shard

    from tfrecreg.builtin.validators.inflation.validator import (
        MOST_FEATURES,
        InflationValidator,
        SizesVisitor,
    )
    from tfrecreg.core.records.batch import RecordBatch, StreamEnd
    from tfrecreg.core.storage.local import LocalStorage

    scale = SizesVisitor(shard(LocalStorage("/nowhere"), "x"))
    for number in range(8):
        example = {f"{number}-{each}": float_feature(0.5) for each in range(100)}
        payload = encode(example)
        scale.batch(RecordBatch(number, [0], [len(payload)], [0], payload))
    part = scale.close(StreamEnd("none", 1, 1, 8, 1, None, None))
    assert len(part.samples) == MOST_FEATURES
    assert len(part.features) == 800
    codec = InflationValidator.part_codec
    assert codec.unpack(codec.pack(part)).features == part.features
