"""Sends images, sounds and videos to the browser, never in a format that can contain scripts.

Images show the stored pixels, as decoders return them, so EXIF orientation is not applied. In the
browser, `image-orientation: none` switches it off.
"""

from __future__ import annotations

import io
import re
import threading

from starlette.responses import Response

from tfrecreg.core.build.media import sniff_media
from tfrecreg.core.example.format_payload import ShownImage
from tfrecreg.core.example.model import Example, Kind
from tfrecreg.core.images.decoder import pillow
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
_DECODING = threading.BoundedSemaphore(2)
"""Limits memory: at most two images are fully decoded at the same time."""
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


def thumbnail(image: ShownImage, size: int) -> Response:
    """A picture with sides of at most `size` pixels. A small image is sent unchanged."""
    header = image.header
    assert header is not None
    own = SHOWN.get(sniff(image.data) or "") if not header.animated else None
    shorter, longer = sorted((header.width, header.height))
    if own is not None and longer <= size and len(image.data) <= _SMALL_BYTES:
        return Response(image.data, media_type=own)
    try:
        if header.format == "jpeg" and header.width * header.height <= _DRAFT_PIXELS:
            return _drafted(image.data, size)
        with _DECODING:
            made = image.decoder.thumbnail(image.data, max(1, size * shorter // longer))
    except MissingExtraError:
        if own is not None and len(image.data) <= 16 * _SMALL_BYTES:
            return Response(image.data, media_type=own)
        raise
    if made is None:
        raise ValueError("its decoder returns no picture")
    return Response(made.data, media_type=SHOWN[made.format])


def whole(image: ShownImage) -> Response:
    """An image, converted to PNG or JPEG unless browsers can show its own format."""
    known = sniff(image.data)
    if known is not None and image.format == known:  # not pixels that begin like a PNG
        return Response(image.data, media_type=SHOWN[known])
    side = max(image.header.width, image.header.height) if image.header is not None else 1
    try:
        made = image.decoder.thumbnail(image.data, side)
    except ValueError as error:
        raise UsageError(f"the image does not decode: {error}") from None
    if made is None:
        raise UsageError("the decoder of the image returns no picture")
    return Response(made.data, media_type=SHOWN[made.format])


def _drafted(data: bytes, size: int) -> Response:
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
    return Response(made.getvalue(), media_type=SHOWN["jpeg"])


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


def part_of(data: bytes, media_type: str, asked: str) -> Response:
    """All bytes, or the range that `asked` requests."""
    size = len(data)
    headers = {"accept-ranges": "bytes"}
    match = _RANGE.fullmatch(asked.strip())
    if match is None or match.groups() == ("", ""):
        return Response(data, 200, headers, media_type)
    first, last = match.groups()
    start = int(first) if first else max(size - int(last), 0)
    end = min(int(last) + 1, size) if first and last else size
    if start >= end:
        return Response(b"", 416, {**headers, "content-range": f"bytes */{size}"}, media_type)
    headers["content-range"] = f"bytes {start}-{end - 1}/{size}"
    return Response(data[start:end], 206, headers, media_type)
