"""Decoding by Pillow, for checks and for conversions: an image that is damaged or too large is an
error with a code.

Training decodes by `pixels`, without limits of its own.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import struct
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from tfrecreg.core.images.model import ImageHeader
from tfrecreg.core.values.errors import MissingExtraError
from tfrecreg.core.values.text import safe

_PIXELS = 1 << 28
"""Maximum number of pixels of an image, each of at most 4 bytes in memory."""
_SECONDS = 60
"""For all frames of an animation."""
_STRIP = 1 << 22
"""Pixels that a digest copies at once."""
_ANIMATED = ("gif", "png", "webp")
_NAMES = {"bmp": "Bmp", "gif": "Gif", "jpeg": "Jpeg", "png": "Png", "webp": "WebP"}
"""Pillow's module for a format and the class in it begin so."""


class Conversion(NamedTuple):
    """Options for re-encoding images."""

    shorter: int
    """Maximum number of pixels of the shorter side; 0 for any."""
    width: int
    """In pixels; 0 if the other fields decide it."""
    height: int
    """In pixels; 0 if the other fields decide it."""
    format: str
    """``jpeg``, ``png``, or ``ppm`` for plain pixels."""
    quality: int
    """Quality of a JPEG, 1 to 100; 0 for that of the JPEG it was, and for others."""
    upright: bool = True
    """Whether to rotate it by its EXIF orientation."""


class Undecodable(Exception):
    """The image cannot be decoded.

    Args:
        code: ``SRC008`` if the image is damaged, ``SRC009`` if it exceeds a limit.
        detail: one line, escaped.
    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail


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
        Undecodable: decoding failed, or the result has another size than the header.
        MissingExtraError: Pillow is not installed.
    """
    with _decoded(data, header) as image:
        size = image.size
        if header.format in _ANIMATED:
            _load_frames(image)
    if size != (header.width, header.height):
        raise Undecodable(
            "SRC008",
            f"it decodes to {size[0]} × {size[1]} pixels, and its header says "
            f"{header.width} × {header.height}",
        )


def digest_pixels(data: bytes, header: ImageHeader) -> bytes:
    """A digest of 16 bytes of the pixels, independent of the format: of the first frame, as RGBA of
    8 bits if that is lossless, and without EXIF rotation.

    Raises:
        Undecodable, MissingExtraError: as :func:`verify_pixels`.
    """
    with _decoded(data, header) as image:
        mode = image.mode if image.mode[0] in "IF" else "RGBA"
        width, height = image.size
        hasher = hashlib.blake2b(json.dumps([mode, width, height]).encode(), digest_size=16)
        rows = max(1, _STRIP // width)
        for top in range(0, height, rows):
            strip = image
            if rows < height:
                strip = image.crop((0, top, width, min(top + rows, height)))
            hasher.update((strip if strip.mode == mode else strip.convert(mode)).tobytes())
    return hasher.digest()


def convert_image(data: bytes, header: ImageHeader, conversion: Conversion) -> bytes:
    """The first frame, rotated and resized as requested, and encoded again.

    Raises:
        Undecodable, MissingExtraError: as :func:`verify_pixels`.
    """
    with _decoded(data, header) as image:
        return _converted(image, conversion)


@contextmanager
def _decoded(data: bytes, header: ImageHeader) -> Iterator[Any]:
    """The image with the pixels of its first frame. What fails with it is :class:`Undecodable`."""
    opener = _opener(header.format)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if header.format == "png":
                with _opened(opener, data, header) as image:
                    image.verify()  # the checksums of all chunks, which decoding does not check
            with _opened(opener, data, header) as image:
                image.load()
                yield image
    except (MissingExtraError, Undecodable):
        raise
    except MemoryError:
        raise Undecodable("SRC009", "it takes more memory to decode than there is") from None
    except Exception as error:
        # Decoders raise many types of errors: OSError, SyntaxError, struct.error, KeyError …
        why = re.sub(r" at 0x[0-9a-f]+", "", f"{type(error).__name__}: {error}")
        code = "SRC009" if type(error).__name__ == "DecompressionBombError" else "SRC008"
        raise Undecodable(code, safe(why)) from error


def _opener(kind: str) -> Any:
    """Pillow's class for a format. Its `Image.open` has a limit for the whole process, which may be
    lower than the one here.
    """
    return getattr(pillow(f"PIL.{_NAMES[kind]}ImagePlugin"), f"{_NAMES[kind]}ImageFile")


def _opened(opener: Any, data: bytes, header: ImageHeader) -> Any:
    try:
        image = opener(io.BytesIO(data))
    except (SyntaxError, IndexError, TypeError, struct.error):
        raise Undecodable("SRC008", f"Pillow reads no {header.format} of this kind") from None
    if image.width * image.height > _PIXELS:
        detail = f"{image.width} × {image.height} pixels, and at most {_PIXELS} are decoded"
        raise Undecodable("SRC009", detail)
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
    raise Undecodable("SRC009", "it took too long to decode")


def _converted(image: Any, conversion: Conversion) -> bytes:
    kind, quality = conversion.format, conversion.quality
    options = {"quality": quality} if quality else _jpeg_tables(image) if kind == "jpeg" else {}
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


def _jpeg_tables(image: Any) -> dict[str, Any]:
    """The tables and the sampling with which a JPEG was encoded."""
    sampling = pillow("PIL.JpegImagePlugin").get_sampling(image)
    return {"qtables": image.quantization, "subsampling": sampling}


def _plain(image: Any, kind: str) -> Any:
    """Gray or RGB; for PNG with alpha, if there is any. For JPEG, alpha is blended over white."""
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
