"""One record: its features, objects and remarks as JSON, and its images, sounds and videos.

The browser never receives a format that can contain scripts. Images show the stored pixels, as
decoders return them, so EXIF orientation is not applied. In the browser, `image-orientation: none`
switches EXIF orientation off.
"""

from __future__ import annotations

import io
import json
import math
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from tfrecreg.builtin.query.tables import ledger_lines
from tfrecreg.core.build.media import sniff_media
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.example.format_payload import (
    ShownImage,
    ShownPart,
    describe_payload,
    images_in,
    words,
)
from tfrecreg.core.example.kinds import PayloadKind, kind_of, payload_kind
from tfrecreg.core.example.model import Example, Feature, Kind
from tfrecreg.core.images.decoder import pillow
from tfrecreg.core.images.drawing import COLORS, Drawing, class_color, drawing_of, marks_of
from tfrecreg.core.images.read import sniff
from tfrecreg.core.plugins.decoders import Decoders
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.schema.labels import OBJECT_LABEL
from tfrecreg.core.values.errors import (
    MissingExtraError,
    NoSuchNameError,
    TfrecregError,
    UsageError,
)
from tfrecreg.core.values.text import hex_start, safe, si_bytes

if TYPE_CHECKING:
    from tfrecreg.builtin.view.browsed import Browsed

TEXT = 300
"""Maximum number of characters of the text of a record."""
_CLASSES = 6
"""Maximum number of classes in a label. For the others, the label gives only their number."""
_CELL = 80
"""If a text has more characters, the other values of the record are not shown."""


def drawn(
    payload: bytes | TfrecregError,
    labels: Mapping[str, Sequence[str]],
    decoders: Decoders,
    key: str | None,
) -> dict[str, Any]:
    """What the grid shows about a record."""
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
    """The features of a payload; None if it is not an Example."""
    example = decode_or_none(payload)
    kind = kind_of(payload, 0, len(payload), example)
    return example if kind is PayloadKind.EXAMPLE else None


def payload_parts(payload: bytes, decoders: Decoders) -> Sequence[ShownPart]:
    """The parts of a payload that is not an Example."""
    return describe_payload(payload, payload_kind(payload), partial(words, decoders=decoders))


def first_image(example: Example, decoders: Decoders) -> ShownImage | None:
    """The image that represents a record: the first one with a readable header."""
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
    """The beginning of a value as text; None if it is not printable UTF-8."""
    try:
        text = value[:limit].decode("utf-8", "strict" if len(value) <= limit else "ignore")
    except UnicodeDecodeError:
        return None
    printable = sum(each.isprintable() or each in "\t\n\r" for each in text)
    return text if printable == len(text) else None


def _without_image(example: Example, decoders: Decoders) -> dict[str, Any]:
    """How to show a record that contains no image: the kind, the feature and the text."""
    lines: list[str] = []
    longest = ""
    named = None
    for name, feature in sorted(example.items()):
        kind = kind_of_feature(name, feature, decoders)
        if kind == "audio":
            return {"kind": "audio", "feature": name}
        if kind == "text":
            shown = readable_text(feature.first(1)[0]) or ""
            if len(shown) > len(longest):
                longest, named = shown, name
        elif kind in ("numbers", "pixels"):
            first = feature.first(8)
            shown = ", ".join(
                f"{each:.6g}" if isinstance(each, float) else str(each) for each in first
            )
            shown += " …" if feature.count > 8 else ""
        else:
            shown = si_bytes(sum(feature.sizes) if feature.kind is Kind.BYTES else 0)
        lines.append(f"{safe(name, limit=60)}: {shown}")
    if len(longest) > _CELL or (named is not None and len(lines) == 1):
        return {"kind": "text", "feature": named, "text": longest[:TEXT]}
    return {"kind": "numbers" if lines else "none", "text": "\n".join(lines)[:TEXT] or None}


def _label(example: Example, labels: Mapping[str, Sequence[str]]) -> str:
    named = [
        f"{mark.name} × {mark.objects}" if mark.objects > 1 else mark.name
        for mark in marks_of(example, labels)
    ]
    plain = example.get("label")
    if not named and plain is not None and plain.kind is Kind.INT64 and plain.count == 1:
        return str(plain.values[0])  # as in the facet of classes
    more = [f"{len(named) - _CLASSES} more"] if len(named) > _CLASSES else []
    return ", ".join(named[:_CLASSES] + more)


