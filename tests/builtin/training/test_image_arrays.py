"""Images as arrays: the shapes that TensorFlow's decoder gives, and errors that name the image."""

from __future__ import annotations

import io
from functools import partial
from typing import Any

import numpy as np
import pytest

from tfrecreg.builtin.training import images as image_arrays
from tfrecreg.builtin.training.arrays import Elements, ImageSize
from tfrecreg.core.plugins.decoders import Decoders
from tfrecreg.core.values.errors import RefusedError

Image = pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")
image_array = partial(image_arrays.image_array, decode=Decoders().array)
PIXELS = np.random.default_rng(1).integers(0, 256, (6, 5, 4), np.uint8)


def encoded(image: Any, form: str = "PNG", **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, form, **options)
    return stream.getvalue()


def made(mode: str) -> Any:
    image = Image.fromarray(PIXELS, "RGBA")
    return image.convert("RGB").convert("P") if mode == "P" else image.convert(mode)


@pytest.mark.parametrize(
    ("mode", "channels"), [("L", 1), ("LA", 2), ("RGB", 3), ("RGBA", 4), ("P", 3), ("1", 1)]
)
def test_channels_are_those_of_the_image(mode: str, channels: int) -> None:
    data = encoded(made(mode))
    found = image_array("x", data, single=True)
    assert (found.shape, found.dtype) == ((6, 5, channels), np.uint8)
    if mode == "RGB":
        assert np.array_equal(found, PIXELS[:, :, :3])
    found[0, 0, 0] ^= 1  # it may be written to


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "P", "P with alpha", "1"])
def test_tensorflow_decodes_the_same(mode: str) -> None:
    tf = pytest.importorskip("tensorflow", reason="the extra `tf` is not installed")
    data = encoded(made("RGBA").convert("P") if mode == "P with alpha" else made(mode))
    theirs = tf.io.decode_image(data, expand_animations=False).numpy()
    assert np.array_equal(image_array("x", data, single=True), theirs)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_channels_are_converted_as_by_pillow(channels: int) -> None:
    def converted(pixels: Any) -> Any:
        form = Elements(size=ImageSize(channels=channels))
        return image_arrays.fitting(lambda *_: pixels, form)("x", b"")

    for mode in ("L", "LA", "RGB", "RGBA"):
        expected = made(mode).convert({1: "L", 3: "RGB", 4: "RGBA"}[channels])
        found = converted(np.asarray(made(mode)).reshape(6, 5, -1))
        assert found.tolist() == np.asarray(expected).reshape(6, 5, channels).tolist()
    for other in (PIXELS.astype(np.uint16), PIXELS[..., 0], np.repeat(PIXELS, 2, axis=-1)):
        assert converted(other) is other


def test_sixteen_bits_become_eight() -> None:
    deep = np.array([[0, 255, 256], [40_000, 65_535, 511]], np.uint16)
    found = image_array("x", encoded(Image.fromarray(deep)), single=True)
    assert found[:, :, 0].tolist() == [[0, 0, 1], [156, 255, 1]]


def test_cmyk_becomes_rgb() -> None:
    found = image_array("x", encoded(made("CMYK"), "JPEG"), single=True)
    assert found.shape == (6, 5, 3)


def values(*images: bytes) -> Any:
    found = np.empty(len(images), object)
    found[:] = images
    return found


def test_several_images_become_an_array_of_them() -> None:
    data = encoded(made("L"))
    assert image_array("x", values(data), single=True).shape == (6, 5, 1)
    for images in (values(data), values(data, data), values()):
        found = image_array("x", images, single=False)
        assert found.shape == images.shape
        assert {each.shape for each in found} <= {(6, 5, 1)}
    assert image_array("x", values(data, data), single=True).shape == (2,)


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n", b"no image", encoded(made("L"))[:-30]])
def test_what_does_not_decode_is_refused(data: bytes) -> None:
    with pytest.raises(RefusedError, match=r"has an image in `a/b` that does not decode: ."):
        image_array("a/b", data, single=True)


def test_numbers_are_no_image() -> None:
    for value in (np.int64(3), np.arange(3)):
        with pytest.raises(RefusedError, match="has numbers in `x`"):
            image_array("x", value, single=True)
