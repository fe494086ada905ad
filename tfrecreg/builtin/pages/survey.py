"""Surveys the records during a check. A page shows the survey.

A hash of a record's checksum decides whether the record is picked. So a version always has the same
sample, whatever the shards and the number of workers.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tfrecreg.core.check.scan.interface import Part, Shard, Target, Validator, Visitor
from tfrecreg.core.example.model import Example, Kind
from tfrecreg.core.images.drawing import text_of
from tfrecreg.core.plugins.decoders import Decoders, decoders_of
from tfrecreg.core.records.batch import RecordBatch, StreamEnd
from tfrecreg.core.schema.image_features import ImageFeatures, neighbours, schema_images
from tfrecreg.core.schema.labels import BOX, IMAGE_LABEL, OBJECT_LABEL
from tfrecreg.core.schema.payload_kinds import Table, Tables, holds_integers, tables_of
from tfrecreg.core.values.findings import Finding, Measure

_Ints = npt.NDArray[np.int64]
_Hashes = npt.NDArray[np.uint64]

_PER_CLASS = 8
"""Number of records kept per class of a split."""
_OF_NO_CLASS = 48
"""Number of records of any class that are kept per split."""
_CLASSES = 2000
"""Maximum number of classes per split for which records are kept."""
_COUNTED = 20_000
"""Maximum number of distinct classes or image sizes that are counted."""
_EXTREMES = 6
"""Number of records that are kept for each of :data:`EXTREMES`."""
_BINS = 20
"""Number of bins for the areas of boxes relative to the image. Three bins cover a factor of 10."""
_ANY = np.uint64(2**64 - 1)
_MIX = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio. Multiplying by it spreads hashes (Knuth, TAOCP 3, 6.4)."""

EXTREMES: Mapping[str, str] = {
    "largest": "largest",
    "smallest": "smallest",
    "widest": "widest",
    "tallest": "tallest",
    "objects": "most objects",
}
"""The displayed words for each extreme."""


class Pick(NamedTuple):
    """A record to show."""

    order: int
    """A hash, or a value that is low for extreme records. Records with the lowest values are
    kept.
    """
    shard: str
    """The shard's name, as in locations."""
    record: int
    """Number in its shard, from 0."""