def _shapes(drawing: Drawing, example: Example) -> dict[str, Any]:
    """Boxes, polygons and points, with coordinates as fractions of the image's sides."""
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


def classes_of(labels: Mapping[str, Sequence[str]]) -> Iterator[dict[str, Any]]:
    """The classes of a target with their colors."""
    seen: set[tuple[int, str]] = set()
    for _, names in sorted(labels.items()):
        for number, name in islice(enumerate(names), 1000):
            if name and (number, name) not in seen:
                seen.add((number, name))
                color = COLORS[class_color(number)]
                yield {"number": number, "name": safe(name, limit=60), "color": color}


_VALUES = 64
_HEX = 256
_UNITS = {"context": "value", "list": "step"}


def ledger_rows(target: Target) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of a build's ledger, by the split and the key of the item."""
    try:
        lines = ledger_lines(target) or []
    except TfrecregError:
        return {}  # the check reports it
    rows = map(json.loads, lines)
    return {(str(row.get("split")), str(row.get("key"))): row for row in rows}


def whole_record(browsed: Browsed, number: int) -> dict[str, Any]:
    """A record with its place, features and findings."""
    seen, record = browsed.shards.place(number)
    browsed.shards.expect_same(seen)
    (payload,) = browsed.shards.payloads([number])
    offset, length = browsed.shards.where(number)
    key = browsed.shards.key(number)
    found: dict[str, Any] = {
        **browsed.drawn(number, payload),
        "shard_name": safe(seen.name, limit=1000),
        "offset": offset,
        "length": length,
        "digest": record_digest(payload).hex() if isinstance(payload, bytes) else None,
        "features": [],
        "ledger": None,
        "findings": browsed.report.about(seen.name, record),
        "hex": "",
        "previous": _place(browsed, number - 1),
        "next": _place(browsed, number + 1),
    }
    if row := browsed.ledger.get((seen.split, key or "")):
        found["ledger"] = {name: safe(str(value), limit=1000) for name, value in row.items()}
    if isinstance(payload, bytes):
        example = example_of(payload)
        found["features"] = (
            [_feature(browsed, name, feature) for name, feature in sorted(example.items())]
            if example is not None
            else [_part(each) for each in payload_parts(payload, browsed.decoders)]
        )
        found["hex"] = payload[:_HEX].hex(" ") if example is None else ""
    return found


def _place(browsed: Browsed, number: int) -> dict[str, int] | None:
    if not 0 <= number < len(browsed.shards):
        return None
    seen, record = browsed.shards.place(number)
    return {"shard": seen.number, "record": record}


def _part(part: ShownPart) -> dict[str, Any]:
    return {
        "name": part.name or part.part,
        "type": part.kind,
        "count": part.count,
        "unit": _UNITS.get(part.part, "byte"),
        "kind": "bytes",
        "values": [],
        "text": part.shown,
        "hex": "",
        "note": part.part,
    }


def _feature(browsed: Browsed, name: str, feature: Feature) -> dict[str, Any]:
    first = feature.first(_VALUES)
    is_bytes = feature.kind is Kind.BYTES
    head = first[0] if is_bytes and first else b""
    text = readable_text(head, 20 * TEXT) if is_bytes and first else None
    return {
        "name": safe(name),
        "type": feature.kind.name.lower(),
        "count": feature.count,
        "unit": "value",
        "kind": kind_of_feature(name, feature, browsed.decoders),
        "values": [_value(each) for each in first],
        "text": text,
        "hex": head[:_HEX].hex(" ") if is_bytes and text is None else "",
        "note": words(feature, browsed.decoders, name),
    }


def _value(value: bytes | float | int) -> Any:
    if not isinstance(value, bytes):
        # JSON has no NaN and no infinity, and JavaScript rounds integers beyond 2^53.
        is_exact = math.isfinite(value) if isinstance(value, float) else abs(value) < 1 << 53
        return value if is_exact else str(value)
    text = readable_text(value)
    return text[:TEXT] if text is not None else f"{len(value)} bytes"


