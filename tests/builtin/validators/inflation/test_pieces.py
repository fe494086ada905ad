"""Levels, ranges, sides, PNG sizes and repeats, each against a plain way to get them."""

from __future__ import annotations

import gzip
import io
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.builtin.validators.inflation import shard_sizes
from tfrecreg.builtin.validators.inflation.feature_sample import (
    FeatureSample,
    Range,
    byte_levels,
    png_bytes,
    smooth_levels,
    varint_bytes,
)
from tfrecreg.builtin.validators.inflation.shard_sizes import Repeats, sampled
from tfrecreg.builtin.validators.inflation.stored_numbers import (
    ImageShape,
    declared_shapes,
    decompressed,
    fitting_shapes,
    read_npy,
)
from tfrecreg.core.example.columns import message_bytes
from tfrecreg.core.example.encode import encode
from tfrecreg.core.example.features import bytes_feature, float_feature, int64_feature
from tfrecreg.core.example.wire import varint_size


class TestLevels:
    @settings(max_examples=60)
    @given(
        levels=st.lists(st.integers(0, 255), min_size=1, max_size=300),
        scale=st.sampled_from([1 / 255, 1 / 127.5, 2 / 255, 1 / 256, 1.0, 0.017]),
        offset=st.sampled_from([0.0, -0.5, -1.0, 3.25, -0.485]),
    )
    def test_bytes_that_were_scaled_as_float32_are_told(
        self, levels: list[int], scale: float, offset: float
    ) -> None:
        # Neighbours that differ by one show how wide a step is.
        numbers = np.array([*levels, 100, 101])
        values = (numbers * np.float32(scale) + np.float32(offset)).astype("<f4")
        found = byte_levels(values)
        assert found is not None
        assert (found.astype(int) - found.min() == numbers - numbers.min()).all()

    @pytest.mark.parametrize(
        "values",
        [
            np.random.default_rng(1).normal(size=300),
            np.arange(257.0),
            np.array([0.0, 1.0, 256.0]),
            np.array([0.0, 1.0, 2.4]),
            np.array([0.0, np.nan]),
            np.array([0.0, np.inf]),
        ],
        ids=["real", "257", "far", "uneven", "nan", "inf"],
    )
    def test_other_numbers_are_none(self, values: np.ndarray) -> None:
        assert byte_levels(values) is None

    def test_a_single_value_is_one_level(self) -> None:
        found = byte_levels(np.full((3, 2), 0.5))
        assert found is not None
        assert found.tolist() == [[0, 0], [0, 0], [0, 0]]


class TestChannels:
    """Images whose channels were scaled separately, as with a mean and a deviation for each."""

    SHAPE = ImageShape(16, 8, 3)

    @staticmethod
    def pixels() -> np.ndarray:
        """Each channel from 0 to 255, and no two of the same pixels."""
        ramp = np.concatenate([np.arange(64), np.arange(192, 256)]).astype(np.uint8)
        return np.stack([ramp, ramp[::-1], np.roll(ramp, 41)], axis=1)

    def sample(self, values: np.ndarray) -> FeatureSample:
        sample = FeatureSample()
        feature = float_feature(values.astype("<f4").tobytes())
        sample.add("image/raw", feature, [self.SHAPE])
        return sample

    def test_three_scales_are_the_levels_of_the_pixels(self) -> None:
        pixels = self.pixels()
        scales, offsets = np.float32([1 / 255, 0.017, 2 / 255]), np.float32([-0.5, -2.1, 3.25])
        sample = self.sample(pixels * scales + offsets)
        height, width, channels = 16, 8, 3
        rows = pixels.reshape(height, width, channels)
        assert (sample.wide, sample.levels, sample.pixels) == (True, pixels.size, pixels.size)
        assert (sample.tried, sample.png) == (pixels.size, png_bytes(rows))
        turned = pixels.T.reshape(height, width, channels)
        assert png_bytes(turned) != png_bytes(rows)

    def test_one_channel_without_levels_is_enough_to_leave_it_alone(self) -> None:
        values = self.pixels().astype(float) / 255
        values[:, 1] = np.random.default_rng(1).normal(size=len(values))
        assert (self.sample(values).wide, self.sample(values).levels) == (False, 0)


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_bytes_of_varints_are_those_of_the_encoder(values: list[int]) -> None:
    expected = sum(varint_size(value & (2**64 - 1)) for value in values)
    assert varint_bytes(np.array(values, np.int64)) == expected


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [
        (0, 0, "uint8"),
        (0, 255, "uint8"),
        (-1, 127, "int8"),
        (0, 256, "uint16"),
        (-129, 0, "int16"),
        (0, 65_536, "uint32"),
        (-40_000, 1, "int32"),
        (0, 2**32, "int64"),
    ],
)
def test_the_narrowest_type_holds_the_range(low: int, high: int, dtype: str) -> None:
    seen = Range()
    seen.add(high, high, 3)
    seen.add(0, 0, 0)
    seen.add(low, high, 2)
    assert (seen.dtype, seen.count) == (dtype, 5)
    assert Range(seen.count, seen.low, seen.high).dtype == dtype


