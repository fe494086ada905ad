"""Resizes decoded images, and decodes the small PNGs of a batch together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.training.arrays import ImageSize, expect_one_of
from tfrecreg.core.images.pixels import LARGEST, decode_alike

Method = Literal["bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5"]

_AVERAGES = ("bilinear", "nearest", "area")
"""These methods average pixels, so their results are always from 0 to 255."""


@dataclass(frozen=True, kw_only=True)
class ImageFit(ImageSize):
    """The arguments of :func:`tfrecreg.load` that concern the size of images."""

    method: Method = "bilinear"
    antialias: bool = False

    def expect_sense(self, *, decodes: bool) -> None:
        """Refuse invalid values and contradictory combinations."""
        expect_one_of("method", self.method, get_args(Method))
        super().expect_sense(decodes=decodes)

    def applied(self, tensorflow: Any, images: Any) -> Any:
        """Resize the images to `size`, as uint8."""
        if self.size is None:
            return images
        tf, size = tensorflow, self.size
        if self.fit == "pad":
            inner, start = _inside(tf, images, *self.sides)
            sized = tf.image.resize(images, inner, method=self.method, antialias=self.antialias)
            sized = tf.image.pad_to_bounding_box(sized, *start, *self.sides)
        else:
            if self.fit == "crop":
                images = _centre(tf, images, *self.sides)
            elif not isinstance(size, tuple):  # rounded down, like `Resize` of torchvision
                height, width = _sides(tf, images)
                shorter = tf.maximum(tf.minimum(height, width), 1)
                sides = tf.stack([height * size // shorter, width * size // shorter])
                size = tf.cast(sides, tf.int32)
            sized = tf.image.resize(images, size, method=self.method, antialias=self.antialias)
        # The other methods overshoot, and a plain cast would turn white into black.
        cast = tf.cast if self.method in _AVERAGES else tf.saturate_cast
        return cast(tf.round(sized), tf.uint8)


def _sides(tensorflow: Any, images: Any) -> tuple[Any, Any]:
    shape = tensorflow.shape(images, tensorflow.int64)
    return shape[-3], shape[-2]


def _centre(tensorflow: Any, images: Any, height: Any, width: Any) -> Any:
    """Crop to the largest centered part in the ratio of `height` to `width`. Sides are rounded
    down."""
    tf = tensorflow
    has_height, has_width = _sides(tf, images)
    rows = tf.clip_by_value(has_width * height // width, 1, has_height)
    columns = tf.clip_by_value(has_height * width // height, 1, has_width)
    top, left = (has_height - rows) // 2, (has_width - columns) // 2
    return images[..., top : top + rows, left : left + columns, :]


def _inside(tensorflow: Any, images: Any, height: Any, width: Any) -> tuple[Any, tuple[Any, Any]]:
    """The largest size that fits into `height` and `width` and keeps the proportions of the images.
    Its sides are rounded down. The second pair has the top and left edge for centering.

    `tf.image.resize_with_pad` computes the same, but refuses images so thin that a side becomes 0.
    """
    tf = tensorflow
    high, wide = (tf.maximum(side, 1) for side in _sides(tf, images))
    rows = tf.clip_by_value(high * width // wide, 1, height)
    columns = tf.clip_by_value(wide * height // high, 1, width)
    top = tf.maximum(height * wide - high * width, 0) // (2 * wide)
    left = tf.maximum(width * high - wide * height, 0) // (2 * high)
    inner = tf.cast(tf.stack([rows, columns]), tf.int32)
    return inner, (tf.cast(top, tf.int32), tf.cast(left, tf.int32))


_SLACK = 1 << 10
"""A small PNG has at most this many bytes more than its pixels."""
_MOST_MISSES = 8
"""After this many consecutive batches with other images, no further batch is decoded as a whole."""


def together(tensorflow: Any, data: Any, channels: int) -> Any:
    """The images of a batch, if all of them are small PNGs of one shape."""
    none = tensorflow.zeros((0, 0, 0, 0), tensorflow.uint8)
    most = tensorflow.reduce_max(tensorflow.strings.length(data))
    decode = _decoder(channels)
    pixels = tensorflow.cond(
        most <= LARGEST + _SLACK,
        lambda: tensorflow.numpy_function(decode, [data], tensorflow.uint8, stateful=False),
        lambda: none,
    )
    return tensorflow.ensure_shape(pixels, (None, None, None, None))


def _decoder(channels: int) -> Callable[[npt.NDArray[np.object_]], npt.NDArray[np.uint8]]:
    misses = 0

    def decode(images: npt.NDArray[np.object_]) -> npt.NDArray[np.uint8]:
        nonlocal misses
        pixels = decode_alike(images.tolist()) if misses < _MOST_MISSES else None
        if pixels is not None and channels not in (0, pixels.shape[-1]):
            # TensorFlow does other conversions.
            is_grey = (pixels.shape[-1], channels) == (1, 3)
            pixels = np.repeat(pixels, 3, axis=-1) if is_grey else None
        misses = misses + 1 if pixels is None else 0
        return np.empty((0, 0, 0, 0), np.uint8) if pixels is None else pixels

    return decode
