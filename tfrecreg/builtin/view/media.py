"""Sounds and videos in their own bytes, with ranges, as a browser plays them."""

from __future__ import annotations

import re
from typing import NamedTuple

from tfrecreg.errors import NoSuchNameError
from tfrecreg.example.model import Example, Kind
from tfrecreg.media.read import sniff_media
from tfrecreg.text import safe

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


class MediaPart(NamedTuple):
    """Bytes of a medium, and the headers that say which."""

    status: int
    data: bytes
    media_type: str
    headers: dict[str, str]


def medium(example: Example, feature: str | None) -> tuple[bytes, str]:
    """A sound or a video of a record, and its media type."""
    for name, found in sorted(example.items()):
        if found.kind is not Kind.BYTES or feature not in (None, name, safe(name)):
            continue
        for value in found.first(1):
            kind = _TYPES.get(sniff_media(value) or "")
            if kind is not None:
                return value, kind
    raise NoSuchNameError(
        "the record has no such sound or video", hint="`/record` lists its features"
    )


def part_of(data: bytes, media_type: str, asked: str) -> MediaPart:
    """All of the bytes, or the range that is asked for."""
    size = len(data)
    headers = {"accept-ranges": "bytes"}
    match = _RANGE.fullmatch(asked.strip())
    if match is None or match.groups() == ("", ""):
        return MediaPart(200, data, media_type, headers)
    first, last = match.groups()
    start = int(first) if first else max(size - int(last), 0)
    end = min(int(last) + 1, size) if first and last else size
    if start >= end:
        return MediaPart(416, b"", media_type, {**headers, "content-range": f"bytes */{size}"})
    headers["content-range"] = f"bytes {start}-{end - 1}/{size}"
    return MediaPart(206, data[start:end], media_type, headers)
