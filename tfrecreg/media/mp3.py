"""MP3 files: all frame headers, since no other number says reliably how long the sound is.

Source: ISO 11172-3 and 13818-3 for the headers of frames, and id3.org for the tags around them.
"""

from __future__ import annotations

from typing import NamedTuple

from tfrecreg.media.model import MediaError, MediaHeader

_SEARCHED = 1 << 16
"""Bytes behind the tags in which the first frame has to begin."""
_V1 = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_V2 = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_RATES = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}
"""Samples per second, by version: 3 for MPEG 1, 2 for MPEG 2, 0 for MPEG 2.5."""


class _Frame(NamedTuple):
    """The header of one frame."""

    size: int
    samples: int
    rate: int
    channels: int


def read_mp3(data: bytes) -> MediaHeader:
    """The headers of an MP3 file."""
    start = tag_size(data)
    end = len(data)
    if data[-128:-125] == b"TAG":
        end -= 128
    at = _first_frame(data, start, end)
    first = _frame(data, at)
    if first is None:
        raise MediaError("no frame of an MP3")
    if _is_info(data[at : at + first.size]):
        at += first.size
    samples, problem = 0, ""
    while at + 4 <= end:
        frame = _frame(data, at)
        if frame is None or frame.rate != first.rate:
            if not _is_tag(data, at):
                problem = f"no frame at byte {at} of {len(data)}"
            break
        if at + frame.size > end:
            problem = f"the last frame ends at byte {at + frame.size} of {end}"
            break
        samples += frame.samples
        at += frame.size
    return MediaHeader(
        format="mp3",
        duration=samples / first.rate,
        sample_rate=first.rate,
        channels=first.channels,
        problem=problem,
    )


def tag_size(data: bytes) -> int:
    """Size of an ID3 tag at the beginning; 0 without one."""
    if data[:3] != b"ID3" or len(data) < 10 or any(each & 0x80 for each in data[6:10]):
        return 0
    size = data[6] << 21 | data[7] << 14 | data[8] << 7 | data[9]
    return 10 + size + (10 if data[5] & 0x10 else 0)


def is_mp3(data: bytes) -> bool:
    """Whether frames are found where an MP3 has them."""
    try:
        _first_frame(data, tag_size(data), len(data))
    except MediaError:
        return False
    return True


def _first_frame(data: bytes, start: int, end: int) -> int:
    at = data.find(b"\xff", start, start + _SEARCHED)
    while at >= 0:
        frame = _frame(data, at)
        if frame is not None:
            follows = _frame(data, at + frame.size)
            if follows is not None and follows.rate == frame.rate:
                return at
            if at == start and at + frame.size >= end:
                return at
        at = data.find(b"\xff", at + 1, start + _SEARCHED)
    raise MediaError("no frame of an MP3 at the beginning or behind its tag")


def _frame(data: bytes, at: int) -> _Frame | None:
    """The header of a frame of layer III; None if there is none."""
    if at + 4 > len(data) or data[at] != 0xFF or data[at + 1] & 0xE6 != 0xE2:
        return None
    version = data[at + 1] >> 3 & 3
    bits, rate_index = data[at + 2] >> 4, data[at + 2] >> 2 & 3
    if version == 1 or rate_index == 3 or not 0 < bits < 15:
        return None
    rate = _RATES[version][rate_index]
    samples = 1152 if version == 3 else 576
    kilobits = (_V1 if version == 3 else _V2)[bits - 1]
    size = samples // 8 * kilobits * 1000 // rate + (data[at + 2] >> 1 & 1)
    return _Frame(size, samples, rate, 1 if data[at + 3] >> 6 == 3 else 2)


def _is_info(frame: bytes) -> bool:
    """Whether a frame holds no sound, but what an encoder says of the file."""
    return any(mark in frame[:48] for mark in (b"Xing", b"Info", b"VBRI"))


def _is_tag(data: bytes, at: int) -> bool:
    return data[at : at + 8] in (b"APETAGEX", b"LYRICSBE") or not any(data[at : at + 64])
