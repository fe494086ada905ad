"""Sends images, sounds and videos to the browser, never in a format that can contain scripts.

Images show the stored pixels, as decoders return them, so EXIF orientation is not applied. In the
browser, `image-orientation: none` switches it off.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tfrecreg.core.build.media import sniff_media
from tfrecreg.core.example.format_payload import ShownImage
from tfrecreg.core.example.model import Example, Kind
from tfrecreg.core.images.decoder import Conversion, Thumbnail, Undecodable, convert_image, pillow
from tfrecreg.core.images.model import ImageHeader
from tfrecreg.core.images.read import sniff
from tfrecreg.core.values.errors import MissingExtraError, NoSuchNameError, UsageError
from tfrecreg.core.values.text import safe

SHOWN = {
    "bmp": "image/bmp",
    "gif": "image/gif",
    "jpeg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
}
"""Image formats that are sent unchanged, with their media types."""
SIZES = (32, 640)
"""The smallest and the largest side of a thumbnail."""
_SMALL_BYTES = 1 << 16
_DRAFT_PIXELS = 50_000_000
_QUALITY = 80
_AT_ONCE = 2
"""Maximum number of images that are fully decoded at the same time, to limit memory."""
_TYPES = {
    "aiff": "audio/aiff",
    "flac": "audio/flac",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "ogg": "audio/ogg",
    "wav": "audio/wav",
    "wma": "audio/x-ms-wma",
}
_RANGE = re.compile(r"bytes=(\d{0,15})-(\d{0,15})")


@dataclass(frozen=True, slots=True)
class Reply:
    """Bytes with their media type."""

    body: bytes = field(repr=False)
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    parts: Iterator[bytes] | None = field(default=None, repr=False)
    """If this is set, these parts are sent one by one, and `body` is not sent."""


class Thumbnails:
    """Makes thumbnails of images."""

    def __init__(self) -> None:
        self._free = threading.BoundedSemaphore(_AT_ONCE)

    def thumbnail(self, image: ShownImage, size: int) -> Reply:
        """A picture with sides of at most `size` pixels. A small image is sent unchanged."""
        header = image.header
        if header is None:
            raise ValueError("its header cannot be read")
        own = SHOWN.get(sniff(image.data) or "") if not header.animated else None
        longest = max(header.width, header.height)
        if own is not None and longest <= size and len(image.data) <= _SMALL_BYTES:
            return Reply(image.data, own)
        try:
            made = self._made(image, header, size)
        except MissingExtraError:
            if own is not None and len(image.data) <= 16 * _SMALL_BYTES:
                return Reply(image.data, own)
            raise
        if made is None:
            raise ValueError("its decoder returns no picture")
        return made

    def _made(self, image: ShownImage, header: ImageHeader, size: int) -> Reply | None:
        if header.format == "jpeg" and header.width * header.height <= _DRAFT_PIXELS:
            return _drafted(image.data, size)
        side = max(1, size * min(header.width, header.height) // max(header.width, header.height))
        if header.format in SHOWN:
            return self._converted(image.data, header, min(side, min(header[1:3])))
        made: Thumbnail | None = image.decoder.thumbnail(image.data, side)
        return Reply(made.data, SHOWN[made.format]) if made is not None else None

    def _converted(self, data: bytes, header: ImageHeader, shorter: int) -> Reply:
        conversion = Conversion(shorter, 0, 0, "jpeg", _QUALITY, upright=False)
        try:
            with self._free:
                made = convert_image(data, header, conversion)
        except Undecodable as error:
            raise ValueError(error.detail) from error
        return Reply(made, SHOWN["jpeg"])


def whole(image: ShownImage) -> Reply:
    """An image, converted to PNG or JPEG unless browsers can show its own format."""
    known = sniff(image.data)
    if known is not None and image.format == known:  # not pixels that begin like a PNG
        return Reply(image.data, SHOWN[known])
    side = max(image.header.width, image.header.height) if image.header is not None else 1
    try:
        made = image.decoder.thumbnail(image.data, side)
    except ValueError as error:
        raise UsageError(f"the image does not decode: {error}") from None
    if made is None:
        raise UsageError("the decoder of the image returns no picture")
    return Reply(made.data, SHOWN[made.format])


def _drafted(data: bytes, size: int) -> Reply:
    """A thumbnail of a JPEG, decoded at the lowest resolution that suffices for the size."""
    image_module = pillow("PIL.Image")
    try:
        with image_module.open(io.BytesIO(data), formats=["JPEG"]) as opened:
            # The final sides: with a square, up to four times as many pixels would be decoded.
            longest = max(opened.size)
            width, height = (max(1, -(-side * size // longest)) for side in opened.size)
            opened.draft("RGB", (width, height))
            opened.thumbnail(
                (size, size), resample=image_module.Resampling.BILINEAR, reducing_gap=2.0
            )
            made = io.BytesIO()
            opened.convert("RGB").save(made, "jpeg", quality=_QUALITY)
    except Exception as error:
        # Decoders raise many errors: OSError, SyntaxError, struct.error, KeyError …
        raise ValueError(f"{type(error).__name__}: {error}") from error
    return Reply(made.getvalue(), SHOWN["jpeg"])


def medium(example: Example, feature: str | None) -> tuple[bytes, str]:
    """A sound or a video of a record, and its media type."""
    for name, found in sorted(example.items()):
        if found.kind is not Kind.BYTES or feature not in (None, name, safe(name)):
            continue
        for value in found.first(1):
            kind = _TYPES.get(sniff_media(value) or "")
            if kind is not None:
                return value, kind
    raise NoSuchNameError("the record has no such sound or video")


def part_of(data: bytes, media_type: str, asked: str) -> Reply:
    """All bytes, or the range that `asked` requests."""
    size = len(data)
    headers = {"accept-ranges": "bytes"}
    match = _RANGE.fullmatch(asked.strip())
    if match is None or match.groups() == ("", ""):
        return Reply(data, media_type, headers)
    first, last = match.groups()
    start = int(first) if first else max(size - int(last), 0)
    end = min(int(last) + 1, size) if first and last else size
    if start >= end:
        return Reply(b"", media_type, {**headers, "content-range": f"bytes */{size}"}, 416)
    headers["content-range"] = f"bytes {start}-{end - 1}/{size}"
    return Reply(data[start:end], media_type, headers, 206)
