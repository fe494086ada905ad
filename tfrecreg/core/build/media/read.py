"""What a sound or a video says of itself. The format is found by the first bytes; tinytag reads the
rest.
"""

from __future__ import annotations

import io
from importlib.util import find_spec
from typing import NamedTuple

from tfrecreg.core.values.errors import MissingExtraError
from tfrecreg.core.values.text import safe

MEDIA_FORMATS = ("aiff", "flac", "mp3", "mp4", "ogg", "wav", "wma")
"""The known formats; ``mp4`` is also M4A and QuickTime, ``ogg`` also Opus."""

_WMA = b"\x30\x26\xb2\x75\x8e\x66\xcf\x11"
_WAV_HEADER = 44
"""Fewest bytes of the header of a WAV."""
_UNKNOWN = 0xFFFFFFFF
"""Size of the samples of a WAV that was written to a pipe."""
_IMAGES = (b"avif", b"avis", b"heic", b"heix", b"mif1", b"msf1")
"""Brands of images in the boxes of an MP4."""


class MediaError(ValueError):
    """The bytes are not a sound or a video of a known format, or their header is invalid.

    Args:
        detail: the problem in words; one line, without characters that need escaping.
        code: the code of a skipped item.
    """

    def __init__(self, detail: str, code: str = "SRC060") -> None:
        super().__init__(detail, code)
        self.detail = detail
        self.code = code


class MediaHeader(NamedTuple):
    """What a sound or a video says of itself."""

    format: str
    """One of :data:`MEDIA_FORMATS`."""
    duration: float | None
    """Seconds; None if the file does not say."""
    sample_rate: int | None
    """Samples of sound per second; None without sound."""
    channels: int | None
    """Channels of sound; None without sound."""
    problem: str
    """Why the file is incomplete although its header can be read; empty if nothing is missing."""


def require_tinytag(what: str) -> None:
    """Check that headers of sounds and videos can be read, without importing anything.

    Raises:
        MissingExtraError: tinytag is not installed.
    """
    if find_spec("tinytag") is None:
        raise MissingExtraError(what, "media")


def sniff_media(data: bytes) -> str | None:
    """The format of a sound or a video, one of :data:`MEDIA_FORMATS`, by the first bytes."""
    start, kind = data[:4], data[8:12]
    if start in (b"ID3\2", b"ID3\3", b"ID3\4"):
        size = 0
        for byte in data[6:10]:
            size = size << 7 | byte & 0x7F
        return "flac" if data[10 + size : 14 + size] == b"fLaC" else "mp3"
    if start == b"RIFF" and kind == b"WAVE":
        return "wav"
    if start == b"FORM" and kind in (b"AIFF", b"AIFC"):
        return "aiff"
    if data[4:8] == b"ftyp":
        return "mp4" if kind not in _IMAGES else None
    if data.startswith(_WMA):
        return "wma"
    # A frame of MPEG, layer III, with a known bit rate and sample rate.
    if len(data) > 3 and data[0] == 0xFF and data[1] & 0xE6 == 0xE2:
        return "mp3" if 0 < data[2] >> 4 < 15 and data[2] >> 2 & 3 < 3 else None
    return {b"fLaC": "flac", b"OggS": "ogg"}.get(start)


def read_media(data: bytes) -> MediaHeader:
    """What a sound or a video says of itself. Nothing is decoded.

    Raises:
        MediaError: it is none of a known format, or its header is invalid.
        MissingExtraError: tinytag is not installed.
    """
    if not data:
        raise MediaError("the file has no bytes", "SRC061")
    found = sniff_media(data)
    if found is None:
        raise MediaError("not a sound or a video of a known format")
    require_tinytag("reading sounds and videos")
    from tinytag import TinyTag, TinyTagException

    try:
        tag = TinyTag.get(file_obj=io.BytesIO(data), tags=False)
    except TinyTagException as error:
        raise MediaError(f"a damaged {found.upper()}: {safe(str(error), limit=200)}") from error
    duration, problem = tag.duration or None, ""
    if found == "wav" and duration and tag.bitrate:
        # tinytag believes a header that says more than there is.
        rate = tag.bitrate * 125
        size, present = round(duration * rate), len(data) - _WAV_HEADER
        if size > present:
            duration = max(present, 0) / rate
            if size != _UNKNOWN:
                problem = f"{size} bytes of sound expected, found at most {present}"
    return MediaHeader(found, duration, tag.samplerate, tag.channels, problem)
