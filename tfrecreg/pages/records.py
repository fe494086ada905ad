"""Records as a page shows them: their values, and their image as a thumbnail with its boxes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tfrecreg.errors import StorageError, TfrecregError
from tfrecreg.example.decode import decode_or_none
from tfrecreg.example.model import Example, Kind
from tfrecreg.operations.format_payload import ShownImage
from tfrecreg.operations.head import ShownFeature, shown_record
from tfrecreg.pages.masks import PageStrip, strips_of
from tfrecreg.plugins.decoders import Decoders, target_decoders
from tfrecreg.records.access import Records
from tfrecreg.records.framing import HEADER_BYTES
from tfrecreg.records.reader import HOLD_LIMIT
from tfrecreg.scan.indexes import index_of
from tfrecreg.scan.interface import Shard, Target
from tfrecreg.text import safe, safe_value
from tfrecreg.validators.annotations.label_features import BOX, IMAGE_LABEL, KEYPOINTS, OBJECT_LABEL

_SIDE = 160
"""Pixels of the shorter side of a thumbnail, at most."""
_BOXES = 60
"""Boxes drawn on an image."""
_CORNERS = 2000
"""Corners of polygons drawn on an image."""
_CLASSES = 6
"""Classes of objects named below an image."""
_POINTS = 400
"""Keypoints drawn on an image."""
_FEATURES = 60
"""Features shown of a record."""


POLYGONS = tuple(f"image/object/polygon/{name}" for name in ("x", "y", "points"))
"""Corners of all polygons of a record, and the number of corners of each."""


class PagePlace(NamedTuple):
    """The place of a record in a target."""

    shard: str
    """The shard's name, as in locations."""
    record: int
    """Number in its shard, from 0."""


class PageBox(NamedTuple):
    """A box on an image, in fractions of its sides, clipped to it."""

    left: float
    top: float
    width: float
    height: float
    label: str
    """Class of the object, escaped; empty if it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageImage:
    """The thumbnail of an image."""

    format: str
    """``jpeg`` or ``png``."""
    data: bytes = field(repr=False)
    width: int
    """Pixels of the image itself, not of the thumbnail."""
    height: int
    boxes: tuple[PageBox, ...] = ()
    more_boxes: int = 0
    """Boxes that are not drawn."""
    points: tuple[tuple[float, float], ...] = ()
    """Visible keypoints, in fractions of the sides."""
    polygons: tuple[tuple[tuple[float, float], ...], ...] = ()
    """Outlines of masks, in fractions of the sides."""
    strips: tuple[PageStrip, ...] = ()
    """Masks that are not polygons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRecord:
    """One record. Every string is escaped for terminals, not for HTML."""

    split: str
    shard: str
    record: int
    offset: int | None
    length: int | None
    key: str | None
    label: str
    """Its class, or the classes of its objects; empty without any."""
    features: tuple[ShownFeature, ...]
    more_features: int
    image: PageImage | None
    problem: str
    """Why it, or its image, cannot be shown; empty if it can."""


def read_records(target: Target, places: Iterable[PagePlace]) -> dict[PagePlace, PageRecord]:
    """Records by place, damaged ones among them, which say why. One shard is open at a time."""
    wanted: dict[str, list[int]] = {}
    decoders = target_decoders(target)
    for place in sorted(set(places)):
        wanted.setdefault(place.shard, []).append(place.record)
    found: dict[PagePlace, PageRecord] = {}
    for shard in target.shards:
        numbers = wanted.get(shard.name)
        if numbers:
            found.update(_read_shard(shard, numbers, target.labels, decoders))
    return found


def _read_shard(
    shard: Shard, numbers: Sequence[int], labels: Mapping[str, Sequence[str]], decoders: Decoders
) -> dict[PagePlace, PageRecord]:
    index = index_of(shard)
    found: dict[PagePlace, PageRecord] = {}
    try:
        records = Records(shard.path, storage=shard.storage, name=shard.name)
    except TfrecregError as error:
        return {
            PagePlace(shard.name, number): _unread(shard, number, error.message)
            for number in numbers
        }
    with records:
        for number in numbers:
            if not 0 <= number < len(records):
                continue
            offset, length = int(records.offsets[number]), int(records.lengths[number])
            key = index.key(number) if index is not None and number < len(index) else None
            place = PagePlace(shard.name, number)
            try:
                payload = records[number] if length <= HOLD_LIMIT else None
                damage = ""
            except TfrecregError as error:
                payload = _as_it_is(shard, offset, length)
                damage = error.message
                if payload is None:
                    found[place] = _unread(shard, number, damage, offset=offset, key=key)
                    continue
                damage = f"{damage}; this is what its bytes show"
            shown = shown_record(shard, index, (number, offset, length), payload, decoders)
            example = decode_or_none(payload) if payload is not None else None
            image, problem, label = None, "", ""
            if example is not None:
                image, problem = _thumbnail(shown.images, example, labels)
                label = _label_of(example, labels)
            features = shown.features or ()
            found[place] = PageRecord(
                split=safe(shard.split),
                shard=shown.shard,
                record=number,
                offset=offset,
                length=length,
                key=shown.key,
                label=label,
                features=features[:_FEATURES],
                more_features=max(len(features) - _FEATURES, 0),
                image=image,
                problem=_joined(damage, problem, "" if shown.features else shown.start),
            )
    return found


