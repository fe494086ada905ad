"""The header of a sound or a video, whose format is found by its first bytes."""

from __future__ import annotations

from tfrecreg.media.flac import read_flac
from tfrecreg.media.model import MediaError, MediaHeader
from tfrecreg.media.mp3 import is_mp3, read_mp3, tag_size
from tfrecreg.media.mp4 import read_mp4
from tfrecreg.media.wav import read_wav

_MP4 = frozenset({b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"})


def read_media(data: bytes) -> MediaHeader:
    """What a WAV, FLAC, MP3 or MP4 says of itself. Nothing is decoded."""
    if not data:
        raise MediaError("the file has no bytes", "SRC061")
    if data[:4] in (b"RIFF", b"RF64", b"BW64") and data[8:12] == b"WAVE":
        return read_wav(data)
    if data[:4] == b"fLaC":
        return read_flac(data)
    if data[4:8] in _MP4:
        return read_mp4(data)
    start = tag_size(data)
    if start and data[start : start + 4] == b"fLaC":
        return read_flac(data[start:])
    if is_mp3(data):
        return read_mp3(data)
    raise MediaError("expected a WAV, FLAC, MP3 or MP4, found something else")
