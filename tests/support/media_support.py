"""Sounds and videos made byte by byte, and by the programs that are installed."""

from __future__ import annotations

import io
import struct
import wave


def wav(seconds: float = 0.5, *, rate: int = 8000, channels: int = 1) -> bytes:
    """A WAV of the standard library's writer."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(b"\1\0" * channels * int(rate * seconds))
    return buffer.getvalue()


def flac(
    *, rate: int = 44100, channels: int = 2, samples: int = 44100, sound: bytes = b"x"
) -> bytes:
    """A FLAC whose sound is not decodable."""
    packed = rate << 44 | (channels - 1) << 41 | 15 << 36 | samples
    info = bytes(10) + packed.to_bytes(8, "big") + bytes(16)
    padding = b"\x81\0\0\4none"
    return b"fLaC\0\0\0\x22" + info + padding + sound


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


def mp3(frames: int = 10, *, info: bytes = b"", tag: int = 0, end: bytes = b"") -> bytes:
    """An MP3 of MPEG 1, 128 kbit/s, 44.1 kHz, mono: frames of 417 bytes."""
    head = b"\xff\xfb\x90\xc0"
    made = b"".join(head + bytes(413) for _ in range(frames))
    if info:
        made = head + bytes(17) + info.ljust(396, b"\0") + made
    if tag:
        sizes = bytes(tag >> shift & 127 for shift in (21, 14, 7, 0))
        made = b"ID3\4\0\0" + sizes + bytes(tag) + made
    return made + end


def box(name: bytes, *parts: bytes) -> bytes:
    """A box of an MP4."""
    body = b"".join(parts)
    return struct.pack(">I", 8 + len(body)) + name + body


def mp4(
    *,
    seconds: float = 2,
    size: tuple[int, int] | None = (64, 48),
    sound: tuple[int, int] | None = (48000, 2),
    version: int = 0,
    first: bool = True,
) -> bytes:
    """An MP4 with a track of pictures, one of sound, or both.

    Args:
        size: width and height.
        sound: rate and channels.
        version: of the box `mvhd`: 1 has times of 64 bits.
        first: whether `moov` comes before `mdat`.
    """
    ticks = int(seconds * 1000)
    times = struct.pack(">IIII", 0, 0, 1000, ticks)
    if version:
        times = struct.pack(">QQIQ", 0, 0, 1000, ticks)
    tracks = []
    if size is not None:
        entry = box(b"avc1", bytes(24), struct.pack(">HH", *size), bytes(50))
        tracks.append(_track(b"vide", entry))
    if sound is not None:
        rate, channels = sound
        entry = box(
            b"mp4a",
            bytes(16) + struct.pack(">HHHHI", channels, 16, 0, 0, rate << 16),
            box(
                b"esds",
                bytes(4) + b"\3\x19\0\1\0\4\x11\x40\x15" + bytes(11) + b"\5\2\x11\x90\6\1\2",
            ),
        )
        tracks.append(_track(b"soun", entry))
    moov = box(b"moov", box(b"mvhd", bytes((version, 0, 0, 0)), times, bytes(80)), *tracks)
    mdat = box(b"mdat", bytes(100))
    return box(b"ftyp", b"isom\0\0\2\0") + (moov + mdat if first else mdat + moov)


def _track(handler: bytes, entry: bytes) -> bytes:
    header = box(b"tkhd", bytes(84))
    stsd = box(b"stsd", bytes(4), struct.pack(">I", 1), entry)
    media = box(
        b"mdia", box(b"hdlr", bytes(8), handler, bytes(12)), box(b"minf", box(b"stbl", stsd))
    )
    return box(b"trak", header, media)
