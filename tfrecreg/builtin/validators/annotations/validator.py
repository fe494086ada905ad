"""The judgment of the classes of whole splits, and the findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tfrecreg.builtin.validators.annotations.visitor import AnnotationsPart, AnnotationsVisitor
from tfrecreg.core.check.scan.interface import Shard, Target, Validator
from tfrecreg.core.check.scan.tally import JsonCodec, Tally, key_from
from tfrecreg.core.registry.foreign.label_maps import read_label_map
from tfrecreg.core.schema.roles.class_labels import histogram
from tfrecreg.core.schema.roles.label_features import (
    BOX,
    IMAGE_LABEL,
    OBJECT_LABEL,
    AnnotationsOptions,
    Labels,
    known_features,
    labels_of,
)
from tfrecreg.core.values.codes import ANN002, ANN005, ANN006, ANN007, SCH006, SCH007, CodeList
from tfrecreg.core.values.config import read_limits
from tfrecreg.core.values.findings import Code, Finding, Location, Measure
from tfrecreg.core.values.label_maps import LabelMap, class_name, named_classes
from tfrecreg.core.values.text import safe

_SIDES = (SCH006.code, SCH007.code)
"""Codes of values, those of the sides of boxes among them."""
_USUAL = (OBJECT_LABEL, IMAGE_LABEL)


class AnnotationsValidator(Validator):
    """Checks labels and objects; options: :class:`AnnotationsOptions`."""

    name = "annotations"
    Options = AnnotationsOptions
    codes: Sequence[Code] = CodeList("ANN*")
    part_codec = JsonCodec(AnnotationsPart, codes)

    def __init__(self) -> None:
        self._options = AnnotationsOptions()
        self._maps: dict[str, LabelMap] = {}

    def applies(self, target: Target) -> str | None:
        manifest = target.manifest
        if manifest is None or manifest.labels:
            return None
        if known_features(labels_of(AnnotationsOptions(), ())) & manifest.features.keys():
            return None
        return "there is no feature of labels or boxes"

    def begin(
        self, target: Target, options: Mapping[str, Any]
    ) -> Callable[[Shard], AnnotationsVisitor]:
        """Read the options and the label maps."""
        self._options = read_limits(AnnotationsOptions, options, self.name)
        labels, self._maps = _labels(target, self._options)
        return partial(AnnotationsVisitor, labels, self._maps)

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str:
        labels, maps = _labels(target, read_limits(AnnotationsOptions, options, self.name))
        return key_from(repr(labels), repr(maps))

    def explains(self, own: Sequence[Finding], others: Sequence[Finding]) -> Iterator[Finding]:
        """Findings about sides of boxes, in records of a finding about whole boxes."""
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
            splits.setdefault(shard.split, AnnotationsPart()).merge(part)
            total.merge(part)
        records = f"{total.records} records with annotations"
        yield Measure("annotations.records", total.records, records)
        if target.manifest is None and (notes := target.beside.found[1]):
            yield Measure("annotations.labels", len(target.labels), "; ".join(notes))
        yield Measure("annotations.objects", total.objects, f"{total.objects} objects")
        for feature, counts in sorted(total.classes.items()):
            names = self._maps.get(feature)
            if names is None:
                names = total.names[feature].as_map() if feature in total.names else {}
                self._judge_names(total, feature)
            if counts.full:
                text = f"too many different numbers in `{safe(feature)}` to judge their balance"
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
            told = f"times as often the commonest class of `{safe(feature)}` as the rarest: {text}"
            yield Measure(f"annotations.balance.{feature}", ratios, told)
            # A label map beside bare files may be that of a larger set.
            beside = target.manifest is None and self._options.label_map is None
            mapped = {} if beside else self._maps.get(feature, {})
            if mapped or feature not in target.beside.found[0] or feature in _USUAL:
                self._judge_missing(total.tally, feature, counts.proper(), in_split, names, mapped)
            self._judge_balance(total.tally, feature, in_split, names)
        yield from total.tally.findings(target.dataset)

    def _judge_names(self, total: AnnotationsPart, feature: str) -> None:
        """Find ANN007 without a label map: records that contradict each other."""
        names = total.names.get(feature)
        for conflict in names.conflicts() if names is not None else ():
            message = f"`{safe(feature)}` and its names should agree from record to record"
            place = Location(feature=feature, detail=conflict)
            total.tally.add(ANN007, message, place, feature=feature)

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
        # Numbers that the label map lacks have findings of their own.
        seen = counts.keys() & mapped if mapped else set(counts)
        if not seen:
            return

        def tell(numbers: Sequence[int], has: str, split: str) -> None:
            which = f"{len(numbers)} of the {len(mapped | seen)} classes of `{safe(feature)}`"
            for number in numbers:
                name = class_name(names, number)
                place = Location(split=split or None, feature=feature, detail=name)
                tally.add(ANN005, f"{has} {which}", place, split=split, feature=feature)

        tell(sorted(mapped - seen), "no split has any of", "")
        for split, own in in_split.items():
            shown = f"`{safe(split)}`" if split else "the split without a name"
            tell(sorted(seen - own.keys()), f"{shown} has none of", split)

    def _judge_balance(
        self, tally: Tally, feature: str, in_split: Mapping[str, Mapping[int, int]], names: LabelMap
    ) -> None:
        """Find ANN006: classes that are too rare compared with others."""
        limit = self._options.imbalance
        for split, own in in_split.items() if limit is not None else ():
            ordered = sorted(own.items(), key=lambda item: (-item[1], item[0]))
            (most, often), (least, seldom) = ordered[0], ordered[-1]
            if limit is not None and often > limit * seldom:
                message = (
                    f"the commonest class of `{safe(feature)}` should occur at most {limit:g} "
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
    """The features of class numbers, and their label maps."""
    labels = labels_of(options, target.labels)
    maps = {feature: named_classes(names) for feature, names in target.labels.items()}
    if options.label_map is not None:
        known = read_label_map(options.label_map)
        maps = {each.label: known for each in labels}
    return labels, {feature: names for feature, names in maps.items() if names}


def _is_side_of(box: Finding, other: Finding) -> bool:
    """Whether every record of a finding about the side of a box is among those of `box`."""
    if other.count > box.count or not other.locations:
        return False
    records = {(place.shard, place.record) for place in box.locations}
    return all(
        place.feature in BOX and (place.shard, place.record) in records for place in other.locations
    )
