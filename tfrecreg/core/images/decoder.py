"""The interface of decoders for BYTES features, and the decoding of images with Pillow.

The same decoder serves ``data_source(decode=…)``, the check of images, and pages.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import time
import warnings
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tfrecreg.core.images.headers import png_of
from tfrecreg.core.images.model import UNREADABLE, ImageHeader
from tfrecreg.core.values.errors import MissingExtraError
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    import numpy.typing as npt

    from tfrecreg.core.images.pixels import Resizing

START = 64
"""Number of bytes at the start of a value that decide which decoder reads it."""
_COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}
"""Color type of a PNG by its number of channels."""


class Thumbnail(NamedTuple):
    """A small picture, encoded."""

    format: Literal["jpeg", "png"]
    data: bytes


class FeatureDecoder(ABC):
    """Reads the values of features that hold encoded data of one kind, such as depth maps.

    One object serves all features, records and threads of a process. Each call handles one value.
    If the value is damaged, the method raises a :class:`ValueError` with the reason as text. Any
    other exception is a failure of the decoder.
    """

    @abstractmethod
    def reads(self, feature: str, start: bytes) -> bool:
        """Whether it reads a value. Called only for the first value of a feature.

        Args:
            feature: name of the feature.
            start: the value, or its first 64 bytes.
        """

    @abstractmethod
    def array(self, data: bytes) -> npt.NDArray[Any]:
        """The decoded value, for an element of ``data_source(decode=…)``.

        Returns:
            A writable array of numbers. For images, its shape is (height, width, channels). All
            values of a feature should have the same dtype and number of dimensions.

        Raises:
            ValueError: the value is damaged.
        """

    def resized(self, data: bytes, fit: Resizing) -> npt.NDArray[Any]:
        """A decoded image in another size. By default, it is made from :meth:`array`.

        Args:
            data: the value.
            fit: a function that takes the image's height and width. It returns the new height and
                width, and the part that is resized to them: top, left, height and width.

        Raises:
            ValueError: the value is damaged, or is not an 8-bit image.
        """
        pixels = self.array(data)
        if pixels.ndim != 3 or pixels.dtype.name != "uint8":
            raise ValueError(
                f"`image_size` applies to images of 8 bits, but this is {pixels.dtype} of shape "
                f"{pixels.shape}"
            )
        from tfrecreg.core.images.pixels import resized

        return resized(pixels, fit)

    def header(self, data: bytes) -> ImageHeader | None:
        """The facts in the value's header, read without decoding the value. A check compares these
        facts with what the record declares. By default, this method returns None. Keep the default
        if the values are not pictures and have no thumbnail.

        Raises:
            ValueError: the value is damaged.
        """
        del data
        return None

    def thumbnail(self, data: bytes, side: int) -> Thumbnail | None:
        """A small image for a page, or None. By default it shows :meth:`array`, if that has the
        shape of an image. Numbers other than uint8 are scaled from black (lowest) to white.

        Args:
            data: the value.
            side: pixels of the shorter side, at most.

        Raises:
            ValueError: the value is damaged.
        """
        return _small_png(self.array(data), side)

    def caption(self, data: bytes) -> str:
        """A few words for ``head`` and pages, such as ``depth map, 640x480, 1.2 MB``. By default,
        it is empty. Then ``head`` and pages show the name and size.

        Raises:
            ValueError: the value is damaged.
        """
        del data
        return ""


class PixelsDecoder(FeatureDecoder):
    """Reads a feature that the schema declares as an image's pixels, one byte per channel."""

    def __init__(self, size: tuple[int, int, int]) -> None:
        self.size = size

    def reads(self, feature: str, start: bytes) -> bool:
        del feature, start
        return True

    def array(self, data: bytes) -> npt.NDArray[Any]:
        import numpy as np

        height, width, channels = self.size
        if len(data) != height * width * channels:
            expected = f"{height} x {width} x {channels} = {height * width * channels}"
            raise ValueError(f"the schema declares {expected} bytes of pixels, found {len(data)}")
        pixels: npt.NDArray[Any] = np.frombuffer(data, np.uint8).reshape(self.size).copy()
        return pixels

    def header(self, data: bytes) -> ImageHeader:
        del data  # all values have the declared size
        return ImageHeader("pixels", *self.size, bits=8, animated=False)

    def caption(self, data: bytes) -> str:
        sides = "x".join(map(str, self.size))
        return f"pixels, {sides}, {len(data)} B"


