"""The numbers of a survey and a manifest as charts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tfrecreg.builtin.pages.survey import Survey
from tfrecreg.core.check.reports.model import Report
from tfrecreg.core.images.drawing.charts import Bars, Scatter, Series
from tfrecreg.core.images.drawing.colors import class_color
from tfrecreg.core.images.drawing.drawing import name_of_class
from tfrecreg.core.registry.listing import LogEntry
from tfrecreg.core.registry.manifest.model import Manifest
from tfrecreg.core.values.text import safe

_BARS = 20
"""Bars of a chart, at most; the most frequent classes have one each."""
_POINTS = 600
"""Points of a scatter chart."""
_OBJECTS = 20
"""Numbers of objects with a bar of their own."""


def charts_of(
    manifest: Manifest | None,
    labels: Mapping[str, Sequence[str]],
    splits: Mapping[str, Survey],
    history: Sequence[LogEntry],
) -> Iterator[Bars | Scatter]:
    """The charts that say most about a target: classes, sizes of images, growth over releases."""
    yield from class_charts(splits, labels)
    yield from _sizes(splits)
    yield from _growth(manifest, history)


def feature_charts(
    report: Report, manifest: Manifest | None, splits: Mapping[str, Survey]
) -> Iterator[Bars | Scatter]:
    """Charts about objects and about bytes."""
    yield from _objects(splits)
    yield from _bytes(report, manifest)


def class_charts(
    splits: Mapping[str, Survey], labels: Mapping[str, Sequence[str]]
) -> Iterator[Bars]:
    """Values by class and split, a chart for each feature of class numbers."""
    for feature in sorted({name for survey in splits.values() for name in survey.classes}):
        counts = {split: survey.classes.get(feature, Counter()) for split, survey in splits.items()}
        total: Counter[int] = Counter()
        for each in counts.values():
            total.update(each)
        shown = sorted(total)
        note = ""
        if len(shown) > _BARS:
            shown.sort(key=lambda number: (-total[number], number))
            rest = [total[number] for number in shown[_BARS:]]
            few, many = min(rest), max(rest)
            note = f"the {_BARS} most frequent of {len(total):,} classes; the others have "
            note += f"{few:,} each" if few == many else f"{few:,} to {many:,} each"
            shown = shown[:_BARS]
        yield Bars(
            heading=f"Classes: {safe(feature)}",
            unit="values",
            labels=tuple(name_of_class(feature, number, labels) for number in shown),
            series=tuple(
                Series(name=safe(split), values=tuple(each[number] for number in shown))
                for split, each in counts.items()
            ),
            note=note,
            colors=tuple(map(class_color, shown)),
        )


def _bytes(report: Report, manifest: Manifest | None) -> Iterator[Bars]:
    if manifest is None:
        return
    largest = sorted(manifest.features.items(), key=lambda each: (-each[1], each[0]))
    shown = largest[:_BARS]
    if shown:
        yield Bars(
            heading="Bytes by feature",
            unit="B",
            labels=tuple(safe(name) for name, _ in shown),
            series=(Series(name="values", values=tuple(size for _, size in shown)),),
            note=f"the {_BARS} largest of {len(largest)}" if len(largest) > _BARS else "",
        )
    if manifest.raw.files:
        sizes = {"raw files": manifest.raw.stored, "unpacked data": manifest.raw.decoded}
        if manifest.raw.decoded == manifest.raw.stored:
            del sizes["unpacked data"]
        sizes |= {"records": report.payload_bytes, "shards": report.bytes}
        yield Bars(
            heading="Size against raw data",
            unit="B",
            labels=tuple(sizes),
            series=(Series(name="bytes", values=tuple(sizes.values())),),
        )


def _sizes(splits: Mapping[str, Survey]) -> Iterator[Scatter]:
    sizes: Counter[tuple[int, int]] = Counter()
    for survey in splits.values():
        sizes.update(survey.sizes)
    if len(sizes) < 2:
        return
    shown = sorted(sizes.items(), key=lambda each: (-each[1], each[0]))[:_POINTS]
    yield Scatter(
        heading="Sizes of images",
        points=tuple((width, height, count) for (width, height), count in shown),
        note=f"the {_POINTS:,} most frequent of {len(sizes):,} sizes"
        if len(sizes) > _POINTS
        else "",
    )


def _growth(manifest: Manifest | None, history: Sequence[LogEntry]) -> Iterator[Bars]:
    """Records by release, the oldest first, and of the build behind them, if it is not released."""
    counts = [(entry.version, entry.records) for entry in reversed(history)]
    if manifest is not None and manifest.release is None and counts:
        counts.append(("build", sum(split.records for split in manifest.splits)))
    if len(counts) < 2:
        return
    shown = counts[-_BARS:]
    yield Bars(
        heading="Growth over versions",
        unit="records",
        labels=tuple(version for version, _ in shown),
        series=(Series(name="records", values=tuple(records for _, records in shown)),),
        note=f"the newest {_BARS} of {len(counts)}" if len(counts) > _BARS else "",
    )


def _objects(splits: Mapping[str, Survey]) -> Iterator[Bars]:
    if not any(survey.objects for survey in splits.values()):
        return
    most = max(max(survey.objects, default=0) for survey in splits.values())
    last = min(most, _OBJECTS)
    yield Bars(
        heading="Objects by image",
        unit="images",
        labels=(*map(str, range(last)), f"{last} or more" if most > last else str(last)),
        series=tuple(
            Series(
                name=safe(split),
                values=(
                    *(survey.objects[number] for number in range(last)),
                    sum(count for number, count in survey.objects.items() if number >= last),
                ),
            )
            for split, survey in splits.items()
        ),
    )
    areas = [survey.areas for survey in splits.values()]
    bins = len(areas[0])
    used = [each for each in range(bins) if any(counts[each] for counts in areas)]
    if not used:
        return
    shown = range(used[0], used[-1] + 1)
    yield Bars(
        heading="Boxes by their share of the image",
        unit="boxes",
        labels=tuple(f"from {100 * 10 ** ((each - bins) / 3):.2g} %" for each in shown),
        series=tuple(
            Series(name=safe(split), values=tuple(survey.areas[each] for each in shown))
            for split, survey in splits.items()
        ),
    )
