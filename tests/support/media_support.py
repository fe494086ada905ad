"""Sounds and videos made byte by byte, and by the programs that are installed."""

from __future__ import annotations

import io
import struct
import wave


def wav(seconds: float = 0.5, *, rate: int = 8000, channels: int = 1) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(b"\1\0" * channels * int(rate * seconds))
    return buffer.getvalue()


def flac(*, rate: int = 44100, channels: int = 2, samples: int = 44100) -> bytes:
    """A FLAC whose sound is not decodable."""
    packed = rate << 44 | (channels - 1) << 41 | 15 << 36 | samples
    info = bytes(10) + packed.to_bytes(8, "big") + bytes(16)
    return b"fLaC\0\0\0\x22" + info + b"\x81\0\0\4nonex"


def aiff(seconds: float = 0.5) -> bytes:
    """An AIFF of 8000 samples per second, mono."""
    samples = int(8000 * seconds)
    rate = b"\x40\x0b\xfa" + bytes(7)
    common = b"COMM" + struct.pack(">IhLh", 18, 1, samples, 16) + rate
    sound = b"SSND" + struct.pack(">III", 8 + 2 * samples, 0, 0) + bytes(2 * samples)
    return b"FORM" + struct.pack(">I", 4 + len(common + sound)) + b"AIFF" + common + sound


def opus(seconds: float = 1) -> bytes:
    """An Opus file of three pages, whose sound is not decodable."""
    head = b"OpusHead\1\2" + struct.pack("<HIhB", 0, 48000, 0, 0)
    tags = b"OpusTags" + struct.pack("<II", 0, 0)
    parts = ((2, 0, head), (0, 0, tags), (4, int(48000 * seconds), b"x"))
    return b"".join(
        b"OggS" + struct.pack("<BBqIIIBB", 0, kind, place, 1, number, 0, 1, len(part)) + part
        for number, (kind, place, part) in enumerate(parts)
    )


def mp3(frames: int = 10, *, tag: int = 0, end: bytes = b"") -> bytes:
    """An MP3 of MPEG 1, 128 kbit/s, 44.1 kHz, mono: frames of 417 bytes, after a tag of a size."""
    sizes = bytes(tag >> shift & 127 for shift in (21, 14, 7, 0))
    start = b"ID3\4\0\0" + sizes + bytes(tag) if tag else b""
    return start + (b"\xff\xfb\x90\xc0" + bytes(413)) * frames + end


def mp4(*, sound: bool = True, first: bool = True) -> bytes:
    """An MP4 of two seconds, 64 × 48 pixels and 48 kHz in stereo; `moov` comes `first`."""
    tracks = [_track(b"vide", _box(b"avc1", bytes(24), struct.pack(">HH", 64, 48), bytes(50)))]
    if sound:
        sample = bytes(16) + struct.pack(">HHHHI", 2, 16, 0, 0, 48000 << 16)
        stream = bytes(4) + b"\3\x19\0\1\0\4\x11\x40\x15" + bytes(11) + b"\5\2\x11\x90\6\1\2"
        tracks.append(_track(b"soun", _box(b"mp4a", sample, _box(b"esds", stream))))
    times = struct.pack(">IIII", 0, 0, 1000, 2000)
    moov = _box(b"moov", _box(b"mvhd", bytes(4), times, bytes(80)), *tracks)
    mdat = _box(b"mdat", bytes(100))
    return _box(b"ftyp", b"isom\0\0\2\0") + (moov + mdat if first else mdat + moov)


def _track(handler: bytes, entry: bytes) -> bytes:
    table = _box(b"stbl", _box(b"stsd", bytes(4), struct.pack(">I", 1), entry))
    media = _box(b"mdia", _box(b"hdlr", bytes(8), handler, bytes(12)), _box(b"minf", table))
    return _box(b"trak", _box(b"tkhd", bytes(84)), media)


def _box(name: bytes, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack(">I", 8 + len(body)) + name + body
