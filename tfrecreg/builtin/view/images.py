"""Thumbnails, and images for the browser: never a format in which a program could be.

All show the pixels as they are stored, as decoders return them: EXIF orientation is not applied, in
the browser by `image-orientation: none`.
"""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from tfrecreg.decoding import Thumbnail
from tfrecreg.errors import MissingExtraError, UsageError
from tfrecreg.images.decoder import Conversion, Undecodable, convert_image, pillow
from tfrecreg.images.model import ImageHeader
from tfrecreg.images.sniff import sniff
from tfrecreg.operations.format_payload import ShownImage

SHOWN = {
    "bmp": "image/bmp",
    "gif": "image/gif",
    "jpeg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
}
"""Formats that are sent as they are, and their media types."""
PICTURE_BYTES = 64 << 20
SIZES = (32, 640)
"""The smallest and the largest side of a thumbnail."""
_SMALL_BYTES = 1 << 16
_DRAFT_PIXELS = 50_000_000
_QUALITY = 80
_SHOWN_ELSE = "its record shows its bytes"
_AT_ONCE = 2
"""Images that are decoded as a whole at the same time, for the sake of memory."""


class Picture(NamedTuple):
    """An encoded image and its media type."""

    data: bytes
    media_type: str


class KeptPictures:
    """The pictures that were made last, by their names, up to some bytes. Safe for threads."""

    def __init__(self, most: int = PICTURE_BYTES) -> None:
        self._most = most
        self._held = 0
        self._pictures: OrderedDict[object, Picture] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, name: object, make: Callable[[], Picture]) -> Picture:
        """The picture of that name, which is made if it is not kept."""
        with self._lock:
            found = self._pictures.get(name)
            if found is not None:
                self._pictures.move_to_end(name)
                return found
        made = make()
        with self._lock:
            if name not in self._pictures and len(made.data) <= self._most:
                self._pictures[name] = made
                self._held += len(made.data)
            while self._held > self._most:
                _, dropped = self._pictures.popitem(last=False)
                self._held -= len(dropped.data)
        return made

    @property
    def held(self) -> int:
        """Bytes of all that are kept."""
        return self._held


class Thumbnails:
    """Makes thumbnails of images."""

    def __init__(self) -> None:
        self._free = threading.BoundedSemaphore(_AT_ONCE)

    def thumbnail(self, image: ShownImage, size: int) -> Picture:
        """A picture of at most `size` pixels on each side; a small image as it is."""
        header = image.header
        if header is None:
            raise ValueError("its header cannot be read")
        own = SHOWN.get(sniff(image.data) or "") if not header.animated else None
        longest = max(header.width, header.height)
        if own is not None and longest <= size and len(image.data) <= _SMALL_BYTES:
            return Picture(image.data, own)
        try:
            made = self._made(image, header, size)
        except MissingExtraError:
            if own is not None and len(image.data) <= 16 * _SMALL_BYTES:
                return Picture(image.data, own)
            raise
        if made is None:
            raise ValueError("its decoder makes no picture of it")
        return made

    def _made(self, image: ShownImage, header: ImageHeader, size: int) -> Picture | None:
        if header.format == "jpeg" and header.width * header.height <= _DRAFT_PIXELS:
            return _drafted(image.data, size)
        side = max(1, size * min(header.width, header.height) // max(header.width, header.height))
        if header.format in SHOWN:
            return self._converted(image.data, header, min(side, min(header[1:3])))
        made: Thumbnail | None = image.decoder.thumbnail(image.data, side)
        return Picture(made.data, SHOWN[made.format]) if made is not None else None

    def _converted(
        self, data: bytes, header: ImageHeader, shorter: int, form: str = "jpeg"
    ) -> Picture:
        quality = _QUALITY if form == "jpeg" else 0
        conversion = Conversion(shorter, 0, 0, form, quality, upright=False)
        try:
            with self._free:
                made = convert_image(data, header, conversion)
        except Undecodable as error:
            raise ValueError(error.detail) from error
        return Picture(made, SHOWN[form])


def whole(image: ShownImage) -> Picture:
    """An image in its own bytes if a browser shows its format; else as a PNG."""
    known = sniff(image.data)
    if known is not None and image.format == known:  # not pixels that begin like a PNG
        return Picture(image.data, SHOWN[known])
    side = max(image.header.width, image.header.height) if image.header is not None else 1
    try:
        made = image.decoder.thumbnail(image.data, side)
    except ValueError as error:
        raise UsageError(f"the image does not decode: {error}", hint=_SHOWN_ELSE) from None
    if made is None:
        raise UsageError("its decoder makes no picture of it", hint=_SHOWN_ELSE)
    return Picture(made.data, SHOWN[made.format])


def _drafted(data: bytes, size: int) -> Picture:
    """A thumbnail of a JPEG, of which only what the size needs is decoded."""
    image_module = pillow("PIL.Image")
    try:
        with image_module.open(io.BytesIO(data), formats=["JPEG"]) as opened:
            # Both sides as they will be: for a square, up to four times as many are decoded.
            longest = max(opened.size)
            opened.draft("RGB", tuple(max(1, -(-side * size // longest)) for side in opened.size))
            opened.thumbnail((size, size), resample=2, reducing_gap=2.0)
            made = io.BytesIO()
            opened.convert("RGB").save(made, "jpeg", quality=_QUALITY)
    except Exception as error:
        # Decoders raise many errors: OSError, SyntaxError, struct.error, KeyError …
        raise ValueError(f"{type(error).__name__}: {error}") from error
    return Picture(made.getvalue(), SHOWN["jpeg"])
