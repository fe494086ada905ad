"""Turns sounds, videos and images into features of an example, and reads their headers.

The name of each feature begins with a base, usually the name of the kind: `audio/sample_rate`.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

from tfrecreg.core.example.model import Example, Feature
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.images.model import IMAGE_FORMATS
from tfrecreg.core.images.read import read_header, truncation_text
from tfrecreg.core.storage.interface import Readable, Reader
from tfrecreg.core.values.errors import MissingExtraError, RawDataError
from tfrecreg.core.values.text import safe

MEDIA_FORMATS = ("aiff", "flac", "mp3", "mp4", "ogg", "wav", "wma")
"""The known formats. ``mp4`` includes M4A and QuickTime, and ``ogg`` includes Opus."""

_WMA = b"\x30\x26\xb2\x75\x8e\x66\xcf\x11"
_UNKNOWN = 0xFFFFFFFF
"""The sample size in the header of a WAV that was written to a pipe."""
_IMAGES = (b"avif", b"avis", b"heic", b"heix", b"mif1", b"msf1")
"""Brands in the header of an MP4 container that mark the file as an image."""


class MediaError(ValueError):
    """The bytes are not a sound or a video of a known format, or their header is invalid.

    Args:
        detail: the problem in words; one line, without characters that need escaping.
    """

    code = "SRC110"
    """The code of an item that is skipped because of this error."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


def _require_tinytag() -> None:
    if find_spec("tinytag") is None:  # this does not import it
        raise MissingExtraError("reading sounds and videos", "media")


def sniff_media(data: bytes) -> str | None:
    """Detect which of :data:`MEDIA_FORMATS` a sound or a video has. Looks at its first bytes."""
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


def read_media(data: bytes) -> tuple[str, float | None, Mapping[str, Any], str]:
    """Read the header of a sound or a video. Nothing is decoded.

    The result is the format; the duration in seconds, or None if the file does not state it; the
    sample rate and the number of channels, None without sound; and why the file is incomplete,
    empty if it is complete.
    """
    if not data:
        raise MediaError("the sound or video has no bytes")
    found = sniff_media(data)
    if found is None:
        raise MediaError("not a sound or a video of a known format")
    _require_tinytag()
    from tinytag import TinyTag, TinyTagException

    try:
        tag = TinyTag.get(file_obj=io.BytesIO(data), tags=False)
    except TinyTagException as error:
        raise MediaError(f"a damaged {found.upper()}: {safe(str(error), limit=200)}") from error
    duration, problem = tag.duration if found == "wav" else tag.duration or None, ""
    if found == "wav" and duration and tag.bitrate:
        # tinytag does not notice a header that declares more samples than the file has.
        rate = tag.bitrate * 125
        size, present = round(duration * rate), len(data) - _wav_samples(data)
        if size > present:
            duration = max(present, 0) / rate
            if size != _UNKNOWN:
                problem = f"expected {size} bytes of sound, found at most {present}"
    if (tag.samplerate or 0) >= 1 << 63:  # an AIFF states it as a float of 80 bits
        raise MediaError(f"a damaged {found.upper()}: the sample rate is above 2^63")
    sound = {"sample_rate": tag.samplerate, "channels": tag.channels}
    return found, duration, sound, problem


def _wav_samples(data: bytes) -> int:
    """The offset of the samples in a WAV file, after its other chunks."""
    at = 12
    while at + 8 <= len(data):
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        if data[at : at + 4] == b"data":
            return at + 8
        at += 8 + size + (size & 1)
    return len(data)


MediaKind = Literal["image", "audio", "video", "file"]
"""The kind of a file. It decides which features the file becomes."""

_SUFFIXES: dict[str, MediaKind] = {
    **dict.fromkeys(("jpg", "jpeg", "jpe", "png", "gif", "webp", "bmp"), "image"),
    **dict.fromkeys(("wav", "flac", "mp3", "m4a"), "audio"),
    **dict.fromkeys(("mp4", "m4v", "mov"), "video"),
}
_FORMATS = {"image": IMAGE_FORMATS, "audio": MEDIA_FORMATS, "video": ("mp4",)}
_CONTENT = {"image": "encoded", "audio": "encoded", "video": "encoded", "file": "bytes"}
_NUMBERS: dict[str, tuple[str, ...]] = {
    "image": ("height", "width"),
    "audio": ("sample_rate", "channels"),
    "video": (),
    "file": (),
}


class MadeMedia(NamedTuple):
    """The features of a file."""

    features: Example
    code: str = ""
    """The code of a remark; empty if there is no remark."""
    detail: str = ""


def media_kind(name: str) -> MediaKind:
    """The kind of a file according to its suffix; ``file`` if the suffix is unknown."""
    return _SUFFIXES.get(name.rpartition(".")[2].lower(), "file")