class TestSides:
    @pytest.mark.parametrize(
        "names",
        [
            ("image/height", "image/width", "image/channels"),
            ("image_height", "image_width", "image_depth"),
            ("height", "width", "channel"),
            ("Rows", "Cols", "Channels"),
        ],
    )
    def test_what_features_declare_is_found_by_their_names(self, names: tuple[str, ...]) -> None:
        example = {name: int64_feature(each) for name, each in zip(names, (5, 7, 3), strict=True)}
        assert declared_shapes(example) == [ImageShape(5, 7, 3)]
        assert list(fitting_shapes(105, "x", [ImageShape(5, 7, 3)])) == [ImageShape(5, 7, 3)]
        assert list(fitting_shapes(106, "x", [ImageShape(5, 7, 3)])) == []

    def test_sides_of_two_images_are_kept_apart(self) -> None:
        example = {
            "left/height": int64_feature(1),
            "left/width": int64_feature(2),
            "right/height": int64_feature(3),
            "right/width": int64_feature(4),
            "right/depth": int64_feature(1),
            "odd/height": int64_feature([5, 6]),
            "odd/width": bytes_feature(b"7"),
        }
        assert declared_shapes(example) == [ImageShape(1, 2, 0), ImageShape(3, 4, 1)]

    def test_without_declared_channels_the_usual_ones_are_thought_of(self) -> None:
        assert list(fitting_shapes(5 * 7 * 4, "x", [ImageShape(5, 7, 0)])) == [ImageShape(5, 7, 4)]
        assert list(fitting_shapes(5 * 7 * 2, "x", [ImageShape(5, 7, 0)])) == []

    def test_a_square_needs_a_name_that_sounds_like_an_image(self) -> None:
        assert list(fitting_shapes(784, "image_floats", [])) == [ImageShape(28, 28, 1)]
        assert list(fitting_shapes(3072, "pixels", [])) == [ImageShape(32, 32, 3)]
        assert list(fitting_shapes(784, "embedding", [])) == []
        assert list(fitting_shapes(49, "image", [])) == []


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