@dataclass(slots=True)
class Survey:
    """The result of one shard, or of the shards of a split."""

    records: int = 0
    classes: dict[str, Counter[int]] = field(default_factory=dict)
    """For each feature with class numbers, the number of values of each class."""
    names: dict[str, dict[int, bytes]] = field(default_factory=dict)
    """For each feature with class numbers, the class names by number, as found in the records."""
    unnamed: set[str] = field(default_factory=set)
    """Features in which some class number has no name, or has several names."""
    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Number of images per width and height in pixels."""
    objects: Counter[int] = field(default_factory=Counter)
    """Number of records, by the number of objects in a record."""
    areas: list[int] = field(default_factory=lambda: [0] * _BINS)
    """Number of boxes in each bin. The bins divide the relative areas of boxes logarithmically."""
    samples: dict[int | None, list[Pick]] = field(default_factory=dict)
    """The kept records of each class. The key None holds records of any class."""
    extremes: dict[str, list[Pick]] = field(default_factory=dict)

    def merge(self, other: Survey) -> Survey:
        """Add the next shard of the same split."""
        self.records += other.records
        for name, counts in other.classes.items():
            add_counts(self.classes.setdefault(name, Counter()), counts)
        for name, pairs in other.names.items():
            self.name_classes(name, pairs.items())
        self.unnamed |= other.unnamed
        add_counts(self.sizes, other.sizes)
        self.objects.update(other.objects)
        self.areas = [mine + more for mine, more in zip(self.areas, other.areas, strict=True)]
        for number, picks in other.samples.items():
            self.keep(number, picks)
        for name, picks in other.extremes.items():
            self.keep_extreme(name, picks)
        return self

    def name_classes(self, feature: str, pairs: Iterable[tuple[int, bytes]]) -> None:
        """Keep the names of classes."""
        names = self.names.setdefault(feature, {})
        for number, name in pairs:
            if not 0 <= number < _CLASSES or names.setdefault(number, name) != name:
                self.unnamed.add(feature)

    def keep(self, number: int | None, picks: Iterable[Pick]) -> None:
        """For a class, keep the picks with the lowest `order`."""
        if number not in self.samples and number is not None and len(self.samples) > _CLASSES:
            return
        most = _OF_NO_CLASS if number is None else _PER_CLASS
        _keep(self.samples.setdefault(number, []), picks, most)

    def keep_extreme(self, name: str, picks: Iterable[Pick]) -> None:
        """For an extreme, keep the picks with the lowest `order`."""
        _keep(self.extremes.setdefault(name, []), picks, _EXTREMES)

    def class_names(self) -> dict[str, tuple[str, ...]]:
        """The class names by number, for each feature in which every number has exactly one
        name.
        """
        return {
            feature: tuple(
                names.get(number, b"").decode("utf-8", "surrogateescape")
                for number in range(max(names) + 1)
            )
            for feature, names in self.names.items()
            if feature not in self.unnamed
        }


def add_counts(counts: Counter[Any], more: Mapping[Any, int]) -> None:
    """Add the counts of `more`. Once `counts` has :data:`_COUNTED` keys, new keys are ignored."""
    for value, number in more.items():
        if value in counts or len(counts) < _COUNTED:
            counts[value] += number


def merged(surveys: Iterable[Survey]) -> Survey:
    """The survey of several splits together."""
    whole = Survey()
    for each in surveys:
        whole.merge(each)
    return whole


def _keep(kept: list[Pick], picks: Iterable[Pick], most: int) -> None:
    for pick in picks:
        if len(kept) < most:
            insort(kept, pick)
        elif pick < kept[-1]:
            kept.pop()
            insort(kept, pick)


class SurveyVisitor(Visitor):
    """Surveys the records of one shard."""

    def __init__(
        self, images: tuple[str, ...], labels: tuple[str, ...], decoders: Decoders, shard: Shard
    ) -> None:
        self._images = ImageFeatures(images)
        self._labels = labels
        self._decoders = decoders
        self._shard = shard.name
        self._survey = Survey()
        self._bars: _Hashes = np.full(_CLASSES, _ANY)
        """For each class, the hash below which records are kept. Most batches have none."""

    def batch(self, batch: RecordBatch) -> None:
        self._survey.records += len(batch)
        if not batch.whole:
            return
        # A hash of each record: from the verified checksum behind its payload.
        memory = np.frombuffer(batch.memory, np.uint8)
        ends = np.asarray(batch.starts, np.int64) + np.asarray(batch.lengths, np.int64)
        checksums = memory[ends[:, np.newaxis] + np.arange(4)].copy().view("<u4")[:, 0]
        order: _Hashes = (checksums.astype(np.uint64) * _MIX) >> np.uint64(1)
        numbers = batch.first + np.arange(len(batch))
        pool = self._survey.samples.get(None, [])
        self._survey.keep(None, self._lower(pool, order, numbers, _OF_NO_CLASS))
        tables = tables_of(batch)
        for table in tables.tables:
            hashes = order[table.positions]
            self._look_at_table(tables, table, hashes, numbers[table.positions])
        for position, example in tables.examples():
            if example is not None:
                self._look_at(example, int(order[position]), int(numbers[position]))

    def close(self, end: StreamEnd) -> Survey:
        del end
        return self._survey

    def _lower(
        self, kept: list[Pick], order: npt.NDArray[Any], numbers: _Ints, most: int
    ) -> list[Pick]:
        """The records that may replace a record in `kept`. Usually there are none."""
        if len(kept) == most:
            rows = np.flatnonzero(order < kept[-1].order)
            if not rows.size:
                return []
            order, numbers = order[rows], numbers[rows]
        chosen = np.argsort(order, kind="stable")[:most]
        return [Pick(int(order[each]), self._shard, int(numbers[each])) for each in chosen]

    def _look_at_table(self, tables: Tables, table: Table, order: _Hashes, numbers: _Ints) -> None:
        for label in self._labels:
            if holds_integers(table, label):
                values = table.columns[label][1].integers
                self._count_table(label, values, order, numbers)
                text = text_of(label)
                if text in table.columns and table.columns[text][0].kind is Kind.BYTES:
                    named = zip(values.tolist(), tables.values(table, text), strict=True)
                    self._survey.name_classes(label, set(named))
                else:
                    self._survey.unnamed.add(label)
        if all(name in table.columns and table.columns[name][0].kind is Kind.FLOAT for name in BOX):
            sides = (b"".join(tables.values(table, name)) for name in BOX)
            rows = (np.frombuffer(side, "<f4").reshape(len(numbers), -1) for side in sides)
            self._count_boxes([*rows], numbers)
        names = self._images.of(table.sample)
        if not names:
            return
        width, height = _sides_of_table(tables, table, names[0], self._decoders)
        pairs, counts = np.unique(np.stack([width, height]), axis=1, return_counts=True)
        sizes = {
            (int(wide), int(high)): int(count)
            for wide, high, count in zip(pairs[0], pairs[1], counts, strict=True)
            if wide > 0
        }
        add_counts(self._survey.sizes, sizes)
        for name, value in _extremes(width, height).items():
            kept = self._survey.extremes.get(name, [])
            self._survey.keep_extreme(name, self._lower(kept, value, numbers, _EXTREMES))

    def _count_table(self, label: str, values: _Ints, order: _Hashes, numbers: _Ints) -> None:
        found, counts = np.unique(values, return_counts=True)
        more = dict(zip(found.tolist(), counts.tolist(), strict=True))
        add_counts(self._survey.classes.setdefault(label, Counter()), more)
        known = (values >= 0) & (values < _CLASSES)
        kept = ~known | (order < self._bars[np.where(known, values, 0)])
        for row in np.flatnonzero(kept).tolist():
            number = int(values[row])
            pick = Pick(int(order[row]), self._shard, int(numbers[row]))
            self._survey.keep(number, (pick,))
            picks = self._survey.samples.get(number, [])
            if 0 <= number < _CLASSES and len(picks) == _PER_CLASS:
                self._bars[number] = picks[-1].order

    def _look_at(self, example: Example, order: int, number: int) -> None:
        survey, pick = self._survey, Pick(order, self._shard, number)
        for label in self._labels:
            feature = example.get(label)
            if feature is not None and feature.kind is Kind.INT64 and feature.count:
                values = [int(each) for each in feature.values]
                counts = Counter(values)
                add_counts(survey.classes.setdefault(label, Counter()), counts)
                text = example.get(text_of(label))
                if text is not None and text.kind is Kind.BYTES and text.count == len(values):
                    survey.name_classes(label, zip(values, text.values, strict=True))
                else:
                    survey.unnamed.add(label)
                for each in counts:
                    survey.keep(each, (pick,))
        self._look_at_boxes(example, pick)
        names = self._images.of(example)
        if names:
            header = self._decoders.header(names[0], example[names[0]].values[0])
            if header is None:
                return
            add_counts(survey.sizes, {(header.width, header.height): 1})
            sides = np.array([header.width]), np.array([header.height])
            for name, value in _extremes(*sides).items():
                survey.keep_extreme(name, (pick._replace(order=int(value[0])),))

    def _look_at_boxes(self, example: Example, pick: Pick) -> None:
        sides = [example.get(name) for name in BOX]
        if all(side is not None and side.kind is Kind.FLOAT for side in sides):
            rows = [np.array([side.values]) for side in sides if side is not None]
            self._count_boxes(rows, np.array([pick.record]))

    def _count_boxes(self, sides: Sequence[npt.NDArray[Any]], numbers: _Ints) -> None:
        """Count the boxes of records. For each of :data:`BOX`, `sides` has one row per record."""
        if len({side.shape for side in sides}) > 1:
            return
        xmin, xmax, ymin, ymax = (side.astype(np.float64) for side in sides)
        count = xmin.shape[1]
        self._survey.objects[count] += len(numbers)
        first = (Pick(-count, self._shard, int(number)) for number in numbers[:_EXTREMES])
        self._survey.keep_extreme("objects", first)
        with np.errstate(all="ignore"):
            area = (xmax - xmin) * (ymax - ymin)
            bins = np.floor(np.log10(area[area > 0]) * 3) + _BINS
        for each in np.clip(bins, 0, _BINS - 1).astype(np.int64).tolist():
            self._survey.areas[each] += 1


def _sides_of_table(
    tables: Tables, table: Table, image: str, decoders: Decoders
) -> tuple[_Ints, _Ints]:
    """The width and height of each image of a table; 0 if unknown.

    Uses the sides that the records declare, if there are any, because the validator `images`
    compares them with the headers.
    """
    named = {
        side: next((each for each in neighbours(image, side) if holds_integers(table, each)), None)
        for side in ("width", "height")
    }
    if named["width"] is not None and named["height"] is not None:
        columns = (table.columns[name][1].integers for name in named.values() if name is not None)
        width, height = columns
        return width, height
    sides = np.zeros((2, len(table.positions)), np.int64)
    for row, data in enumerate(tables.values(table, image)):
        header = decoders.header(image, data)
        if header is not None:
            sides[:, row] = header.width, header.height
    return sides[0], sides[1]


def _extremes(width: _Ints, height: _Ints) -> dict[str, _Ints]:
    """For each extreme, one value per image. The most extreme image has the lowest value."""
    known = (width > 0) & (height > 0)
    area = np.where(known, width * height, 0)
    beyond = np.iinfo(np.int64).max
    wide = np.where(known, (1000 * width) // np.maximum(height, 1), 0)
    tall = np.where(known, (1000 * height) // np.maximum(width, 1), 0)
    return {
        "largest": -area,
        "smallest": np.where(known, area, beyond),
        "widest": -wide,
        "tallest": -tall,
    }


class SurveyValidator(Validator):
    """Makes the survey during a check. It reports no findings.

    After the check, `splits` contains the surveys.
    """

    name = "survey"
    codes = ()

    def __init__(self) -> None:
        self.splits: dict[str, Survey] = {}
        """Survey by split."""

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], SurveyVisitor]:
        del options
        labels = tuple(dict.fromkeys((IMAGE_LABEL, OBJECT_LABEL, *sorted(target.labels))))
        return partial(SurveyVisitor, schema_images(target), labels, decoders_of(target.home))

    def merge(self, part: Part, more: Part) -> Survey:
        merged: Survey = part.merge(more)
        return merged

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, Part]]
    ) -> Iterator[Finding | Measure]:
        del target
        self.splits = {shard.split: part for shard, part in parts}
        return iter(())