def _as_it_is(shard: Shard, offset: int, length: int) -> bytes | None:
    """The payload of a damaged record, if the file is plain and the payload an Example."""
    if not 0 < length <= HOLD_LIMIT:
        return None
    try:
        with shard.storage.open(shard.path) as file:
            header = file.read_at(offset, HEADER_BYTES)
            payload = file.read_at(offset + HEADER_BYTES, length)
    except StorageError:
        return None
    # In gzip, other bytes are at that offset.
    is_there = int.from_bytes(header[:8], "little") == length == len(payload)
    return payload if is_there and decode_or_none(payload) is not None else None


def _joined(*problems: str) -> str:
    return "; ".join(filter(None, problems))


def _unread(
    shard: Shard, number: int, reason: str, *, offset: int | None = None, key: str | None = None
) -> PageRecord:
    return PageRecord(
        split=safe(shard.split),
        shard=safe(shard.name),
        record=number,
        offset=offset,
        length=None,
        key=safe(key) if key is not None else None,
        label="",
        features=(),
        more_features=0,
        image=None,
        problem=reason,
    )


def _label_of(example: Example, labels: Mapping[str, Sequence[str]]) -> str:
    for name in dict.fromkeys((IMAGE_LABEL, *sorted(labels))):
        feature = example.get(name)
        if feature is not None and feature.kind is Kind.INT64 and feature.count == 1:
            return name_of_class(name, int(feature.values[0]), labels, example)
    counts = Counter(box.label for box in _boxes(example, labels) if box.label)
    named = [f"{name} × {number}" if number > 1 else name for name, number in counts.most_common()]
    more = [f"{len(named) - _CLASSES} more"] if len(named) > _CLASSES else []
    return ", ".join(named[:_CLASSES] + more)


def name_of_class(
    feature: str, number: int, labels: Mapping[str, Sequence[str]], example: Example | None = None
) -> str:
    """The name of a class, escaped; its number if it has none.

    Args:
        labels: class names in order of their numbers, by feature.
        example: may have the name of its class, where `labels` do not.
    """
    names = labels.get(feature, ())
    if 0 <= number < len(names) and names[number]:
        return safe(names[number], limit=60)
    text = example.get(feature.replace("class/label", "class/text")) if example else None
    if text is not None and text.kind is Kind.BYTES and text.count == 1:
        return safe_value(text.values[0])
    return str(number)


def _thumbnail(
    images: Sequence[ShownImage], example: Example, labels: Mapping[str, Sequence[str]]
) -> tuple[PageImage | None, str]:
    """The thumbnail of the first image of a record with a header, or the reason for its absence."""
    image = next((each for each in images if each.header is not None), None)
    if image is None or image.header is None:
        return None, ""
    header = image.header
    try:
        made = image.decoder.thumbnail(image.data, _SIDE)
    except ValueError as error:
        return None, f"the image does not decode: {error}"
    except TfrecregError as error:
        return None, f"{error.message}: {error.hint}"
    if made is None:
        return None, ""
    boxes = _boxes(example, labels)
    page_image = PageImage(
        format=made.format,
        data=made.data,
        width=header.width,
        height=header.height,
        boxes=tuple(boxes[:_BOXES]),
        more_boxes=max(len(boxes) - _BOXES, 0),
        points=_points(example),
        polygons=_polygons(example),
        strips=strips_of(example),
    )
    return page_image, ""


def _floats(example: Example, name: str) -> Sequence[float] | None:
    feature = example.get(name)
    return feature.values if feature is not None and feature.kind is Kind.FLOAT else None


def _boxes(example: Example, labels: Mapping[str, Sequence[str]]) -> list[PageBox]:
    sides = [_floats(example, name) for name in BOX]
    if any(side is None for side in sides) or len({len(side or ()) for side in sides}) != 1:
        return []
    numbers = example.get(OBJECT_LABEL)
    texts = example.get("image/object/class/text")
    found = []
    for at, (xmin, xmax, ymin, ymax) in enumerate(
        zip(*(side or () for side in sides), strict=True)
    ):
        label = ""
        if texts is not None and texts.kind is Kind.BYTES and at < texts.count:
            label = safe_value(texts.values[at])
        elif numbers is not None and numbers.kind is Kind.INT64 and at < numbers.count:
            label = name_of_class(OBJECT_LABEL, int(numbers.values[at]), labels)
        left, right, top, bottom = (_clipped(each) for each in (xmin, xmax, ymin, ymax))
        found.append(PageBox(left, top, max(right - left, 0), max(bottom - top, 0), label))
    return found


def _points(example: Example) -> tuple[tuple[float, float], ...]:
    x, y = (_floats(example, name) for name in KEYPOINTS[:2])
    if x is None or y is None:
        return ()
    seen = example.get(KEYPOINTS[2])
    visible = seen.values if seen is not None and seen.kind is Kind.INT64 else (1,) * len(x)
    rows = zip(x, y, visible, strict=False)
    points = [(_clipped(left), _clipped(top)) for left, top, how in rows if how]
    return tuple(points[:_POINTS])


def _polygons(example: Example) -> tuple[tuple[tuple[float, float], ...], ...]:
    """The outlines that the source `coco` writes: the corners of all polygons in one list."""
    x, y = (_floats(example, name) for name in POLYGONS[:2])
    counts = example.get(POLYGONS[2])
    if x is None or y is None or counts is None or counts.kind is not Kind.INT64:
        return ()
    corners = [(_clipped(left), _clipped(top)) for left, top in zip(x, y, strict=False)]
    found, start = [], 0
    for count in counts.values:
        end = start + count
        if count < 0 or end > min(len(corners), _CORNERS):
            break
        found.append(tuple(corners[start:end]))
        start = end
    return tuple(found)


def _clipped(share: float) -> float:
    return min(max(share, 0.0), 1.0) if math.isfinite(share) else 0.0
