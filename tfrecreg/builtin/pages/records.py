"""Reads records for a page: their values, and a thumbnail of each image with its boxes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tfrecreg.builtin.look.head import ShownFeature, shown_record
from tfrecreg.core.check.scan.indexes import index_of
from tfrecreg.core.check.scan.interface import Shard, Target
from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.example.format_payload import ShownImage, ShownPart
from tfrecreg.core.example.model import Example
from tfrecreg.core.images.drawing import ClassMark, Drawing, drawing_of, marks_of
from tfrecreg.core.plugins.decoders import Decoders, target_decoders
from tfrecreg.core.records.framing import HEADER_BYTES
from tfrecreg.core.records.reader import HOLD_LIMIT
from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.values.errors import StorageError, TfrecregError
from tfrecreg.core.values.text import safe

PagePlace = tuple[str, int]
"""The place of a record in a target: the shard's name, as in locations, and the number in its
shard."""
_SIDE = 240
"""Maximum number of pixels of the shorter side of a thumbnail."""
_SMALL = 64
"""Images are enlarged if their longer side has at most this many pixels."""
_FEATURES = 60
"""Maximum number of features that are shown per record."""
_THUMBNAIL = 250_000
"""Maximum number of bytes of a thumbnail. Thumbnails of very long images may need more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageImage:
    """The thumbnail of an image."""

    format: str
    """``jpeg`` or ``png``."""
    data: bytes = field(repr=False)
    width: int
    """Width and height in pixels of the image itself, not of the thumbnail."""
    height: int
    drawing: Drawing = field(default_factory=Drawing)

    @property
    def is_small(self) -> bool:
        """Whether the thumbnail enlarges the image."""
        return max(self.width, self.height) <= _SMALL


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRecord:
    """One record. Every string is escaped for terminals, not for HTML."""

    split: str
    shard: str
    record: int
    offset: int | None = None
    length: int | None = None
    key: str | None = None
    marks: tuple[ClassMark, ...] = ()
    """Its class, or the classes of its objects, the most frequent first; may be empty."""
    features: tuple[ShownFeature | ShownPart, ...] = ()
    more_features: int = 0
    image: PageImage | None = None
    problem: str = ""
    """Why the record or its image cannot be shown; empty if there is no problem."""

    @property
    def label(self) -> str:
        """Its classes in words."""
        named = [f"{name} × {number}" if number > 1 else name for name, _, number in self.marks]
        return ", ".join(named)


def read_records(target: Target, places: Iterable[PagePlace]) -> dict[PagePlace, PageRecord]:
    """The records at the given places. `problem` describes a damaged record. One shard is open at a
    time.
    """
    wanted: dict[str, list[int]] = {}
    decoders = target_decoders(target)
    for name, record in sorted(set(places)):
        wanted.setdefault(name, []).append(record)
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
        split, name, why = safe(shard.split), safe(shard.name), error.message
        return {
            (shard.name, each): PageRecord(split=split, shard=name, record=each, problem=why)
            for each in numbers
        }
    with records:
        for number in numbers:
            if not 0 <= number < len(records):
                continue
            offset, length = int(records.offsets[number]), int(records.lengths[number])
            damage = ""
            try:
                payload = records[number] if length <= HOLD_LIMIT else None
            except TfrecregError as error:
                payload, damage = _as_it_is(shard, offset, length), error.message
                damage += "; its bytes are shown as they are" if payload is not None else ""
            shown = shown_record(shard, index, (number, offset, length), payload, decoders)
            example = shown.example
            image, problem = None, ""
            marks: tuple[ClassMark, ...] = ()
            if example is not None:
                image, problem = _thumbnail(shown.images, example, labels)
                marks = marks_of(example, labels)
            features = shown.features or shown.parts
            if not features and (payload is not None or not damage):
                problem = "; ".join(filter(None, (problem, shown.start)))
            found[shard.name, number] = PageRecord(
                split=safe(shard.split),
                shard=shown.shard,
                record=number,
                offset=offset,
                length=length if payload is not None or not damage else None,
                key=shown.key,
                marks=marks,
                features=features[:_FEATURES],
                more_features=max(len(features) - _FEATURES, 0),
                image=image,
                problem="; ".join(filter(None, (damage, problem))),
            )
    return found


def _as_it_is(shard: Shard, offset: int, length: int) -> bytes | None:
    """The payload of a damaged record. None if the file is compressed, or if the payload is no
    Example.
    """
    if not 0 < length <= HOLD_LIMIT:
        return None
    try:
        with shard.storage.open(shard.path) as file:
            header = file.read_at(offset, HEADER_BYTES)
            payload = file.read_at(offset + HEADER_BYTES, length)
    except StorageError:
        return None
    # In a gzip file, the offset counts in the decompressed stream.
    is_there = int.from_bytes(header[:8], "little") == length == len(payload)
    return payload if is_there and decode_or_none(payload) is not None else None


def _thumbnail(
    images: Sequence[ShownImage], example: Example, labels: Mapping[str, Sequence[str]]
) -> tuple[PageImage | None, str]:
    """The thumbnail of the first image with a readable header, or the reason why it is missing."""
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
    if len(made.data) > _THUMBNAIL:
        return None, f"the image, {header.width:,} × {header.height:,}, is too large for a page"
    page_image = PageImage(
        format=made.format,
        data=made.data,
        width=header.width,
        height=header.height,
        drawing=drawing_of(example, labels),
    )
    return page_image, ""
