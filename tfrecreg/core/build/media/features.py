"""A file as features of an example: an image, a sound, a video, or bytes.

The names begin with a base, by default that of the kind: `audio/encoded`, `audio/sample_rate`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import Literal, NamedTuple

from tfrecreg.core.build.media.read import MEDIA_FORMATS, MediaError, read_media, require_tinytag
from tfrecreg.core.example.features import bytes_feature, float_feature, int64_feature
from tfrecreg.core.example.model import Example, Feature
from tfrecreg.core.images.model import IMAGE_FORMATS
from tfrecreg.core.images.read import read_header, truncation_text

MediaKind = Literal["image", "audio", "video", "file"]
"""The kind of a file, which decides its features."""

_SUFFIXES: dict[str, MediaKind] = {
    **dict.fromkeys(("jpg", "jpeg", "png", "gif", "webp", "bmp"), "image"),
    **dict.fromkeys(("wav", "flac", "mp3", "m4a"), "audio"),
    **dict.fromkeys(("mp4", "m4v", "mov"), "video"),
}
_FORMATS = {"image": IMAGE_FORMATS, "audio": MEDIA_FORMATS, "video": ("mp4",)}
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
    """The code of a remark; empty for none."""
    detail: str = ""


def media_kind(name: str) -> MediaKind:
    """The kind of a file by the suffix of its name: ``file`` if no other is known."""
    return _SUFFIXES.get(name.rpartition(".")[2].lower(), "file")


def media_features(kind: MediaKind, base: str, name: str, data: bytes) -> MadeMedia:
    """The features of a file; its bytes are one of them, unchanged.

    Args:
        base: the names of the features begin with it.
        name: the name of the file, without folders.

    Raises:
        ImageError: it should be an image, and its header cannot be read.
        MediaError: it should be a sound or a video, and its header cannot be read.
        MissingExtraError: it should be a sound or a video, and tinytag is not installed.
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
        header = read_media(data)
        numbers = [(each, getattr(header, each)) for each in _NUMBERS[kind]]
        if any(value is None for _, value in numbers):
            raise MediaError(f"the sound is missing in this {header.format.upper()}")
        if header.format not in _FORMATS[kind]:
            raise MediaError(f"expected a video, found a sound: {header.format.upper()}")
        features[f"{base}/format"] = bytes_feature(header.format)
        features.update({f"{base}/{each}": int64_feature(value) for each, value in numbers})
        durations = () if header.duration is None else (header.duration,)
        features[f"{base}/duration"] = float_feature(durations)
        if header.problem:
            code, detail = "SRC062", f"{header.problem}; written unchanged"
    features[f"{base}/{_content(kind)}"] = bytes_feature(data)
    features[f"{base}/filename"] = bytes_feature(name)
    features[f"{base}/key/sha256"] = bytes_feature(hashlib.sha256(data).hexdigest())
    return MadeMedia(features, code, detail)


def _content(kind: MediaKind) -> str:
    return "bytes" if kind == "file" else "encoded"


def media_codecs(kinds: Iterable[MediaKind]) -> Mapping[str, str]:
    """What reads the headers of files of these kinds, with its version, for `Source.codecs`.

    Raises:
        MissingExtraError: sounds or videos are among them, and tinytag is not installed.
    """
    if {"audio", "video"}.isdisjoint(kinds):
        return {}
    require_tinytag("reading sounds and videos")
    return {"tinytag": version("tinytag")}


def media_schema(kind: MediaKind, base: str, *, required: bool = True) -> str:
    """The part of a schema for the features of :func:`media_features`.

    Args:
        base: ASCII without quotes and backslashes, or escaped.
        required: whether every record has them.

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
    yield feature(_content(kind), "BYTES", f"shape {{}}{domain}")
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
