"""The survey of features: exact counts of all records, and a sample that depends on them alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tfrecreg
from tfrecreg.engines.local import LocalEngine
from tfrecreg.example.model import Kind
from tfrecreg.pages.collect import BUDGET, make_page
from tfrecreg.pages.features import FeatureCounts, PageFeature

NONE = np.zeros(0, np.int64)


def features(folder: Path, *shards: list[dict[str, Any]]) -> dict[str, PageFeature]:
    """The features that a page shows of records in these shards."""
    folder.mkdir(exist_ok=True)
    for number, records in enumerate(shards):
        with tfrecreg.TFRecordWriter(
            folder / f"x-train.tfrecord-{number:05}-of-{len(shards):05}"
        ) as out:
            for record in records:
                out.write(record)
    (target,) = make_page(str(folder), budget=BUDGET, engine=LocalEngine(1)).targets
    assert target.report.errors == ()
    return {each.name: each for each in target.features}


def test_counts_and_ranges_are_those_of_all_records(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"n": number, "x": np.float32(number / 4), "text": "a" * (number % 7)}
        for number in range(1000)
    ]
    records += [{"n": 5, "list": [1, 2, 3]}, {"n": -3, "list": [9]}, {"n": 0, "list": NONE}]
    found = features(tmp_path, records)
    n, x, text, list_ = (found[name] for name in ("n", "x", "text", "list"))
    assert (n.kind, n.present, n.missing, n.range) == ("int64", 1003, 0, "-3 to 999")
    assert (x.kind, x.present, x.missing, x.range) == ("float", 1000, 3, "0 to 249.8")
    assert (text.kind, text.range) == ("bytes", "0 B to 6 B")
    assert (list_.present, list_.missing, list_.per_record) == (3, 1000, "0 to 3")
    assert list_.range == "1 to 9"
    assert text.chart is not None
    assert [label for label, _ in text.chart.columns] == [f"{size} B" for size in range(7)]
    assert n.chart is not None
    assert len(n.chart.columns) == 20


def test_numbers_that_are_not_finite_are_counted_apart(tmp_path: Path) -> None:
    odd = [float("nan"), float("inf"), 1.5, -2.0]
    table = features(tmp_path / "table", [{"x": np.float32(each)} for each in odd])["x"]
    lists = features(tmp_path / "lists", [{"x": np.array(odd, np.float32), "y": NONE}])["x"]
    for found in (table, lists):
        assert (found.odd, found.range) == (2, "-2 to 1.5")


def test_the_sample_is_the_same_for_any_shards(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    records = [
        {"x": np.float32(value), "n": np.ones(at % 3, np.int64)}
        for at, value in enumerate(rng.normal(size=3000))
    ]
    whole = features(tmp_path / "whole", records)
    cut = features(tmp_path / "cut", records[:100], records[100:2900], records[2900:])
    assert cut == whole
    assert whole["x"].chart is not None
    assert sum(count for _, count in whole["x"].chart.columns) == 400


def test_a_feature_of_two_kinds_and_one_without_values(tmp_path: Path) -> None:
    found = features(tmp_path, [{"a": 1, "b": NONE}, {"a": "text", "b": NONE}])
    assert found["a"].kind == "bytes and int64"
    assert (found["b"].range, found["b"].chart, found["b"].per_record) == ("", None, "0")


def test_features_beyond_the_limit_are_only_counted(tmp_path: Path) -> None:
    path = tmp_path / "many.tfrecord"
    with tfrecreg.TFRecordWriter(path) as out:
        out.write({f"feature {number:03}": number for number in range(300)})
    (target,) = make_page(str(path), budget=BUDGET).targets
    assert (len(target.features), target.more_features) == (60, 240)


def test_a_sample_keeps_the_lowest_hashes() -> None:
    counts = FeatureCounts()
    for order in range(5000, 0, -1):
        counts.add(Kind.INT64, 1, (order,), order)
    counts.cut()
    assert [order for order, _ in counts.sample] == list(range(1, 401))
