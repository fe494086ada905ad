"""What the values of a feature are, in words: pictures, tensors, text, numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tfrecreg.example import Example, Feature, Kind
from tfrecreg.example.tensors import Tensor, read_tensor
from tfrecreg.pictures import PictureError, PictureHeader, is_truncated, read_header, sniff
from tfrecreg.text import safe, si_bytes

__all__ = ["ShownPicture", "hex_start", "pictures_in", "words"]

_VALUES = 8
"""So many values of a feature are shown."""
_TEXT = 100
"""So many characters of a text are shown."""
_HEX = 16
"""So many bytes of anything else."""

_PICTURES = {"bmp": "BMP", "gif": "GIF", "jpeg": "JPEG", "png": "PNG", "webp": "WebP"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPicture:
    """One encoded picture of a record, as its bytes are."""

    feature: str
    """Name of its feature, as it is: not escaped."""
    value: int
    """Its position among the values of that feature."""
    format: str
    """One of :data:`tfrecreg.pictures.FORMATS`."""
    header: PictureHeader | None
    """None where it cannot be read."""
    data: bytes = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """All but the bytes themselves."""
        return {
            "feature": safe(self.feature),
            "value": self.value,
            "format": self.format,
            "width": self.header.width if self.header is not None else None,
            "height": self.header.height if self.header is not None else None,
            "bytes": len(self.data),
        }


def words(feature: Feature) -> str:
    """The first values of a feature, or what they are. Every string is escaped."""
    shown = [_value(feature.kind, value) for value in feature.first(_VALUES)]
    more = [f"… {feature.count - _VALUES:,} more"] if feature.count > _VALUES else []
    return ", ".join(shown + more)


def pictures_in(example: Example) -> Iterator[ShownPicture]:
    """Every picture among the values, in order of the features' names."""
    for name, feature in sorted(example.items()):
        if feature.kind is not Kind.BYTES:
            continue
        for number, value in enumerate(feature.values):
            found = sniff(value)
            if found is not None:
                yield ShownPicture(
                    feature=name, value=number, format=found, header=_header(value), data=value
                )


def hex_start(data: bytes) -> str:
    """The first bytes in hex."""
    return data[:_HEX].hex(" ") + (" …" if len(data) > _HEX else "")


def _value(kind: Kind, value: bytes | float | int) -> str:
    if not isinstance(value, bytes):
        return f"{value:.6g}" if kind is Kind.FLOAT else str(value)
    picture = sniff(value)
    if picture is not None:
        return _picture(picture, value)
    tensor = read_tensor(value)
    if tensor is not None:
        return _tensor(tensor, value)
    text = _text(value)
    if text is not None:
        return f'"{safe(text, limit=_TEXT)}"'
    return f"{si_bytes(len(value))}: {hex_start(value)}"


def _picture(format: str, data: bytes) -> str:
    name, size = f"{_PICTURES[format]} picture", si_bytes(len(data))
    try:
        header = read_header(data)
    except PictureError as error:
        return f"{name}, {size}, unreadable: {error.detail}"
    moves = ", animated" if header.animated else ""
    cut = ", cut short" if is_truncated(data) else ""
    return f"{name}, {header.width}x{header.height}, {size}{moves}{cut}"


def _header(data: bytes) -> PictureHeader | None:
    try:
        return read_header(data)
    except PictureError:
        return None


def _tensor(tensor: Tensor, data: bytes) -> str:
    sides = ", ".join(map(str, tensor.shape[:_VALUES]))
    more = ", …" if len(tensor.shape) > _VALUES else ""
    return f"serialised tensor, {tensor.dtype}[{sides}{more}], {si_bytes(len(data))}"


def _text(data: bytes) -> str | None:
    """The text that bytes are, where nine of ten characters of its start can be printed."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    start = text[:_TEXT]
    printable = sum(character.isprintable() for character in start)
    return text if printable * 10 >= len(start) * 9 else None
