"""The `annotations` validator: checks labels and objects, and the classes of whole splits.

Each visitor checks the labels and objects of one shard. The validator merges the counts of all
visitors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrecreg.core.check.scan.interface import Shard, Target, Validator, Visitor
from tfrecreg.core.check.scan.tally import JsonCodec, Problem, Tally, add_up, key_from
from tfrecreg.core.example.model import Example, Feature, Kind
from tfrecreg.core.records.batch import RecordBatch, StreamEnd
from tfrecreg.core.registry.foreign.labels import read_label_map
from tfrecreg.core.schema.labels import (
    BOX,
    IMAGE_LABEL,
    KEYPOINTS,
    OBJECT_LABEL,
    OF_OBJECTS,
    PER_OBJECT,
    AnnotationsOptions,
    ClassCounts,
    ClassNames,
    Labels,
    histogram,
    labels_of,
)
from tfrecreg.core.schema.payload_kinds import Table, Tables, holds_bytes, holds_integers, tables_of
from tfrecreg.core.values.codes import (
    ANN001,
    ANN002,
    ANN003,
    ANN004,
    ANN005,
    ANN006,
    ANN007,
    SCH006,
    SCH007,
)
from tfrecreg.core.values.config import read_limits
from tfrecreg.core.values.findings import Code, Finding, Location, Measure
from tfrecreg.core.values.shards import LabelMap, class_name, named_classes
from tfrecreg.core.values.text import safe, safe_value

_NEAR = 1e-6
"""Tolerance for box sides outside the image. It allows for rounding to float32."""


def look_at_objects(example: Example) -> tuple[int, list[Problem]] | None:
    """Check boxes and their parallel lists. Return the number of objects, which is the length of
    the first list, and the problems. Return None if the record has no such list.
    """
    sides = [example[name] for name in BOX if name in example]
    first = sides[0] if sides else example.get(OBJECT_LABEL)
    if first is None:
        return None
    problems = list(_ragged(example, first.count, boxes=bool(sides)))
    if not problems and sides:
        problems = list(_wrong_boxes(sides))
    return first.count, problems


def _ragged(example: Example, count: int, *, boxes: bool) -> Iterator[Problem]:
    """Find ANN001: lists that should have one value per object."""
    for name in BOX if boxes else ():
        found = example[name].count if name in example else 0
        if found != count:
            yield _uneven(name, count, found)
    for name in PER_OBJECT:
        feature = example.get(name)
        if feature is None:
            continue
        # An empty list counts as absent, but labels are required.
        if feature.count != count and (feature.count or (name == OBJECT_LABEL and boxes)):
            yield _uneven(name, count, feature.count)
    counts = {name: each.count for name in KEYPOINTS if (each := example.get(name)) and each.count}
    first = next(iter(counts.values()), 0)
    for name, found in counts.items():
        if found != first:
            yield _uneven(name, first, found)
        elif not count or found % count:
            message = f"`{name}` should have the same number of values for every object"
            yield Problem(ANN001, name, message, f"found {found} values for {count} objects")


def _uneven(name: str, expected: int, found: int) -> Problem:
    message = f"`{name}` should have as many values as the other lists of objects"
    return Problem(ANN001, name, message, f"expected {expected} values, found {found}")


def _wrong_boxes(sides: list[Feature]) -> Iterator[Problem]:
    """Find ANN002 and ANN003: boxes that leave the image, and boxes without area."""
    if any(side.kind not in (Kind.FLOAT, Kind.INT64) for side in sides):
        return  # the validator `schema` reports it
    columns = [side.values for side in sides]
    for number, (left, right, top, bottom) in enumerate(zip(*columns, strict=True)):
        if 0 <= left < right <= 1 and 0 <= top < bottom <= 1:
            continue
        box = f"object {number}: x {left:.6g} to {right:.6g}, y {top:.6g} to {bottom:.6g}"
        values = (left, right, top, bottom)
        if not all(math.isfinite(each) for each in values):
            yield Problem(ANN002, BOX[0], "the sides of a box should be finite", box)
            continue
        if min(values) < -_NEAR or max(values) > 1 + _NEAR:
            message = "a box should be in its image: sides from 0 to 1"
            yield Problem(ANN002, BOX[0], message, box)
        if right <= left or bottom <= top:
            message = "a box should have an area: `xmin` < `xmax` and `ymin` < `ymax`"
            yield Problem(ANN003, BOX[0], message, box)


@dataclass(slots=True)
class AnnotationsPart:
    """The result for one shard, or for all shards of a split after merging."""

    tally: Tally = field(default_factory=Tally)
    records: int = 0
    """Number of records with a label or objects."""
    objects: int = 0
    classes: dict[str, ClassCounts] = field(default_factory=dict)
    """Counts of classes, for each feature that holds class numbers."""
    names: dict[str, ClassNames] = field(default_factory=dict)
    """Class names in records, for each feature of class numbers that has no label map."""


class AnnotationsVisitor(Visitor):
    """Checks the records of one shard."""

    def __init__(
        self, labels: Sequence[Labels], maps: Mapping[str, LabelMap], shard: Shard
    ) -> None:
        self._labels = labels
        self._texts = {
            feature: {
                number: name.encode("utf-8", "surrogateescape") for number, name in each.items()
            }
            for feature, each in maps.items()
        }
        self._shard = shard
        self._part = AnnotationsPart()
        self._add = partial(self._part.tally.add_record, shard)

    def batch(self, batch: RecordBatch) -> None:
        if not batch.whole:
            return
        tables = tables_of(batch)
        for table in tables.tables:
            for position in self._look_at_table(tables, table):
                self._look_at(batch, position, batch.example(position))
        for position, example in tables.examples():
            self._look_at(batch, position, example)

    def _look_at_table(self, tables: Tables, table: Table) -> Sequence[int]:
        """Count the labels of the records of one layout. Return the positions of those records that
        were not counted and have to be checked one by one.
        """
        positions = table.positions
        if not OF_OBJECTS.isdisjoint(table.columns):
            return list(positions.tolist())
        labels = [each for each in self._labels if holds_integers(table, each.label)]
        fine = np.ones(len(positions), np.bool_)
        for each in labels:
            fine &= self._are_fine(tables, table, each)
        for each in labels:
            counts = self._part.classes.setdefault(each.label, ClassCounts())
            values = table.columns[each.label][1].integers[fine]
            for label, times in zip(*np.unique(values, return_counts=True), strict=True):
                counts.add(int(label), int(times))
        if labels:
            self._part.records += int(fine.sum())
        return list(positions[~fine].tolist())

    def _are_fine(self, tables: Tables, table: Table, labels: Labels) -> npt.NDArray[np.bool_]:
        """A mask that is True for records whose label is known and has the correct name."""
        values = table.columns[labels.label][1].integers
        text = labels.text
        known = self._texts.get(labels.label)
        if known is None:
            if text is None or not holds_bytes(table, text):
                return np.ones(len(values), np.bool_)
            names = self._part.names.setdefault(labels.label, ClassNames())
            rows = zip(values.tolist(), tables.values(table, text), strict=True)
            for value, name in dict.fromkeys(rows):
                names.add(value, name)
            return np.ones(len(values), np.bool_)
        if text is None or not holds_bytes(table, text):
            return np.isin(values, np.array(list(known), np.int64))
        rows = zip(values.tolist(), tables.values(table, text), strict=True)
        return np.array([known.get(value) == name for value, name in rows], np.bool_)

    def _look_at(self, batch: RecordBatch, position: int, example: Example | None) -> None:
        """Check one record."""
        if example is None:
            return
        objects = look_at_objects(example)
        if objects is not None:
            number, problems = objects
            self._part.objects += number
            for each in problems:
                self._add(batch, position, each.code, each.feature, each.message, each.detail)
        labelled = [self._look(batch, position, example, each) for each in self._labels]
        if objects is not None or any(labelled):
            self._part.records += 1

    def close(self, end: StreamEnd) -> AnnotationsPart:
        del end
        return self._part

    def _look(self, batch: RecordBatch, position: int, example: Example, labels: Labels) -> bool:
        """Check the class numbers of a record. Return whether it has any."""
        feature = example.get(labels.label)
        if feature is None or feature.kind is not Kind.INT64:
            return False
        values = feature.values
        counts = self._part.classes.setdefault(labels.label, ClassCounts())
        for value in values:
            counts.add(value)
        known = self._texts.get(labels.label)
        for value in [each for each in values if each not in known] if known is not None else ():
            message = f"`{safe(labels.label)}` should be in the label map"
            detail = f"found {value}, which has no name"
            self._add(batch, position, ANN004, labels.label, message, detail)
        text = example.get(labels.text) if labels.text is not None else None
        if text is None or text.kind is not Kind.BYTES or text.count != feature.count:
            return True
        if known is None:
            names = self._part.names.setdefault(labels.label, ClassNames())
            for value, name in zip(values, text.values, strict=True):
                names.add(value, name)
            return True
        for value, name in zip(values, text.values, strict=True):
            expected = known.get(value, name)
            if name != expected:
                name_of = labels.text or ""
                message = f"`{safe(name_of)}` should match the name in the label map"
                detail = f"{value} is `{safe_value(expected)}`, found `{safe_value(name)}`"
                self._add(batch, position, ANN007, name_of, message, detail)
        return True


_SIDES = (SCH006.code, SCH007.code)
"""Codes of the findings that may be about the sides of boxes."""
_USUAL = (OBJECT_LABEL, IMAGE_LABEL)


class AnnotationsValidator(Validator):
    """Checks labels and objects. :class:`AnnotationsOptions` has its options."""

    name = "annotations"
    Options = AnnotationsOptions
    feature_option = "label"
    codes: Sequence[Code] = (ANN001, ANN002, ANN003, ANN004, ANN005, ANN006, ANN007)
    part_codec = JsonCodec(AnnotationsPart, codes)

    def __init__(self) -> None:
        self._options = AnnotationsOptions()
        self._maps: dict[str, LabelMap] = {}

    def applies(self, target: Target) -> str | None:
        manifest = target.manifest
        if manifest is None or manifest.labels:
            return None
        if {*OF_OBJECTS, IMAGE_LABEL} & manifest.features.keys():
            return None
        return "there is no feature of labels or boxes"

    def begin(
        self, target: Target, options: Mapping[str, Any]
    ) -> Callable[[Shard], AnnotationsVisitor]:
        self._options = read_limits(AnnotationsOptions, options, self.name)
        labels, self._maps = _labels(target, self._options)
        return partial(AnnotationsVisitor, labels, self._maps)

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str:
        labels, maps = _labels(target, read_limits(AnnotationsOptions, options, self.name))
        return key_from(repr(labels), repr(maps))

    def explains(self, own: Sequence[Finding], others: Sequence[Finding]) -> Iterator[Finding]:
        """The findings about box sides, if a finding about whole boxes covers all their records."""
        boxes = [each for each in own if each.code == ANN002.code]
        for other in others:
            if other.code in _SIDES and any(_is_side_of(each, other) for each in boxes):
                yield other

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, AnnotationsPart]]
    ) -> Iterator[Finding | Measure]:
        splits: dict[str, AnnotationsPart] = {}
        total = AnnotationsPart()
        for shard, part in parts:
            add_up(splits.setdefault(shard.split, AnnotationsPart()), part)
            add_up(total, part)
        records = f"{total.records} records with annotations"
        yield Measure("annotations.records", total.records, records)
        if target.manifest is None and (notes := target.beside.found[1]):
            yield Measure("annotations.labels", len(target.labels), "; ".join(notes))
        yield Measure("annotations.objects", total.objects, f"{total.objects} objects")
        for feature, counts in sorted(total.classes.items()):
            names = self._maps.get(feature)
            if names is None:
                found = total.names.get(feature)
                names = found.as_map() if found is not None else {}
                for conflict in found.conflicts() if found is not None else ():
                    message = f"each number in `{safe(feature)}` should always have the same name"
                    place = Location(feature=feature, detail=conflict)
                    total.tally.add(ANN007, message, place, feature=feature)
            if counts.full:
                text = f"`{safe(feature)}` has too many different numbers to judge their balance"
                yield Measure(f"annotations.unjudged.{feature}", len(counts.counts), text)
                continue
            yield Measure(
                f"annotations.classes.{feature}",
                len(counts.counts),
                f"{len(counts.counts)} classes in `{safe(feature)}`",
            )
            if shares := histogram(counts.proper(), names):
                told = ", ".join(f"{safe(name)} {times}" for name, times in shares.items())
                yield Measure(f"annotations.histogram.{feature}", shares, told)
            in_split = {
                split: classes
                for split, part in splits.items()
                if feature in part.classes and (classes := part.classes[feature].proper())
            }
            ratios = {
                split: max(classes.values()) // min(classes.values())
                for split, classes in in_split.items()
            }
            text = ", ".join(f"{safe(split)} {ratio}" for split, ratio in ratios.items())
            told = f"ratio of the most frequent to the rarest class of `{safe(feature)}`: {text}"
            yield Measure(f"annotations.balance.{feature}", ratios, told)
            # A label map beside bare files may belong to a larger set.
            beside = target.manifest is None and self._options.label_map is None
            mapped = {} if beside else self._maps.get(feature, {})
            if mapped or feature not in target.beside.found[0] or feature in _USUAL:
                self._judge_missing(total.tally, feature, counts.proper(), in_split, names, mapped)
            self._judge_balance(total.tally, feature, in_split, names)
        yield from total.tally.findings(target.dataset)

    def _judge_missing(
        self,
        tally: Tally,
        feature: str,
        counts: Mapping[int, int],
        in_split: Mapping[str, Mapping[int, int]],
        names: LabelMap,
        label_map: LabelMap,
    ) -> None:
        """Find ANN005: classes that a split lacks."""
        mapped = label_map.keys()
        # Numbers that the label map lacks have their own findings.
        seen = counts.keys() & mapped if mapped else set(counts)
        if not seen:
            return

        def tell(numbers: Sequence[int], has: str, split: str) -> None:
            which = f"{len(numbers)} of the {len(mapped | seen)} classes of `{safe(feature)}`"
            for number in numbers:
                name = class_name(names, number)
                place = Location(split=split or None, feature=feature, detail=name)
                tally.add(ANN005, f"{has} {which}", place, split=split, feature=feature)

        tell(sorted(mapped - seen), "all splits lack", "")
        for split, own in in_split.items():
            shown = f"`{safe(split)}`" if split else "the split without a name"
            tell(sorted(seen - own.keys()), f"{shown} lacks", split)

    def _judge_balance(
        self, tally: Tally, feature: str, in_split: Mapping[str, Mapping[int, int]], names: LabelMap
    ) -> None:
        """Find ANN006: classes that are too rare compared with the most frequent class."""
        limit = self._options.imbalance
        for split, own in in_split.items() if limit is not None else ():
            ordered = sorted(own.items(), key=lambda item: (-item[1], item[0]))
            (most, often), (least, seldom) = ordered[0], ordered[-1]
            if limit is not None and often > limit * seldom:
                message = (
                    f"the most frequent class of `{safe(feature)}` should occur at most {limit:g} "
                    f"times as often as the rarest"
                )
                detail = (
                    f"{class_name(names, most)} {often} times, {class_name(names, least)} {seldom}"
                )
                place = Location(split=split or None, feature=feature, detail=detail)
                tally.add(ANN006, message, place, split=split, feature=feature)


def _labels(
    target: Target, options: AnnotationsOptions
) -> tuple[tuple[Labels, ...], dict[str, LabelMap]]:
    """The features that contain class numbers, and the label maps of these features."""
    labels = labels_of(options, target.labels)
    maps = {feature: named_classes(names) for feature, names in target.labels.items()}
    if options.label_map is not None:
        known = read_label_map(options.label_map)
        maps = {each.label: known for each in labels}
    return labels, {feature: names for feature, names in maps.items() if names}


def _is_side_of(box: Finding, other: Finding) -> bool:
    """Whether `other` is about box sides, and every record in `other` is also in `box`."""
    if other.count > box.count or not other.locations:
        return False
    records = {(place.shard, place.record) for place in box.locations}
    return all(
        place.feature in BOX and (place.shard, place.record) in records for place in other.locations
    )
