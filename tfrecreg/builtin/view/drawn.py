"""A record as JSON: its image, the objects on it, its text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from tfrecreg.core.build.media.read import sniff_media
from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.example.format_payload import (
    ShownImage,
    ShownPart,
    describe_payload,
    images_in,
    words,
)
from tfrecreg.core.example.kinds import PayloadKind, kind_of
from tfrecreg.core.example.model import Example, Feature, Kind
from tfrecreg.core.images.drawing.drawing import COLORS, Drawing, class_color, drawing_of, marks_of
from tfrecreg.core.images.read import sniff
from tfrecreg.core.plugins.decoders import Decoders
from tfrecreg.core.schema.roles.labels import OBJECT_LABEL
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.text import hex_start, safe, si_bytes

TEXT = 300
"""Characters of the text of a record."""
_CLASSES = 6
"""Classes named in a label."""
_CELL = 80
"""Characters of the longest text of a record that is drawn as a row of a table."""
_FEW = 3
"""Features of a record that is not."""


def drawn(
    payload: bytes | TfrecregError,
    labels: Mapping[str, Sequence[str]],
    decoders: Decoders,
    key: str | None,
) -> dict[str, Any]:
    """What is shown of a record in the grid."""
    shown: dict[str, Any] = {
        "key": safe(key) if key is not None else None,
        "label": None,
        "caption": safe(key, limit=80) if key is not None else "",
        "feature": None,
        "width": None,
        "height": None,
        "kind": "none",
        "text": None,
        "boxes": [],
        "polygons": [],
        "points": [],
        "problem": None,
    }
    if isinstance(payload, TfrecregError):
        return {**shown, "problem": payload.message}
    example = example_of(payload)
    if example is None:
        parts = (
            f"{each.name}: {each.shown}".removeprefix(": ")
            for each in payload_parts(payload, decoders)
        )
        text = "\n".join(parts) or f"{si_bytes(len(payload))}, {hex_start(payload)}"
        return {**shown, "kind": "bytes", "text": text[:TEXT]}
    label = _label(example, labels)
    shown["label"] = label or None
    if label:
        shown["caption"] = label
    image = first_image(example, decoders)
    if image is not None and image.header is not None:
        shown.update(
            kind="image",
            feature=image.feature,
            width=image.header.width,
            height=image.header.height,
            **_shapes(drawing_of(example, labels), example),
        )
        return shown
    return {**shown, **_without_image(example, decoders)}


def example_of(payload: bytes) -> Example | None:
    """The features of a payload; None if it is no Example."""
    example = decode_or_none(payload)
    kind = kind_of(payload, 0, len(payload), example)
    return example if kind is PayloadKind.EXAMPLE else None


def payload_parts(payload: bytes, decoders: Decoders) -> Sequence[ShownPart]:
    """The parts of a payload that is no Example."""
    kind = kind_of(payload, 0, len(payload), decode_or_none(payload))
    return describe_payload(payload, kind, partial(words, decoders=decoders))


def first_image(example: Example, decoders: Decoders) -> ShownImage | None:
    """The image that stands for a record: the first with a header."""
    return next((each for each in images_in(example, decoders) if each.header is not None), None)


def kind_of_feature(name: str, feature: Feature, decoders: Decoders) -> str:
    """``image``, ``pixels``, ``audio``, ``text``, ``numbers`` or ``bytes``."""
    if name in decoders.pixels:
        return "pixels"
    if feature.kind is not Kind.BYTES:
        return "numbers"
    for value in feature.first(1):
        if sniff(value) is not None:
            return "image"
        if sniff_media(value) is not None:
            return "audio"
        if readable_text(value) is not None:
            return "text"
        return "image" if decoders.header(name, value) is not None else "bytes"
    return "bytes"


def readable_text(value: bytes, limit: int = 4 * TEXT) -> str | None:
    """The beginning of a value, where all of it that is shown can be printed."""
    try:
        text = value[:limit].decode("utf-8", "strict" if len(value) <= limit else "ignore")
    except UnicodeDecodeError:
        return None
    printable = sum(each.isprintable() or each in "\t\n\r" for each in text)
    return text if printable == len(text) else None


def _without_image(example: Example, decoders: Decoders) -> dict[str, Any]:
    """Kind, feature and text of a record without an image."""
    texts: list[tuple[int, str, str]] = []
    numbers: list[str] = []
    others: list[str] = []
    for name, feature in sorted(example.items()):
        kind = kind_of_feature(name, feature, decoders)
        if kind == "audio":
            return {"kind": "audio", "feature": name}
        if kind == "text":
            text = readable_text(feature.first(1)[0]) or ""
            texts.append((len(text), name, text))
        elif kind in ("numbers", "pixels"):
            first = feature.first(8)
            shown = ", ".join(
                f"{each:.6g}" if isinstance(each, float) else str(each) for each in first
            )
            more = " …" if feature.count > 8 else ""
            numbers.append(f"{safe(name, limit=60)}: {shown}{more}")
        else:
            size = sum(feature.sizes) if feature.kind is Kind.BYTES else 0
            others.append(f"{safe(name, limit=60)}: {si_bytes(size)}")
    longest = max(texts, default=None)
    if longest is not None and longest[0] <= _CELL and len(texts) + len(numbers) > _FEW:
        # A row of a table: no feature of it stands for the record.
        cells = [f"{safe(name, limit=60)}: {text}" for _, name, text in texts]
        return {"kind": "numbers", "text": "\n".join(sorted([*cells, *numbers]))[:TEXT]}
    if longest is not None and (longest[0] > 20 or not numbers):
        return {"kind": "text", "feature": longest[1], "text": longest[2][:TEXT]}
    if numbers:
        return {"kind": "numbers", "text": "\n".join(numbers)[:TEXT]}
    if others:
        return {"kind": "bytes", "text": "\n".join(others)[:TEXT]}
    return {"kind": "none"}


def finite(value: Any) -> Any:
    """A number that JSON has."""
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)


def _label(example: Example, labels: Mapping[str, Sequence[str]]) -> str:
    named = [
        f"{mark.name} × {mark.objects}" if mark.objects > 1 else mark.name
        for mark in marks_of(example, labels)
    ]
    plain = example.get("label")
    if not named and plain is not None and plain.kind is Kind.INT64 and plain.count == 1:
        return str(plain.values[0])  # as the facet of classes has it
    more = [f"{len(named) - _CLASSES} more"] if len(named) > _CLASSES else []
    return ", ".join(named[:_CLASSES] + more)


def _shapes(drawing: Drawing, example: Example) -> dict[str, Any]:
    """Boxes, polygons and points, in fractions of the sides."""
    known = example.get(OBJECT_LABEL)
    numbers = known.values if known is not None and known.kind is Kind.INT64 else ()
    boxes, polygons, points = [], [], []
    for at, each in enumerate(drawing.objects):
        about = {
            "class": each.mark.name or None,
            "number": int(numbers[at]) if at < len(numbers) else None,
            "color": COLORS[each.mark.color],
        }
        if each.box is not None:
            left, top, width, height = (round(side, 5) for side in each.box)
            sides = {"x0": left, "y0": top, "x1": left + width, "y1": top + height}
            boxes.append({**sides, **about})
        corners = (
            ((x, y), (x + width, y), (x + width, y + height), (x, y + height))
            for x, y, width, height in each.strips
        )
        polygons += [
            {"points": [[round(x, 5), round(y, 5)] for x, y in outline], **about}
            for outline in (*each.polygons, *corners)
        ]
        points += [[round(x, 5), round(y, 5)] for x, y in each.points]
    return {"boxes": boxes, "polygons": polygons, "points": points}


def classes_of(labels: Mapping[str, Sequence[str]], most: int = 1000) -> Iterator[dict[str, Any]]:
    """The classes of a target with their colors."""
    seen: set[tuple[int, str]] = set()
    for _, names in sorted(labels.items()):
        for number, name in islice(enumerate(names), most):
            if name and (number, name) not in seen:
                seen.add((number, name))
                color = COLORS[class_color(number)]
                yield {"number": number, "name": safe(name, limit=60), "color": color}
