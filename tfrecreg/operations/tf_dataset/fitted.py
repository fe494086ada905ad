"""How decoded images come to one size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from tfrecreg.errors import UsageError
from tfrecreg.suggest import listed
from tfrecreg.text import safe

Fit = Literal["stretch", "crop", "pad", "short-side"]
Method = Literal["bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5"]


@dataclass(frozen=True, kw_only=True)
class ImageFit:
    """The arguments of :func:`tfrecreg.load` about the size of images."""

    size: tuple[int, int] | int | None = None
    """Height and width, or the shorter side; None for the size that each image has."""
    fit: Fit = "stretch"
    method: Method = "bilinear"
    antialias: bool = False

    @property
    def sides(self) -> tuple[int | None, int | None]:
        """Height and width that all images get; None where it differs."""
        return self.size if isinstance(self.size, tuple) else (None, None)

    def expect_sense(self) -> None:
        """Refuse values that are none, or that do not go together.

        Raises:
            UsageError: they do not.
        """
        for name, value, known in (
            ("fit", self.fit, get_args(Fit)),
            ("method", self.method, get_args(Method)),
        ):
            if value not in known:
                raise UsageError(
                    f"`{name}` should be one of {listed(known)}, found `{safe(str(value))}`",
                    hint=f"`{name}={known[0]!r}` is the default",
                )
        if self.size is None:
            if self != ImageFit():
                raise UsageError(
                    "`fit`, `method` and `antialias` need `image_size`",
                    hint="`image_size=(224, 224), fit='crop'`",
                )
        elif self.fit == "short-side":
            if isinstance(self.size, tuple) or self.size < 1:
                raise UsageError(
                    f"`image_size` should be the length of the shorter side, found {self.size}",
                    hint="`image_size=256, fit='short-side'`; `fit='crop'` takes height and width",
                )
        elif not isinstance(self.size, tuple) or min(self.size) < 1:
            raise UsageError(
                f"`image_size` should be height and width, found {self.size}",
                hint="`image_size=(224, 224)`",
            )

    def applied(self, tensorflow: Any, images: Any) -> Any:
        """The images in their size, uint8.

        Args:
            images: uint8 of shape (…, height, width, channels), with at most one dimension before.
        """
        if self.size is None:
            return images
        tf, size = tensorflow, self.size
        if self.fit == "pad":
            sized = tf.image.resize_with_pad(
                images, *self.sides, method=self.method, antialias=self.antialias
            )
        else:
            if self.fit == "crop":
                images = _centre(tf, images, *self.sides)
            elif not isinstance(size, tuple):
                size = _by_shorter_side(tf, images, size)
            sized = tf.image.resize(images, size, method=self.method, antialias=self.antialias)
        # Bicubic and Lanczos overshoot; a plain cast would make white of black.
        return tf.saturate_cast(tf.round(sized), tf.uint8)


def _sides(tensorflow: Any, images: Any) -> tuple[Any, Any]:
    shape = tensorflow.shape(images, tensorflow.int64)
    return shape[-3], shape[-2]


def _centre(tensorflow: Any, images: Any, height: Any, width: Any) -> Any:
    """The largest part in the middle that has the shape of the size. Sides are rounded down."""
    tf = tensorflow
    has_height, has_width = _sides(tf, images)
    rows = tf.clip_by_value(has_width * height // width, 1, has_height)
    columns = tf.clip_by_value(has_height * width // height, 1, has_width)
    top, left = (has_height - rows) // 2, (has_width - columns) // 2
    return images[..., top : top + rows, left : left + columns, :]


def _by_shorter_side(tensorflow: Any, images: Any, side: int) -> Any:
    """Height and width, the longer one rounded down, as torchvision's `Resize` has it."""
    tf = tensorflow
    height, width = _sides(tf, images)
    shorter = tf.maximum(tf.minimum(height, width), 1)
    return tf.cast(tf.stack([height * side // shorter, width * side // shorter]), tf.int32)