SHOWN = {
    "bmp": "image/bmp",
    "gif": "image/gif",
    "jpeg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
}
"""Image formats that are sent unchanged, with their media types."""
SIZES = (32, 640)
"""The smallest and the largest side of a thumbnail."""
_SMALL_BYTES = 1 << 16
_DRAFT_PIXELS = 50_000_000
_QUALITY = 80
_DECODING = threading.BoundedSemaphore(2)
"""Limits memory: at most two images are fully decoded at the same time."""
_MEDIA_TYPES = {
    "aiff": "audio/aiff",
    "flac": "audio/flac",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "ogg": "audio/ogg",
    "wav": "audio/wav",
    "wma": "audio/x-ms-wma",
}
_RANGE = re.compile(r"bytes=(\d{0,15})-(\d{0,15})")


def thumbnail(image: ShownImage, size: int) -> Response:
    """A picture with sides of at most `size` pixels. A small image is sent unchanged."""
    header = image.header
    assert header is not None
    own = _own_type(image) if not header.animated else None
    shorter, longer = sorted((header.width, header.height))
    if own is not None and longer <= size and len(image.data) <= _SMALL_BYTES:
        return Response(image.data, media_type=own)
    try:
        if header.format == "jpeg" and header.width * header.height <= _DRAFT_PIXELS:
            return _drafted(image.data, size)
        with _DECODING:
            made = image.decoder.thumbnail(image.data, max(1, size * shorter // longer))
    except MissingExtraError:
        if own is not None and len(image.data) <= 16 * _SMALL_BYTES:
            return Response(image.data, media_type=own)
        raise
    if made is None:
        raise ValueError("its decoder returns no picture")
    return Response(made.data, media_type=SHOWN[made.format])


def whole(image: ShownImage) -> Response:
    """An image, converted to PNG or JPEG unless browsers can show its own format."""
    own = _own_type(image)
    if own is not None:
        return Response(image.data, media_type=own)
    side = max(image.header.width, image.header.height) if image.header is not None else 1
    try:
        with _DECODING:
            made = image.decoder.thumbnail(image.data, side)
    except ValueError as error:
        raise UsageError(f"the image does not decode: {error}") from None
    if made is None:
        raise UsageError("the decoder of the image returns no picture")
    return Response(made.data, media_type=SHOWN[made.format])


def _own_type(image: ShownImage) -> str | None:
    """The media type if browsers can show the image unchanged; None for pixels that begin like a
    PNG."""
    known = sniff(image.data)
    return SHOWN[known] if known is not None and image.format == known else None


def _drafted(data: bytes, size: int) -> Response:
    """A thumbnail of a JPEG, decoded at the lowest resolution that suffices for the size."""
    image_module = pillow("PIL.Image")
    try:
        with image_module.open(io.BytesIO(data), formats=["JPEG"]) as opened:
            # The final sides: with a square, up to four times as many pixels would be decoded.
            longest = max(opened.size)
            width, height = (max(1, -(-side * size // longest)) for side in opened.size)
            opened.draft("RGB", (width, height))
            opened.thumbnail(
                (size, size), resample=image_module.Resampling.BILINEAR, reducing_gap=2.0
            )
            made = io.BytesIO()
            opened.convert("RGB").save(made, "jpeg", quality=_QUALITY)
    except Exception as error:
        # Decoders raise many errors: OSError, SyntaxError, struct.error, KeyError …
        raise ValueError(f"{type(error).__name__}: {error}") from error
    return Response(made.getvalue(), media_type=SHOWN["jpeg"])


def medium(example: Example, feature: str | None) -> tuple[bytes, str]:
    """A sound or a video of a record, and its media type."""
    for name, found in sorted(example.items()):
        if found.kind is not Kind.BYTES or feature not in (None, name, safe(name)):
            continue
        for value in found.first(1):
            kind = _MEDIA_TYPES.get(sniff_media(value) or "")
            if kind is not None:
                return value, kind
    raise NoSuchNameError("the record has no such sound or video")


def part_of(data: bytes, media_type: str, asked: str) -> Response:
    """All bytes, or the range that `asked` requests."""
    size = len(data)
    headers = {"accept-ranges": "bytes"}
    match = _RANGE.fullmatch(asked.strip())
    if match is None or match.groups() == ("", ""):
        return Response(data, 200, headers, media_type)
    first, last = match.groups()
    start = int(first) if first else max(size - int(last), 0)
    end = min(int(last) + 1, size) if first and last else size
    if start >= end:
        return Response(b"", 416, {**headers, "content-range": f"bytes */{size}"}, media_type)
    headers["content-range"] = f"bytes {start}-{end - 1}/{size}"
    return Response(data[start:end], 206, headers, media_type)