def pixel_bytes(numbers: Sequence[float]) -> bytes:
    """Convert numbers to pixels. If all are from 0 to 255 and at least one is above 1, they are not
    scaled. Otherwise they are scaled from black (lowest) to white."""
    import numpy as np

    values = np.nan_to_num(np.asarray(numbers, np.float64), posinf=0, neginf=0)
    if values.size and not (values.min() >= 0 and 1 < values.max() <= 255):
        values = values - values.min()
        values = values * (255 / max(float(values.max()), 1e-300))
    return values.astype(np.uint8).tobytes()


def _small_png(array: npt.NDArray[Any], side: int) -> Thumbnail | None:
    import numpy as np

    pixels = array[:, :, np.newaxis] if array.ndim == 2 else array
    if pixels.ndim != 3 or not pixels.size or pixels.shape[2] not in _COLOURS:
        return None
    step = -(-min(pixels.shape[:2]) // side)
    pixels = pixels[::step, ::step]
    if pixels.dtype != np.uint8:
        numbers = np.nan_to_num(pixels.astype(np.float64), posinf=0, neginf=0)
        numbers -= numbers.min()
        pixels = (numbers * (255 / max(float(numbers.max()), 1e-300))).astype(np.uint8)
    height, width, channels = pixels.shape
    lines = np.zeros((height, 1 + width * channels), np.uint8)  # each line begins with 0: no filter
    lines[:, 1:] = pixels.reshape(height, -1)
    made = png_of(zlib.compress(lines.tobytes()), width, height, colour=_COLOURS[channels])
    return Thumbnail("png", made)


_PIXELS = 1 << 28
"""Maximum number of pixels of an image, each of at most 4 bytes in memory."""
_SECONDS = 60
"""Maximum number of seconds for all frames of an animation."""
_STRIP = 1 << 22
"""Number of pixels that a digest copies at once."""
_NAMES = {"bmp": "Bmp", "gif": "Gif", "jpeg": "Jpeg", "png": "Png", "webp": "WebP"}
"""For each format, the first part of the names of Pillow's module and class."""


class Conversion(NamedTuple):
    """Options for re-encoding images."""

    shorter: int
    """Maximum number of pixels of the shorter side; 0 for any."""
    width: int
    """In pixels; 0 if the other fields determine the width."""
    height: int
    """In pixels; 0 if the other fields determine the height."""
    format: str
    """``jpeg``, ``png``, or ``ppm`` for plain pixels."""
    quality: int
    """Quality of a JPEG, 1 to 100; 0 keeps the original quality. Other formats have 0."""
    upright: bool = True
    """Whether to rotate the image according to its EXIF orientation."""


class Undecodable(Exception):
    """The image cannot be decoded.

    Args:
        detail: one line, escaped.
        costly: whether decoding needs more pixels, memory or time than allowed. If not, the image
            is damaged.
    """

    code = UNREADABLE
    """The code of an item that is skipped because of this error."""

    def __init__(self, detail: str, *, costly: bool = False) -> None:
        super().__init__(detail)
        self.detail = detail
        self.costly = costly


def require_pillow(what: str) -> None:
    """Check that images can be decoded, without importing anything.

    Raises:
        MissingExtraError: Pillow is not installed.
    """
    if find_spec("PIL") is None:
        raise MissingExtraError(what, "images")


def pillow(module: str) -> Any:
    """A module of Pillow, such as `PIL.Image`.

    Raises:
        MissingExtraError: Pillow is not installed.
    """
    require_pillow("decoding images")
    return import_module(module)


def verify_pixels(data: bytes, header: ImageHeader) -> None:
    """Decode every pixel of every frame.

    Raises:
        Undecodable: decoding failed, or the result does not have the size in the header.
        MissingExtraError: Pillow is not installed.
    """
    with _decoded(data, header) as image:
        size = image.size
        _load_frames(image)
    if size != (header.width, header.height):
        raise Undecodable(
            f"it decodes to {size[0]} × {size[1]} pixels, but its header says "
            f"{header.width} × {header.height}",
        )


def digest_pixels(data: bytes, header: ImageHeader) -> bytes:
    """A 16-byte digest of the first frame's pixels, independent of the format. Pixels are converted
    to 8-bit RGBA if that is lossless, and EXIF rotation is ignored.

    Raises:
        Undecodable, MissingExtraError: as :func:`verify_pixels`.
    """
    with _decoded(data, header) as image:
        mode = image.mode if image.mode[0] in "IF" else "RGBA"
        width, height = image.size
        hasher = hashlib.blake2b(json.dumps([mode, width, height]).encode(), digest_size=16)
        rows = max(1, _STRIP // width)
        for top in range(0, height, rows):
            strip = image.crop((0, top, width, min(top + rows, height)))
            hasher.update(strip.convert(mode).tobytes())
    return hasher.digest()


def convert_image(data: bytes, header: ImageHeader, conversion: Conversion) -> bytes:
    """The first frame, rotated and resized as requested, and encoded again.

    Raises:
        Undecodable, MissingExtraError: as :func:`verify_pixels`.
    """
    with _decoded(data, header) as image:
        kind, quality = conversion.format, conversion.quality
        options: dict[str, Any] = {"quality": quality} if quality else {}
        if kind == "jpeg" and not quality:  # the tables and the sampling with which it was encoded
            sampling = pillow("PIL.JpegImagePlugin").get_sampling(image)
            options = {"qtables": image.quantization, "subsampling": sampling}
        if conversion.upright:
            image = pillow("PIL.ImageOps").exif_transpose(image)
        image = _plain(image, kind)
        width, height = conversion.width, conversion.height
        if conversion.shorter and min(image.size) > conversion.shorter:
            scale = conversion.shorter / min(image.size)
            width, height = (max(1, round(side * scale)) for side in image.size)
        if width and height and image.size != (width, height):
            image = image.resize((width, height), resample=3)  # bicubic
        made = io.BytesIO()
        image.save(made, kind, **options)
    return made.getvalue()


@contextmanager
def _decoded(data: bytes, header: ImageHeader) -> Iterator[Any]:
    """The image with the pixels of its first frame. Failures raise :class:`Undecodable`."""
    name = _NAMES[header.format]
    # Pillow's `Image.open` has a limit for the whole process, which may be lower than ours.
    opener = getattr(pillow(f"PIL.{name}ImagePlugin"), f"{name}ImageFile")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if header.format == "png":
                with _opened(opener, data) as image:
                    image.verify()  # the checksums of all chunks, which decoding does not check
            with _opened(opener, data) as image:
                image.load()
                yield image
    except (MissingExtraError, Undecodable):
        raise
    except MemoryError:
        detail = "decoding it takes more memory than is available"
        raise Undecodable(detail, costly=True) from None
    except Exception as error:
        # Decoders raise many types of errors: OSError, SyntaxError, struct.error, KeyError …
        why = re.sub(r" at 0x[0-9a-f]+", "", f"{type(error).__name__}: {error}")
        costly = type(error).__name__ == "DecompressionBombError"
        raise Undecodable(safe(why), costly=costly) from error


def _opened(opener: Any, data: bytes) -> Any:
    image = opener(io.BytesIO(data))
    if image.width * image.height > _PIXELS:
        detail = f"{image.width} × {image.height} pixels, but at most {_PIXELS} are decoded"
        raise Undecodable(detail, costly=True)
    return image


def _load_frames(image: Any) -> None:
    """Decode all frames after the first one."""
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        try:
            image.seek(image.tell() + 1)
        except EOFError:
            return
        image.load()
    raise Undecodable("it took too long to decode", costly=True)


def _plain(image: Any, kind: str) -> Any:
    """The image as gray or RGB. Alpha is kept for a PNG, and blended over white for a JPEG."""
    if image.mode.startswith("I"):  # 16 bits, which a conversion would clip
        return image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    if image.mode in ("1", "L"):
        return image.convert("L")
    if not image.has_transparency_data:
        return image.convert("RGB")
    image = image.convert("RGBA")
    if kind == "jpeg":
        module = pillow("PIL.Image")
        white = module.new("RGBA", image.size, "white")
        image = module.alpha_composite(white, image).convert("RGB")
    return image
