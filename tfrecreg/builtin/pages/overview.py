"""The six numbers at the top of a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from tfrecreg.builtin.pages.content import Figure
from tfrecreg.builtin.pages.survey import Survey
from tfrecreg.core.check.reports.model import Report
from tfrecreg.core.images.drawing.drawing import name_of_class
from tfrecreg.core.registry.listing import LogEntry
from tfrecreg.core.schema.roles.label_features import IMAGE_LABEL, OBJECT_LABEL
from tfrecreg.core.values.shards import in_reading_order
from tfrecreg.core.values.text import count, safe, si_bytes

_FIGURES = 6
_SPLITS = 4
"""Splits that are named."""


def figures_of(
    report: Report,
    labels: Mapping[str, Sequence[str]],
    splits: Mapping[str, Survey],
    history: Sequence[LogEntry],
    kinds: Mapping[str, str],
) -> tuple[Figure, ...]:
    """The most important numbers of a target."""
    return tuple(islice(_figures(report, labels, splits, history, kinds), _FIGURES))


def _figures(
    report: Report,
    labels: Mapping[str, Sequence[str]],
    splits: Mapping[str, Survey],
    history: Sequence[LogEntry],
    kinds: Mapping[str, str],
) -> Iterator[Figure]:
    yield Figure(name="Records", value=f"{report.records:,}", note=_by_split(report.splits))
    yield Figure(name="Size", value=si_bytes(report.bytes), note=count(report.shards, "shard"))
    yield _findings(report)
    yield from _classes(labels, splits)
    yield from _images(splits)
    objects: Counter[int] = Counter()
    for survey in splits.values():
        objects.update(survey.objects)
    if objects:
        total = sum(number * images for number, images in objects.items())
        mean = total / max(sum(objects.values()), 1)
        yield Figure(name="Objects", value=f"{total:,}", note=f"{mean:.1f} for each image")
    if kinds:
        by_kind = Counter(kinds.values())
        note = ", ".join(f"{number} {kind}" for kind, number in sorted(by_kind.items()))
        yield Figure(name="Features", value=f"{len(kinds):,}", note=note)
    if history:
        yield Figure(name="Releases", value=f"{len(history)}", note=f"newest {history[0].version}")
    yield Figure(name="Validators", value=f"{len(report.validators)}", note="ran")


def _by_split(splits: Mapping[str, int]) -> str:
    names = sorted((name for name in splits if name), key=in_reading_order)
    shown = [f"{safe(name, limit=40)} {splits[name]:,}" for name in names[:_SPLITS]]
    more = [f"{count(len(names) - _SPLITS, 'more split')}"] if len(names) > _SPLITS else []
    return ", ".join(shown + more)


def _findings(report: Report) -> Figure:
    notes = []
    if report.failing:
        notes.append(f"{len(report.failing)} {'fails' if len(report.failing) == 1 else 'fail'}")
    if report.waived:
        notes.append(f"{len(report.waived)} more accepted")
    return Figure(name="Findings", value=f"{len(report.findings):,}", note=", ".join(notes))


def _classes(labels: Mapping[str, Sequence[str]], splits: Mapping[str, Survey]) -> Iterator[Figure]:
    features = {name for survey in splits.values() for name in survey.classes}
    wanted = (IMAGE_LABEL, OBJECT_LABEL, *sorted(features))
    feature = next((each for each in wanted if each in features), None)
    if feature is None:
        return
    total: Counter[int] = Counter()
    for survey in splits.values():
        total.update(survey.classes.get(feature, {}))
    number, most = min(total.items(), key=lambda each: (-each[1], each[0]))
    share = 100 * most / sum(total.values())
    name = name_of_class(feature, number, labels)
    note = f"most frequent: {name}, {share:.0f}\N{NO-BREAK SPACE}%"
    yield Figure(name="Classes", value=f"{len(total):,}", note=note)


def _images(splits: Mapping[str, Survey]) -> Iterator[Figure]:
    sizes: Counter[tuple[int, int]] = Counter()
    for survey in splits.values():
        sizes.update(survey.sizes)
    if not sizes:
        return
    width, height = (_median(sizes, side) for side in (0, 1))
    note = "median" if len(sizes) > 1 else "all images"
    more = f", {len(sizes):,} sizes" if len(sizes) > 1 else ""
    yield Figure(name="Image size", value=f"{width:,} × {height:,}", note=f"{note}{more}")


def _median(sizes: Mapping[tuple[int, int], int], side: int) -> int:
    """The median width (side 0) or height (side 1)."""
    left = sum(sizes.values()) / 2
    for size, number in sorted(sizes.items(), key=lambda each: each[0][side]):
        left -= number
        if left <= 0:
            return size[side]
    raise AssertionError("no sizes")
