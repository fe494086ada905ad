"""The content of the header of a sound or a video, and the error for an unreadable one."""

from __future__ import annotations

from dataclasses import dataclass

MAX_RATE = 1 << 24
"""Samples per second; a header with more is invalid."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaHeader:
    """What a sound or a video says of itself."""

    format: str
    """``wav``, ``flac``, ``mp3`` or ``mp4``."""
    duration: float | None = None
    """Seconds; None if the file does not say."""
    sample_rate: int | None = None
    """Samples of sound per second; None without sound."""
    channels: int | None = None
    """Channels of sound; None without sound."""
    width: int | None = None
    """Pixels; None without pictures."""
    height: int | None = None
    """Pixels; None without pictures."""
    problem: str = ""
    """Why the file is incomplete although its header can be read; empty if nothing is missing."""
