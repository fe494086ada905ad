"""Headers of sounds and videos: what they say, where they end, and what they must not do."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from contextlib import suppress
from dataclasses import asdict

import pytest
from media_support import box, flac, mp3, mp4, wav

from tfrecreg.media.model import MediaError, MediaHeader
from tfrecreg.media.read import read_media

SAMPLES = {"wav": wav(), "flac": flac(), "mp3": mp3(), "mp4": mp4()}


def said(data: bytes) -> dict[str, object]:
    """What a header says, without what it does not."""
    return {
        name: value for name, value in asdict(read_media(data)).items() if value not in (None, "")
    }


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (wav(0.25, rate=16000, channels=2), ("wav", 0.25, 16000, 2)),
        (flac(rate=48000, channels=1, samples=12000), ("flac", 0.25, 48000, 1)),
        (b"ID3\4\0\0\0\0\0\2xx" + flac(), ("flac", 1.0, 44100, 2)),
        (mp3(10), ("mp3", 11520 / 44100, 44100, 1)),
        (mp3(10, info=b"Info", tag=300), ("mp3", 11520 / 44100, 44100, 1)),
        (mp3(10, end=b"TAG" + bytes(125)), ("mp3", 11520 / 44100, 44100, 1)),
        (mp3(10, end=b"APETAGEX" + bytes(50)), ("mp3", 11520 / 44100, 44100, 1)),
    ],
)
def test_a_sound_says_how_long_it_is(data, expected) -> None:
    format_, duration, rate, channels = expected
    assert said(data) == {
        "format": format_,
        "duration": pytest.approx(duration),
        "sample_rate": rate,
        "channels": channels,
    }


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("first", [True, False])
def test_a_video_says_how_long_and_how_large_it_is(version, first) -> None:
    assert said(mp4(version=version, first=first)) == {
        "format": "mp4",
        "duration": 2.0,
        "sample_rate": 48000,
        "channels": 2,
        "width": 64,
        "height": 48,
    }
    assert said(mp4(size=None)).keys() == {"format", "duration", "sample_rate", "channels"}


def test_formats_of_wav_whose_sizes_are_elsewhere() -> None:
    data = wav()
    assert read_media(data[:40] + b"\xff\xff\xff\xff" + data[44:]).duration == 0.5
    at = data.index(b"data")
    large = b"ds64" + struct.pack("<IQQQI", 28, 0, len(data) - 44, 0, 0)
    rf64 = b"RF64\xff\xff\xff\xffWAVE" + large + data[12 : at + 4] + b"\xff" * 4 + data[at + 8 :]
    assert read_media(rf64).duration == 0.5
    fact = b"fact" + struct.pack("<II", 4, 2000)
    packed = data[:20] + b"\2\0" + data[22:at] + fact + data[at:]
    assert read_media(packed).duration == 0.25


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (wav()[:-1000], "8000 bytes of sound expected, found 7000"),
        (mp3(10)[:-5], "the last frame ends at byte 4170 of 4165"),
        (mp3(10) + b"\x01" * 400, "no frame at byte 4170 of 4570"),
        (mp4()[:-20], "a box ends at byte "),
        (flac(sound=b""), "44100 samples expected, found no sound behind the metadata"),
    ],
)
def test_a_missing_end_is_noticed(data, problem) -> None:
    assert read_media(data).problem.startswith(problem)


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (b"", "the file has no bytes"),
        (b"hello, world" * 20, "expected a WAV, FLAC, MP3 or MP4, found something else"),
        (wav()[:30], "a WAV that ends after 30 bytes, before its samples"),
        (wav()[:22] + b"\0\0" + wav()[24:], "a WAV of 0 channels, 8000 samples per second"),
        (wav()[:12] + wav()[36:], "a WAV whose samples come before their format"),
        (wav()[:12] + b"junk\0\0\0\0" * 10_001, "a WAV of more than 10000 chunks"),
        (b"RIFF\0\0\0\0WAVEfmt \4\0\0\0xxxxdata\0\0\0\0", "a WAV whose format has fewer than 16"),
        (flac()[:41], "a FLAC that ends after 41 bytes, before its header ends"),
        (flac()[:44], "a FLAC that ends after 44 bytes, in its metadata"),
        (flac(rate=0), "a FLAC of 0 samples per second"),
        (b"fLaC\4" + flac()[5:], "a FLAC that does not begin with the block STREAMINFO"),
        (flac()[:42] + b"\1\0\0\0" * 10_001, "a FLAC of more than 10000 blocks of metadata"),
        (mp4(first=False)[:90], "an MP4 without the box `moov`, which a recorder writes last"),
        (mp4()[:200], "an MP4 whose box at byte 16 ends behind its end"),
        (mp4(size=(0, 4)), "an MP4 of pictures 0 pixels wide and 0 high"),
        (box(b"ftyp") + b"\0\0\0\2free", "an MP4 with a box of 2 bytes at byte 8"),
        (box(b"free") * 10_001, "an MP4 of more than 10000 boxes"),
        (box(b"moov", box(b"mvhd", bytes(4))), "an MP4 whose box `mvhd` is too short"),
        (box(b"moov", box(b"mvhd", bytes(100))), "an MP4 of 0 ticks per second"),
    ],
)
def test_an_invalid_header_is_refused_with_its_reason(data, detail) -> None:
    with pytest.raises(MediaError) as caught:
        read_media(data)
    assert caught.value.detail.startswith(detail)
    assert caught.value.code == ("SRC060" if data else "SRC061")


@pytest.mark.parametrize("kind", SAMPLES)
def test_damage_is_an_error_or_a_header_and_nothing_else(kind) -> None:
    rng = random.Random(kind)
    data = SAMPLES[kind]
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(rng.randrange(1, 6)):
            damaged[rng.randrange(min(len(data), 700))] = rng.randrange(256)
        cut = bytes(damaged[: rng.randrange(len(data))] if rng.random() < 0.3 else damaged)
        with suppress(MediaError):
            found = read_media(cut)
            assert isinstance(found, MediaHeader)
            assert found.duration is None or found.duration >= 0


ENCODERS = {
    "flac": ("flac", ["-s", "-f", "-o", "{out}", "{in}"]),
    "mp3": ("lame", ["--quiet", "{in}", "{out}"]),
    "mp4": ("ffmpeg", ["-v", "error", "-y", "-i", "{in}", "{out}"]),
}


@pytest.mark.parametrize("kind", ENCODERS)
def test_files_of_real_encoders_are_read(kind, tmp_path) -> None:
    program, arguments = ENCODERS[kind]
    if shutil.which(program) is None:
        pytest.skip(f"the program `{program}` is not installed")
    source, target = tmp_path / "in.wav", tmp_path / f"out.{kind}"
    source.write_bytes(wav(2, rate=44100, channels=2))
    filled = [each.format(**{"in": source, "out": target}) for each in arguments]
    subprocess.run([program, *filled], check=True, capture_output=True)
    header = read_media(target.read_bytes())
    assert (header.format, header.sample_rate, header.channels) == (kind, 44100, 2)
    assert header.duration == pytest.approx(2, abs=0.1)
    assert not header.problem