@pytest.mark.parametrize("channels", [1, 3])
def test_a_png_of_a_drawing_is_as_large_as_pillow_makes_it(channels: int) -> None:
    """Where no filter would be smaller, which neither Pillow nor TensorFlow tries."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    guessed = made = 0
    for seed in range(30):
        pixels = np.zeros((32, 32, channels), np.uint8)
        for x, y in np.random.default_rng(seed).integers(2, 26, (6, 2)):
            pixels[y : y + 2, 2:x] = 255 - 8 * seed
            pixels[2:y, x : x + 3] = 200
        data = io.BytesIO()
        image.fromarray(pixels[:, :, 0] if channels == 1 else pixels).save(data, "PNG")
        guessed += png_bytes(pixels)
        made += len(data.getvalue())
    assert guessed == pytest.approx(made, rel=0.03)


class TestWrapped:
    def test_an_npy_is_read_without_evaluating_its_header(self) -> None:
        made = io.BytesIO()
        np.save(made, np.arange(24, dtype=">i2").reshape(2, 3, 4))
        assert read_npy(made.getvalue()) == (">i2", (2, 3, 4), len(made.getvalue()) - 48)
        assert read_npy(made.getvalue()[:-1]) is None
        assert read_npy(made.getvalue().replace(b">i2", b"|O8")) is None
        huge = made.getvalue().replace(b"(2, 3, 4)", b"(99999999,)")
        assert read_npy(huge) is None
        assert read_npy(b"\x93NUMPY\x01\x00") is None

    def test_what_unpacks_to_too_much_is_left_alone(self) -> None:
        assert decompressed(gzip.compress(bytes(1 << 20))) == bytes(1 << 20)
        assert decompressed(gzip.compress(bytes((1 << 24) + 1))) is None
        assert decompressed(gzip.compress(b"x" * 999)[:-5]) is None
        assert decompressed(b"\x78\x9c no zlib") is None
        assert decompressed(b"text") is None

    def test_random_floats_are_no_image(self) -> None:
        noise = np.random.default_rng(1).normal(size=3072).astype("<f4")
        assert smooth_levels(noise, 32, 3) is None
        assert smooth_levels(np.zeros(3072, "<f4"), 32, 3) is None
        ramp = np.linspace(-1, 1, 1024, dtype="<f4")
        levels = smooth_levels(ramp, 32, 1)
        assert levels is not None
        assert (levels[0], levels[-1]) == (0, 255)

    @pytest.mark.parametrize(
        ("values", "width", "channels"),
        [
            (np.linspace(-1, 1, 95), 32, 3),
            (np.linspace(-1, 1, 96), 1, 3),
            (np.append(np.linspace(-1, 1, 95), np.nan), 32, 1),
            (np.append(np.linspace(-1, 1, 95), np.inf), 32, 1),
        ],
        ids=["less than a row", "no neighbors", "nan", "inf"],
    )
    def test_floats_without_rows_of_finite_neighbors_are_no_image(
        self, values: np.ndarray, width: int, channels: int
    ) -> None:
        assert smooth_levels(values.astype("<f4"), width, channels) is None


class TestRepeats:
    @settings(max_examples=40)
    @given(values=st.lists(st.integers(0, 40), max_size=120), cut=st.integers(0, 120))
    def test_of_few_values_all_is_known(self, values: list[int], cut: int) -> None:
        total = Repeats()
        for part in (values[:cut], values[cut:]):
            other = Repeats()
            for value in part:
                other.add(digest(value), 10 + value)
            total.merge(Repeats.of_plain(other.plain()))
        every = sum(10 + value for value in values)
        once = sum(10 + value for value in set(values))
        assert total.share == pytest.approx(1 - once / every if every else 0)
        assert total.times == pytest.approx(len(values) / len(set(values)) if values else 0)

    def test_shards_give_what_one_would(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(shard_sizes, "MOST", 16)
        dice = random.Random(3)
        values = [dice.randrange(300) for _ in range(2000)]
        whole, total = Repeats(), Repeats()
        for value in values:
            whole.add(digest(value), 100)
        for shard in range(5):
            other = Repeats()
            for value in values[shard::5]:
                other.add(digest(value), 100)
            total.merge(other)
        assert total.plain() == whole.plain()
        counts = Counter(digest(value) for value in values)
        smallest = sorted(counts)[:16]
        assert [(row.digest, row.times) for row in whole.plain()] == [
            (each.hex(), counts[each]) for each in smallest
        ]

    def test_it_stays_small(self) -> None:
        seen = Repeats()
        for value in range(20_000):
            seen.add(digest(value), 1)
        assert len(seen._seen) <= 2 * shard_sizes.MOST
        assert seen.share == 0


def digest(value: int) -> bytes:
    return random.Random(value).randbytes(16)


def test_few_records_are_looked_at_and_the_first_ones_are_among_them() -> None:
    found = list(sampled(0, 10_000))
    assert found[:12] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14]
    assert len(found) == 49
    assert found[-1] > 8_000


@given(st.integers(0, 3000), st.integers(0, 500))
def test_batches_do_not_change_which_records_these_are(first: int, count: int) -> None:
    every = [number for number in sampled(0, 4000) if first <= number < first + count]
    assert list(sampled(first, first + count)) == every


@given(st.lists(st.integers(0, 100_000), min_size=1, max_size=9))
def test_bytes_of_messages_are_those_of_features(lengths: list[int]) -> None:
    found = message_bytes(np.array(lengths, np.int64)).tolist()
    assert found == [bytes_feature(bytes(length)).wire_bytes for length in lengths]
    count = lengths[0] + 1
    (found,) = message_bytes(np.array([4 * count], np.int64)).tolist()
    assert found == float_feature(bytes(4 * count)).wire_bytes


def test_parts_are_small_whatever_the_features_are_called() -> None:
    from scan_support import shard

    from tfrecreg.builtin.validators.inflation.shard_sizes import MOST_FEATURES, SizesVisitor
    from tfrecreg.builtin.validators.inflation.validator import InflationValidator
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