def media_features(kind: MediaKind, base: str, name: str, data: bytes) -> MadeMedia:
    """The features of a file. One of them holds the bytes of the file, unchanged.

    Args:
        base: the start of the features' names.
        name: the name of the file, without folders.

    Raises:
        ImageError: the kind is an image, and its header cannot be read.
        MediaError: the kind is a sound or a video, and its header cannot be read.
        MissingExtraError: the kind is a sound or a video, and tinytag is not installed.
    """
    code = detail = ""
    features: dict[str, Feature] = {}
    if kind == "image":
        image = read_header(data)
        features[f"{base}/format"] = bytes_feature(image.format)
        features[f"{base}/height"] = int64_feature(image.height)
        features[f"{base}/width"] = int64_feature(image.width)
        detail = truncation_text(data, image)
        code = "SRC014" if detail else ""
    elif kind != "file":
        form, duration, sound, problem = read_media(data)
        numbers = {each: sound[each] for each in _NUMBERS[kind]}
        if None in numbers.values():
            raise MediaError(f"this {form.upper()} has no sound")
        if form not in _FORMATS[kind]:
            raise MediaError(f"expected a video, found a sound: {form.upper()}")
        features[f"{base}/format"] = bytes_feature(form)
        features.update({f"{base}/{each}": int64_feature(value) for each, value in numbers.items()})
        features[f"{base}/duration"] = float_feature(() if duration is None else (duration,))
        if problem:
            code, detail = "SRC014", f"{problem}; written unchanged"
    features[f"{base}/{_CONTENT[kind]}"] = bytes_feature(data)
    features[f"{base}/filename"] = bytes_feature(name)
    features[f"{base}/key/sha256"] = bytes_feature(hashlib.sha256(data).hexdigest())
    return MadeMedia(features, code, detail)


def media_codecs(kinds: Iterable[MediaKind]) -> Mapping[str, str]:
    """The version of the library that reads the headers of these kinds, for `Source.codecs`.

    Raises:
        MissingExtraError: `kinds` includes `audio` or `video`, but tinytag is not installed.
    """
    if {"audio", "video"}.isdisjoint(kinds):
        return {}
    _require_tinytag()
    return {"tinytag": version("tinytag")}


def media_schema(kind: MediaKind, base: str, *, required: bool = True) -> str:
    """The part of a schema for the features of :func:`media_features`.

    Args:
        base: ASCII without quotes and backslashes, or escaped text.
        required: whether every record has the features.

    Raises:
        MissingExtraError: as :func:`media_codecs`.
    """
    media_codecs([kind])  # before anything is built
    return "".join(_schema(kind, base, "min_fraction: 1" if required else "min_count: 1"))


def _schema(kind: MediaKind, base: str, presence: str) -> Iterator[str]:
    def feature(name: str, of: str, more: str) -> str:
        text = f'feature {{\n  name: "{base}/{name}"\n  type: {of}\n  presence {{ {presence} }}\n'
        return f"{text}  {more}\n}}\n"

    domain = " image_domain {}" if kind == "image" else ""
    yield feature(_CONTENT[kind], "BYTES", f"shape {{}}{domain}")
    if kind != "file":
        values = " ".join(f'value: "{each}"' for each in _FORMATS[kind])
        domain = f'string_domain {{ name: "{base}/format" {values} }}'
        yield feature("format", "BYTES", f"shape {{}} {domain}")
    for number in _NUMBERS[kind]:
        yield feature(number, "INT", "shape {} int_domain { min: 1 }")
    if kind in ("audio", "video"):
        bounds = "value_count { min: 0 max: 1 } float_domain { min: 0 disallow_nan: true }"
        yield feature("duration", "FLOAT", bounds)
    yield feature("filename", "BYTES", "shape {}")
    yield feature("key/sha256", "BYTES", "shape {}")


_MAX_BYTES = 1 << 30
"""Maximum size of a file. A record may be twice as large, and a worker holds a few copies."""


def read_media_file(raw: Readable, path: str) -> bytes:
    """Read an image, a sound, a video or any other file of at most 1 GiB.

    Raises:
        MediaError: the file is larger.
        RawDataError: it became shorter while it was read.
        StorageError: it cannot be read.
    """
    with raw.open(path) as file:
        if file.size > _MAX_BYTES:
            raise MediaError(f"the file has {file.size} bytes, more than {_MAX_BYTES}")
        return read_whole_file(file, path)


def read_whole_file(file: Reader, path: str) -> bytes:
    """All bytes of an open file.

    Args:
        path: for messages.

    Raises:
        RawDataError: it became shorter while it was read.
        StorageError: it cannot be read.
    """
    size = file.size
    data = file.read_at(0, size)
    if len(data) != size:
        raise RawDataError(
            f"`{path}` became shorter while it was read: expected {size} bytes, found {len(data)}"
        )
    return data
