"""Payloads as text: the features of Examples, and the parts of other payloads."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from math import prod
from typing import Any

from tfrecreg.core.example.kinds import PayloadKind, decode_sequence
from tfrecreg.core.example.model import Example, Feature, Kind
from tfrecreg.core.example.tensors import read_tensor
from tfrecreg.core.example.values import bytes_feature
from tfrecreg.core.images.decoder import FeatureDecoder, pixel_bytes
from tfrecreg.core.images.model import ImageHeader
from tfrecreg.core.images.read import sniff
from tfrecreg.core.plugins.decoders import Decoders
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.text import hex_start, safe, si_bytes

_VALUES = 8
"""Maximum number of values shown per feature."""
_TEXT = 100
"""Maximum number of characters shown per text."""
_SIDE = 160
"""Maximum number of pixels of a thumbnail's shorter side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownImage:
    """One encoded image of a record, with its original bytes."""

    feature: str
    """Not escaped."""
    value: int
    """Position of the image among the feature's values."""
    format: str
    header: ImageHeader | None
    """None if the header cannot be read."""
    data: bytes = field(repr=False)
    decoder: FeatureDecoder = field(repr=False)

    def thumbnail_html(self) -> str:
        """A thumbnail as HTML, or the reason if the image does not decode. The text is empty if
        the decoder makes no thumbnail."""
        try:
            made = self.decoder.thumbnail(self.data, _SIDE)
        except (ValueError, TfrecregError) as error:
            return f"<p>the image does not decode: {escape(str(error))}</p>"
        if made is None:
            return ""
        data = b64encode(made.data).decode("ascii")
        return f'<img src="data:image/{made.format};base64,{data}">'

    def to_json(self) -> dict[str, Any]:
        """All fields except the bytes."""
        return {
            "feature": safe(self.feature),
            "value": self.value,
            "format": safe(self.format),
            "width": self.header.width if self.header is not None else None,
            "height": self.header.height if self.header is not None else None,
            "bytes": len(self.data),
        }


def words(feature: Feature, decoders: Decoders, name: str = "") -> str:
    """The first values of a feature, or a description of the values. Every string is escaped."""
    if feature.kind is not Kind.BYTES and name in decoders.pixels:
        sides = "x".join(map(str, decoders.pixels[name].size))
        return f"pixels, {sides}, as {feature.count:,} numbers"
    shown = [_value(feature.kind, value, name, decoders) for value in feature.first(_VALUES)]
    more = [f"… {feature.count - _VALUES:,} more"] if feature.count > _VALUES else []
    return ", ".join(shown + more)


def images_in(example: Example, decoders: Decoders) -> Iterator[ShownImage]:
    """Every image among the values, in order of the features' names."""
    for name, feature in sorted(example.items()):
        values: Sequence[bytes] = ()
        if feature.kind is Kind.BYTES:
            values = feature.values
        elif name in decoders.pixels and feature.count == prod(decoders.pixels[name].size):
            values = [pixel_bytes(feature.values)]
        for number, value in enumerate(values):
            decoder = _decoder(name, value, decoders)
            header = decoders.header(name, value) if decoder is not None else None
            known = header.format if header is not None else sniff(value)
            if decoder is not None and known is not None:
                yield ShownImage(
                    feature=name,
                    value=number,
                    format=known,
                    header=header,
                    data=value,
                    decoder=decoder,
                )


def _decoder(name: str, value: bytes, decoders: Decoders) -> FeatureDecoder | None:
    """The decoder of a value. Plugins' decoders are asked only about bytes of unknown formats."""
    found = decoders.find_bundled(name, value)
    if found is None and read_tensor(value) is None and _as_text(value) is None:
        found = decoders.find_third_party(name, value)
    return found


def _value(kind: Kind, value: bytes | float | int, name: str, decoders: Decoders) -> str:
    if not isinstance(value, bytes):
        return f"{value:.6g}" if kind is Kind.FLOAT else str(value)
    decoder = _decoder(name, value, decoders)
    if decoder is not None:
        try:
            return decoder.caption(value)
        except ValueError as error:
            return f"{si_bytes(len(value))}, unreadable: {error}"
    tensor = read_tensor(value)
    if tensor is not None:
        sides = ", ".join(map(str, tensor.shape[:_VALUES]))
        more = ", …" if len(tensor.shape) > _VALUES else ""
        return f"serialized tensor, {tensor.dtype}[{sides}{more}], {si_bytes(len(value))}"
    text = _as_text(value)
    if text is not None:
        return f'"{safe(text, limit=_TEXT)}"'
    return f"{si_bytes(len(value))}: {hex_start(value)}"


def _as_text(data: bytes) -> str | None:
    """The bytes as text, if at least nine of ten characters of the start are printable."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    start = text[:_TEXT]
    printable = sum(character.isprintable() or character in "\t\n\r" for character in start)
    return text if printable * 10 >= len(start) * 9 else None


_STEPS = 4
"""Maximum number of steps shown per list."""
_TEXT_LIMIT = 1 << 16
"""Maximum size in bytes of a payload that is shown as text."""

_Values = Callable[[Feature], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPart:
    """One part of a payload, described. Every string is escaped."""

    part: str
    """In a SequenceExample ``context`` or ``list``; in any other payload ``text``."""
    name: str
    """Name of the feature or list; empty for a text."""
    kind: str
    """``bytes``, ``float``, ``int64`` or ``text``."""
    count: int
    """Number of values of a feature, number of steps of a list, or size of a text in bytes."""
    shown: str
    """The content, shortened."""


def describe_payload(
    payload: bytes, kind: PayloadKind | None, values: _Values
) -> tuple[ShownPart, ...]:
    """The parts of a SequenceExample or of a text. Any other payload has none."""
    if kind is PayloadKind.SEQUENCE_EXAMPLE:
        return tuple(_sequence(payload, values))
    if kind in (PayloadKind.EVENT, PayloadKind.OTHER):
        return _text(payload, values)
    return ()


def _sequence(payload: bytes, values: _Values) -> Iterator[ShownPart]:
    sequence = decode_sequence(payload)
    if sequence is None:
        return
    for name, feature in sorted(sequence.context.items()):
        kind = feature.kind.name.lower()
        yield ShownPart(
            part="context", name=safe(name), kind=kind, count=feature.count, shown=values(feature)
        )
    for name, steps in sorted(sequence.lists.items()):
        kinds = sorted({step.kind.name.lower() for step in steps})
        shown = " ".join(f"[{values(step)}]" for step in steps[:_STEPS])
        more = f" … {len(steps) - _STEPS} more steps" if len(steps) > _STEPS else ""
        yield ShownPart(
            part="list",
            name=safe(name),
            kind=" and ".join(kinds),
            count=len(steps),
            shown=shown + more,
        )


def _text(payload: bytes, values: _Values) -> tuple[ShownPart, ...]:
    """The payload as one part, if it is text without control characters."""
    if len(payload) > _TEXT_LIMIT:
        return ()
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError:
        return ()
    if not text or not all(each.isprintable() or each in "\t\n\r" for each in text):
        return ()
    shown = values(bytes_feature(payload))
    return (ShownPart(part="text", name="", kind="text", count=len(payload), shown=shown),)
