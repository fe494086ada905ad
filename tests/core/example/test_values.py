"""From Python values to features: without loss, or with an error that names the feature."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pytest

from tfrecreg.core.example.decode import decode
from tfrecreg.core.example.model import Kind, encode
from tfrecreg.core.example.tensors import parse_tensor, serialize_tensor
from tfrecreg.core.example.values import int64_feature, to_example
from tfrecreg.core.values.errors import UsageError

B, F, I = Kind.BYTES, Kind.FLOAT, Kind.INT64  # noqa: E741 - as short as the table wants them


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (7, I, (7,)),
        (True, I, (1,)),
        (-(2**63), I, (-(2**63),)),
        (0.5, F, (0.5,)),
        (0.1, F, (float(np.float32(0.1)),)),
        (b"\x00", B, (b"\x00",)),
        (bytearray(b"ab"), B, (b"ab",)),
        (memoryview(b"ab"), B, (b"ab",)),
        ("größer", B, ("größer".encode(),)),
        ([1, 2, 3], I, (1, 2, 3)),
        ([True, 2], I, (1, 2)),
        ((1, 0.5), F, (1.0, 0.5)),
        (["a", b"b"], B, (b"a", b"b")),
        ([np.int32(4), 5], I, (4, 5)),
        ([np.float32(0.5)], F, (0.5,)),
        ([np.float32(0.1), 0.1, 1], F, (float(np.float32(0.1)),) * 2 + (1.0,)),
        ([np.float64(0.5), np.float32(0.1)], F, (0.5, float(np.float32(0.1)))),
        ([np.float64(math.inf)], F, (math.inf,)),
        (np.float64(0.5), F, (0.5,)),
        (np.float64(-math.inf), F, (-math.inf,)),
        (np.float32(0.1), F, (float(np.float32(0.1)),)),
        (np.float16(0.1), F, (float(np.float16(0.1)),)),
        (np.int8(-3), I, (-3,)),
        (np.array([1, 2], np.uint16), I, (1, 2)),
        (np.array([2**63 - 1], np.uint64), I, (2**63 - 1,)),
        (np.array([True, False]), I, (1, 0)),
        (np.array([0.5], np.float16), F, (0.5,)),
        (np.array([0.5, 2.0**100]), F, (0.5, 2.0**100)),
        (np.array([math.inf, -math.inf]), F, (math.inf, -math.inf)),
        (np.array(["a", "bc"]), B, (b"a", b"bc")),
        (np.array([b"a\x00b", b"c"], object), B, (b"a\x00b", b"c")),
        (np.zeros(0, np.int64), I, ()),
        (np.zeros(0, np.float32), F, ()),
        (int64_feature([8, 9]), I, (8, 9)),
    ],
)
def test_values_become_features(value: Any, kind: Kind, expected: tuple[Any, ...]) -> None:
    found = decode(encode(to_example({"x": value})))["x"]
    assert (found.kind, found.values) == (kind, expected)


SIGNALING = np.array([0x7FF0_0000_0000_0001]).view(np.float64)


@pytest.mark.parametrize(
    "nan", [np.array([math.nan]), np.float64(math.nan), [np.float64("nan")], SIGNALING]
)
@pytest.mark.parametrize("told", ["warn", "raise"])
def test_nan_stays_nan(nan: Any, told: Any) -> None:
    with np.errstate(all=told):
        (value,) = to_example({"x": nan})["x"].values
    assert math.isnan(value)


def test_what_is_none_is_left_out() -> None:
    assert to_example({"x": None, "y": 1}).keys() == {"y"}


def test_an_array_of_two_dimensions_is_a_tensor() -> None:
    array = np.arange(6, dtype=np.float64).reshape(2, 3) / 7
    (data,) = to_example({"x": array})["x"].values
    np.testing.assert_array_equal(parse_tensor(data), array)


@pytest.mark.parametrize("told", ["ignore", "raise"])
@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([], "an empty list has no type"),
        ([1, "a"], "a list of int and str"),
        ([[1], [2]], "a list of list"),
        ([2**24 + 1, 0.5], "16777217 is in a list of floats"),
        (2**63, "9223372036854775808"),
        (np.array([2**63], np.uint64), "9223372036854775808"),
        (np.array([0.1]), "float32 does not hold"),
        (np.array([1e300]), "float32 does not hold"),
        (np.float64(0.1), "float32 does not hold 0.1 of type `float64` exactly"),
        (np.array(0.1), "float32 does not hold 0.1 of type `float64` exactly"),
        ([0.1, np.float64(0.1)], "float32 does not hold 0.1 from a list of `float64` exactly"),
        ((1, np.float64(1e-50)), "float32 does not hold 1e-50 from a list of `float64` exactly"),
        (1e300, "1e+300"),
        (1j, "`complex`"),
        (np.array([1j]), "complex128"),
        (np.array(["2020-01-01"], "datetime64[D]"), "datetime64[D]"),
        (np.array([object()]), "`object`"),
        (np.array([[object()]], object), "expected bytes or str in the array, found `object`"),
        ({"a": 1}, "`dict`"),
        ("\ud800", "surrogate"),
        (np.array([["\ud800"]]), "surrogates not allowed"),
    ],
)
def test_what_has_no_lossless_place_is_refused(value: Any, says: str, told: Any) -> None:
    with np.errstate(all=told), pytest.raises(UsageError) as caught:
        to_example({"fine": 1, "x": value})
    assert caught.value.message.startswith("feature `x`: ")
    assert says in caught.value.message


def test_a_mask_is_not_dropped() -> None:
    values = np.ma.array([1, 2, 3], mask=[False, True, False])
    with pytest.raises(UsageError, match="a masked array has values that are missing"):
        to_example({"x": values})
    assert to_example({"x": values.compressed()})["x"].values == (1, 3)
    unmasked = np.ma.array([1, 2], mask=[False, False])
    assert to_example({"x": unmasked})["x"].values == (1, 2)


class TestImages:
    def test_an_image_of_pillow_is_a_png_of_its_pixels(self) -> None:
        image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
        pixels = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
        (data,) = to_example({"image": image.fromarray(pixels)})["image"].values
        np.testing.assert_array_equal(np.asarray(image.open(io.BytesIO(data))), pixels)

    def test_one_that_png_does_not_keep_is_refused(self) -> None:
        image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
        with pytest.raises(UsageError, match="PNG does not store mode `CMYK` unchanged"):
            to_example({"image": image.new("CMYK", (2, 2))})
        image.new("L", (999, 999)).save(data := io.BytesIO(), "PNG")
        with pytest.raises(UsageError, match="feature `image`: image file is truncated"):
            to_example({"image": image.open(io.BytesIO(data.getvalue()[:99]))})


class TestTensorFlow:
    """TensorFlow itself is the reference."""

    ARRAYS = (
        np.zeros((2, 3), np.float32),
        np.array(5, np.uint8),
        np.zeros((0, 4), np.int16),
        np.array([["a", "ü"]]),
        np.array([b"", b"x\x00y"], object),
        np.array([[True], [False]]),
        np.array([0.1, math.inf], np.float16),
        np.array([1 + 2j], np.complex64),
        np.array([1 + 2j], np.complex128),
        np.array([2**64 - 1, 0], np.uint64),
        np.array([-1, 2**40]),
        np.arange(24, dtype=">i4").reshape(2, 3, 4),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    )

    @pytest.mark.parametrize("array", ARRAYS, ids=lambda each: f"{each.dtype}-{each.shape}")
    def test_tensors_have_the_bytes_that_tensorflow_gives_them(self, array: Any) -> None:
        tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
        native = array.astype(array.dtype.newbyteorder("="))
        data = serialize_tensor(array)
        assert data == tf.io.serialize_tensor(tf.constant(native)).numpy()
        found = parse_tensor(data)
        assert found.shape == array.shape
        expected = tf.io.parse_tensor(data, tf.constant(native).dtype).numpy()
        np.testing.assert_array_equal(found, expected)

    def test_tensors_are_taken_as_arrays(self) -> None:
        tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
        example = to_example({"n": tf.constant([1, 2]), "s": tf.constant("a"), "m": tf.eye(2)})
        assert example["n"].values == (1, 2)
        assert example["s"].values == (b"a",)
        np.testing.assert_array_equal(parse_tensor(example["m"].values[0]), np.eye(2))

    def test_tensors_of_pytorch_are_taken_as_arrays(self) -> None:
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        gradient = torch.ones(3, requires_grad=True)
        assert to_example({"x": gradient})["x"].values == (1.0, 1.0, 1.0)
