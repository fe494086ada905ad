"""Features on a page: the numbers of the statistics, of all records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecreg
from tfrecreg.builtin.pages.collect import make_page
from tfrecreg.builtin.pages.content import PageFeature, TargetPage
from tfrecreg.core.images.svg import Bars
from tfrecreg.core.workers.local import LocalEngine

NONE = np.zeros(0, np.int64)


def page_of(folder: Path, *shards: list[dict[str, Any]], split: str = "train") -> TargetPage:
    """The page of records in these shards."""
    folder.mkdir(exist_ok=True)
    for number, records in enumerate(shards):
        with tfrecreg.TFRecordWriter(
            folder / f"x-{split}.tfrecord-{number:05}-of-{len(shards):05}"
        ) as out:
            for record in records:
                out.write(record)
    (target,) = make_page(str(folder), engine=LocalEngine(1)).targets
    assert target.report.errors == ()
    return target


def features(folder: Path, *shards: list[dict[str, Any]]) -> dict[str, PageFeature]:
    return {each.name: each for each in page_of(folder, *shards).features}


def columns(feature: PageFeature, split: int = 0) -> list[tuple[str, int]]:
    chart = feature.splits[split].chart
    return list(chart.columns) if chart is not None else []


def test_counts_ranges_and_charts_are_those_of_all_records(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"n": number, "x": np.float32(number / 4), "text": "a" * (number % 7)}
        for number in range(1000)
    ]
    records += [{"n": 5, "list": [1, 2, 3]}, {"n": -3, "list": [9]}, {"n": 100_000, "list": NONE}]
    found = features(tmp_path, records)
    n, x, text, list_ = (found[name] for name in ("n", "x", "text", "list"))
    assert (n.kind, n.present, n.missing, n.range) == ("int64", 1003, 0, "values -3 to 100,000")
    assert [count for _, count in columns(n)] == [1002, *[0] * 8, 1]  # what no sample would have
    assert columns(n)[0][0] == "-3 to 9,997"
    assert n.splits[0].chart is not None
    assert n.splits[0].chart.ends == ("-3", "100,000")
    assert (x.kind, x.present, x.missing, x.range) == ("float", 1000, 3, "values 0 to 249.8")
    assert [count for _, count in columns(x)] == [100] * 10
    assert (text.kind, text.range, columns(text)) == ("bytes", "mean size 3 B", [])
    assert text.splits[0].different == "7 different"
    assert [count for _, count in text.splits[0].top] == [143, 143, 143, 143, 143]
    assert (list_.present, list_.missing, list_.per_record) == (3, 1000, "0 to 3")
    assert list_.range == "values 1 to 9"


def test_each_split_has_its_own_chart(tmp_path: Path) -> None:
    page_of(tmp_path, [{"n": each, "text": "b"} for each in range(10)], split="test")
    page = page_of(tmp_path, [{"n": each % 2, "text": str(each // 2)} for each in range(10)])
    n, text = page.features
    assert [each.split for each in n.splits] == ["train", "test"]
    assert (n.range, n.present) == ("values 0 to 9", 20)
    assert columns(n, 0) == [("0", 5), *[("1", 0)] * 8, ("1", 5)]
    assert columns(n, 1) == [(str(each), 1) for each in range(10)]
    assert [each.different for each in text.splits] == ["5 different", "all equal"]
    assert text.splits[1].top == (("b", 10),)


@pytest.mark.parametrize(
    ("values", "shown", "nan", "counts"),
    [
        ([float("nan"), 1.5, -2.0], "values -2 to 1.5", 1, [1, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        ([float("inf"), 1.0, 2.0], "values 1 to inf", 0, [1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]),
        ([float("nan")] * 2, "", 2, []),
        ([float("-inf"), float("inf")], "values -inf to inf", 0, [1, 1]),
    ],
)
def test_numbers_that_are_not_finite(
    tmp_path: Path, values: list[float], shown: str, nan: int, counts: list[int]
) -> None:
    found = features(tmp_path, [{"x": np.float32(each)} for each in values])["x"]
    assert (found.range, found.nan) == (shown, nan)
    assert [count for _, count in columns(found)] == counts


def test_features_are_the_same_for_any_shards(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    records = [
        {"x": np.float32(value), "n": np.ones(at % 3, np.int64), "text": f"{value:.1f}"}
        for at, value in enumerate(rng.normal(size=3000))
    ]
    whole = features(tmp_path / "whole", records)
    assert features(tmp_path / "cut", records[:9], records[9:2900], records[2900:]) == whole
    assert sum(count for _, count in columns(whole["x"])) == 3000


def class_labels(page: TargetPage) -> tuple[str, ...]:
    """The names of the bars of the chart of classes."""
    return next(
        each.labels
        for each in page.charts
        if isinstance(each, Bars) and each.heading.startswith("Classes")
    )


@pytest.mark.parametrize("kind", ["image/class", "image/object/class"])
@pytest.mark.parametrize(
    ("classes", "shown"),
    [
        ([(1, "victim"), (3, "<b>"), (1, "victim")], ("victim", "<b>")),
        ([(1, "victim"), (1, "dog")], ("1",)),  # not one name
        ([(1, "victim"), (2, "")], ("victim", "2")),
        ([(1, "victim"), (2, None)], ("1", "2")),  # not each record has one
        ([(-1, "victim")], ("-1",)),
    ],
)
def test_classes_have_the_names_that_the_records_have(
    tmp_path: Path, kind: str, classes: list[tuple[int, str | None]], shown: tuple[str, ...]
) -> None:
    records: list[dict[str, Any]] = [
        {f"{kind}/label": number, **({f"{kind}/text": text} if text is not None else {})}
        for number, text in classes
    ]
    page = page_of(tmp_path / "one", records)
    assert class_labels(page) == shown
    assert class_labels(page_of(tmp_path / "cut", records[:1], records[1:])) == shown
    lists = [{f"{kind}/label": [each[0] for each in classes]}]
    if all(text is not None for _, text in classes):
        lists[0][f"{kind}/text"] = [text for _, text in classes]  # type: ignore[misc]
    assert class_labels(page_of(tmp_path / "lists", lists)) == shown
