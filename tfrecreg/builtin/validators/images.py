"""The `images` validator: compares encoded images with what their records declare about them.

It also finds images whose size differs strongly from that of the other images.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from itertools import accumulate
from typing import Annotated, Any

from msgspec import Meta

from tfrecreg.core.build.sources.object_source import has_places
from tfrecreg.core.check.scan.interface import Shard, Target, Validator, Visitor
from tfrecreg.core.check.scan.tally import JsonCodec, Tally, TallyRow, add_up, key_from
from tfrecreg.core.example.model import Example
from tfrecreg.core.images.decoder import Undecodable, require_pillow, verify_pixels
from tfrecreg.core.images.model import ImageError, ImageHeader
from tfrecreg.core.images.read import is_truncated, read_header, why_undecodable
from tfrecreg.core.plugins.decoders import Decoders, decoders_of
from tfrecreg.core.records.batch import RecordBatch, StreamEnd
from tfrecreg.core.schema.image_features import (
    ENCODED,
    ImageFeatures,
    declared_columns,
    differences,
    schema_images,
)
from tfrecreg.core.schema.payload_kinds import Table, Tables, tables_of
from tfrecreg.core.values.codes import IMG004, IMG005, IMG006, IMG007, IMG008, IMG009, CodeList
from tfrecreg.core.values.config import read_limits
from tfrecreg.core.values.findings import MAX_LOCATIONS, Code, Finding, Measure
from tfrecreg.core.values.text import safe

_LEAST = 100
"""With fewer images, no size counts as unusual."""
_SHARE = 100
"""Unusual sizes are reported only if at most 1 / `_SHARE` of the images have such a size."""
_APART = 6
"""A size is unusual if it differs from the median size by more than `_APART` powers of two."""


def unusual_sizes(sizes: Tally, dataset: str) -> Iterator[Finding]:
    """Findings about images far larger or smaller than the median, if such images are rare.

    The subject of a row in `sizes` is a number of pixels, rounded to a power of two, so memory is
    bounded.
    """
    tally = Tally()
    by_feature: dict[str, dict[int, TallyRow]] = {}
    for row in sizes.rows():
        by_feature.setdefault(row.group.feature, {})[int(row.group.subject)] = row
    for feature, found in sorted(by_feature.items()):
        sums = list(accumulate(found[size].times for size in sorted(found)))
        total = sums[-1]
        median = sorted(found)[next(at for at, upto in enumerate(sums) if 2 * upto >= total)]
        rare = [size for size in sorted(found) if abs(size - median) > _APART]
        if total < _LEAST or sum(found[size].times for size in rare) * _SHARE > total:
            continue
        for size in rare:
            subject, limit = "small", f"at least 1/{1 << _APART} of"
            if size > median:
                subject, limit = "large", f"at most {1 << _APART} times"
            message = f"`{safe(feature)}` should have {limit} the pixels of the median image"
            row = found[size]
            tally.add_places(
                IMG008, message, row.locations, row.times, feature=feature, subject=subject
            )
    return tally.findings(dataset)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagesOptions:
    """Options in `limits.images` of a gate. By default, only headers are read."""

    feature: Annotated[str, Meta(min_length=1)] | None = None
    """The feature that holds images, if neither its name nor the schema says so."""
    decode: bool = False
    """Whether to decode every image. Needs the extra `images`."""
    max_pixels: Annotated[int, Meta(ge=1)] = 1 << 28
    """Maximum number of pixels of an image."""


@dataclass(slots=True)
class ImagesPart:
    """The result for one shard, or for all shards after merging."""

    tally: Tally = field(default_factory=Tally)
    formats: dict[str, int] = field(default_factory=dict)
    """Number of images by format."""
    unreadable: int = 0
    """Number of images without a readable header."""
    decoded: int = 0
    """Number of images that were decoded without an error."""
    sizes: Tally = field(default_factory=Tally)
    """Images by feature and size: see :func:`unusual_sizes`."""


class ImagesVisitor(Visitor):
    """Checks the images of one shard."""

    def __init__(
        self, options: ImagesOptions, images: Sequence[str], decoders: Decoders, shard: Shard
    ) -> None:
        self._options = options
        self._features = ImageFeatures(tuple(images))
        self._decoders = decoders
        self._shard = shard
        self._part = ImagesPart()
        self._sizes: Counter[tuple[str, int]] = Counter()
        self._add = partial(self._part.tally.add_record, shard)

    def batch(self, batch: RecordBatch) -> None:
        if not batch.whole:
            return
        tables = tables_of(batch)
        for table in tables.tables:
            names = self._features.of(table.sample)
            if len(names) == 1 and not self._options.decode:
                positions = self._look_at_table(batch, tables, table, names[0])
            else:
                positions = table.positions.tolist() if names else []
            for position in positions:
                self._look_at(batch, position, batch.example(position))
        for position, example in tables.examples():
            self._look_at(batch, position, example)

    def _look_at_table(
        self, batch: RecordBatch, tables: Tables, table: Table, name: str
    ) -> Iterator[int]:
        """Check the images of records of one layout. Yield positions that have findings."""
        says = declared_columns(tables, table, name)
        rows = zip(table.positions.tolist(), tables.values(table, name), says, strict=True)
        most = self._options.max_pixels
        has_boxes = has_places(table.sample)
        for position, data, declared in rows:
            try:
                header = read_header(data)
            except ImageError:
                yield position
                continue
            pixels = header.height * header.width
            if (
                is_truncated(data)
                or pixels > most
                or not declared.fits(header)
                or (has_boxes and header.orientation != 1)
                or why_undecodable(data, header)
            ):
                yield position
            else:
                self._count(batch, position, name, header)

    def _count(self, batch: RecordBatch, position: int, name: str, header: ImageHeader) -> None:
        """Count an image by format and size. Locations are kept only for the first images of each
        size.
        """
        formats = self._part.formats
        formats[header.format] = formats.get(header.format, 0) + 1
        size = name, (header.height * header.width).bit_length()
        self._sizes[size] += 1
        if self._sizes[size] <= MAX_LOCATIONS:
            detail = f"{header.width} × {header.height} pixels"
            place = self._shard.locate(batch, position, feature=name, detail=detail)
            self._part.sizes.add(IMG008, "", place, feature=name, subject=str(size[1]))

    def _look_at(self, batch: RecordBatch, position: int, example: Example | None) -> None:
        """Check the images of one record."""
        if example is None:
            return
        for name in self._features.of(example):
            values = example[name].values
            for data in values:
                self._look(batch, position, example, name, data, alone=len(values) == 1)

    def close(self, end: StreamEnd) -> ImagesPart:
        del end
        for (name, size), count in self._sizes.items():
            if count > MAX_LOCATIONS:
                more = count - MAX_LOCATIONS
                self._part.sizes.add(IMG008, "", None, feature=name, subject=str(size), count=more)
        return self._part

    def _look(
        self,
        batch: RecordBatch,
        position: int,
        example: Example,
        name: str,
        data: bytes,
        *,
        alone: bool,
    ) -> None:
        part, shown = self._part, f"`{safe(name)}`"
        decoder = None
        try:
            try:
                header = read_header(data)
            except ImageError:
                decoder = self._decoders.find_third_party(name, data)
                if decoder is None:
                    raise
                found = decoder.header(data)
                if found is None:
                    return  # not an image, so the record declares nothing about it
                header = found
        except ValueError as error:
            part.unreadable += 1
            message = f"{shown} should be an image with a readable header"
            self._add(batch, position, IMG004, name, message, str(error))
            return
        self._count(batch, position, name, header)
        for each in differences(example, name, data, header) if alone else ():
            self._add(batch, position, each.code, each.feature, each.message, each.detail)
        reason = why_undecodable(data, header) if decoder is None else None
        if reason is not None:
            message = f"{shown} should be an image that TensorFlow decodes correctly"
            self._add(batch, position, IMG007, name, message, reason)
        if header.orientation != 1 and has_places(example):
            message = (
                f"{shown} has boxes, keypoints or masks, so it should have no EXIF orientation"
            )
            sides = f"{header.shown[0]} × {header.shown[1]} pixels"
            detail = f"orientation {header.orientation}: viewers rotate it to {sides}"
            self._add(batch, position, IMG009, name, message, detail)
        if decoder is None and is_truncated(data):
            message = f"{shown} should be a whole image"
            detail = f"the {header.format.upper()} is cut off after {len(data)} bytes"
            self._add(batch, position, IMG004, name, message, detail)
        pixels = header.height * header.width
        if pixels > self._options.max_pixels:
            message = f"{shown} should have at most {self._options.max_pixels} pixels"
            detail = f"{len(data)} bytes decode to {header.width} × {header.height} pixels"
            self._add(batch, position, IMG006, name, message, detail)
        elif self._options.decode:
            code, limits = IMG005, "to its last pixel"
            try:
                if decoder is None:
                    verify_pixels(data, header)
                else:
                    decoder.array(data)
                part.decoded += 1
                return
            except Undecodable as error:
                detail = error.detail
                if error.costly:
                    code, limits = IMG006, "within the limits of memory and time"
            except ValueError as error:
                detail = str(error)
            self._add(batch, position, code, name, f"{shown} should decode {limits}", detail)


class ImagesValidator(Validator):
    """Compares images with what records declare. :class:`ImagesOptions` has its options."""

    name = "images"
    Options = ImagesOptions
    feature_option = "feature"
    codes: Sequence[Code] = CodeList("IMG*")
    part_codec = JsonCodec(ImagesPart, codes)

    def applies(self, target: Target) -> str | None:
        manifest = target.manifest
        if manifest is None or {ENCODED, *schema_images(target)} & manifest.features.keys():
            return None
        return f"no feature holds images: neither `{ENCODED}` nor one with an `image_domain`"

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], ImagesVisitor]:
        found = read_limits(ImagesOptions, options, self.name)
        if found.decode:
            require_pillow("`decode` of the validator `images`")
        return partial(ImagesVisitor, found, _features(target, found), decoders_of(target.home))

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str:
        found = read_limits(ImagesOptions, options, self.name)
        decoder = version("pillow") if found.decode else None
        others = decoders_of(target.home).third_party_names()
        return key_from(decoder, *_features(target, found), *others, options=options)

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, ImagesPart]]
    ) -> Iterator[Finding | Measure]:
        total = ImagesPart()
        for _, part in parts:
            add_up(total, part)
        formats = dict(sorted(total.formats.items()))
        text = ", ".join(f"{count} {name.upper()}" for name, count in formats.items())
        yield Measure("images.formats", formats, text or "no images")
        if total.unreadable:
            yield Measure("images.unreadable", total.unreadable, f"{total.unreadable} unreadable")
        if total.decoded:
            yield Measure("images.decoded", total.decoded, f"{total.decoded} decoded")
        yield from total.tally.findings(target.dataset)
        yield from unusual_sizes(total.sizes, target.dataset)


def _features(target: Target, options: ImagesOptions) -> tuple[str, ...]:
    return (options.feature,) if options.feature is not None else schema_images(target)
