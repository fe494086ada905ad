"""The numbers of statistics, whose estimates keep within their bounds."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from statistics_support import (
    IMAGES,
    alike_examples,
    as_written,
    dealt,
    differences,
    odd_examples,
    ours,
    write,
)

from tfrecreg.builtin.statistics.accumulate import ExampleColumns, Values
from tfrecreg.builtin.statistics.options import StatisticsOptions
from tfrecreg.builtin.statistics.part import StatisticsPart
from tfrecreg.builtin.statistics.summary import FeatureSummary, Image, Numbers, Texts, summarize
from tfrecreg.core.example.features import (
    bytes_feature,
    float_feature,
    int64_feature,
    unset_feature,
)
from tfrecreg.core.example.model import Feature, Kind
from tfrecreg.core.workers.local import LocalEngine


def summary(
    folder: Path, *examples: dict[str, Feature], schema: str | None = None
) -> dict[str, FeatureSummary]:
    pattern = write(folder, *dealt(examples, 2))
    proto = ours(pattern, StatisticsOptions(schema=schema)).proto
    return {feature.name: feature for feature in summarize(proto)}


def test_numbers(tmp_path: Path) -> None:
    values = [3.0, 0.0, math.nan, -1.0, 0.0, 8.0]
    found = summary(
        tmp_path,
        {"x": float_feature(values), "n": int64_feature(2)},
        {"n": int64_feature([])},
        {"n": int64_feature([-(2**63), 4, 4])},
    )
    x, n = found["x"].detail, found["n"]
    assert isinstance(x, Numbers)
    assert (found["x"].present, found["x"].missing, found["x"].values) == (1, 2, 6)
    assert (x.mean, x.min, x.median, x.max, x.zeros, x.nan) == (2.0, -1.0, 0.0, 8.0, 2, 1)
    assert x.std == pytest.approx(np.std([3, 0, -1, 0, 8]), rel=1e-12)
    assert (n.min_values, n.max_values) == (0, 3)
    assert n.mean_values == pytest.approx(4 / 3)
    assert isinstance(n.detail, Numbers)
    assert n.detail.min == -(2.0**63)


def test_infinite_numbers_have_buckets_of_their_own(tmp_path: Path) -> None:
    values = [math.inf, 1.0, 2.0, -math.inf, math.inf]
    found = summary(tmp_path, {"x": float_feature(values)})["x"]
    assert isinstance(found.detail, Numbers)
    assert (found.detail.min, found.detail.max, found.detail.median) == (-math.inf, math.inf, 2.0)
    assert math.isnan(found.detail.mean)
    assert found.histogram == (1, 1, *[0] * 8, 1, 2)


def test_buckets_reach_from_the_least_to_the_greatest_of_many_numbers(tmp_path: Path) -> None:
    """Beyond 4,096 distinct ones, the quantiles lack the ends."""
    values = np.random.default_rng(5).normal(size=20_000).astype(np.float32)
    pattern = write(tmp_path, *dealt([{"x": float_feature(values)}], 1))
    (feature,) = ours(pattern, StatisticsOptions()).proto.datasets[0].features
    standard = feature.num_stats.histograms[0]
    low, high = float(values.min()), float(values.max())
    assert (standard.buckets[0].low_value, standard.buckets[-1].high_value) == (low, high)
    counts = [each.sample_count for each in standard.buckets]
    assert sum(counts) == len(values)
    reached = np.cumsum(counts) - np.cumsum(np.histogram(values, 10)[0])
    assert np.abs(reached).max() <= 0.002 * len(values)


def test_a_histogram_of_texts_has_ten_bars(tmp_path: Path) -> None:
    texts = [f"t{number}".encode() for number in range(40) for _ in range(number + 1)]
    found = summary(tmp_path, {"x": bytes_feature(texts)})["x"]
    assert found.histogram == tuple(range(40, 30, -1))


def test_numbers_that_are_all_nan_and_a_feature_without_values(tmp_path: Path) -> None:
    found = summary(
        tmp_path, {"x": float_feature(math.nan), "y": unset_feature(), "z": bytes_feature([])}
    )
    assert isinstance(found["x"].detail, Numbers)
    assert (found["x"].detail.nan, found["x"].histogram) == (1, ())
    assert (found["y"].detail, found["y"].present, found["y"].missing) == (None, 0, 1)
    assert (found["z"].detail, found["z"].present, found["z"].type) == (None, 1, "bytes")


def test_images_by_their_schema_and_texts(tmp_path: Path) -> None:
    examples = [
        {"image": bytes_feature(b"\xff" * size), "text": bytes_feature([b"a", b"\xff" * size])}
        for size in (3, 300, 300)
    ]
    found = summary(tmp_path, *examples, schema=IMAGES)
    assert (found["image"].type, found["image"].detail) == ("picture", Image(201, 3, 300))
    text = found["text"].detail
    assert isinstance(text, Texts)
    assert (text.unique, text.mean_length, text.not_utf8) == (3, 101, 3)
    assert text.top == (("a", 3.0), ("__BYTES_VALUE__", 2.0), ("__BYTES_VALUE__", 1.0))


@pytest.mark.medium
def test_values_beyond_memory_are_estimated_and_the_result_says_so() -> None:
    rng = random.Random(3)
    often = [b"often"] * 6_000 + [b"seldom"] * 2_000
    values = often + [b"%d" % number for number in range(50_000)]
    rng.shuffle(values)
    (text,), exact = of_texts(values, 1 << 30)
    assert exact == ()
    assert text.string_stats.unique == 50_002
    (text,), estimated = of_texts(values, 1 << 20)
    assert estimated == ("text",)
    assert abs(text.string_stats.unique - 50_002) <= 0.03 * 50_002
    counts = {each.value: each.frequency for each in text.string_stats.top_values}
    for value, count in (("often", 6_000), ("seldom", 2_000)):
        assert abs(counts[value] - count) <= len(values) / 1024


def of_texts(values: list[bytes], max_value_bytes: int):
    """The features, and the names of those that were sketched, in three merged parts."""
    options = StatisticsOptions()
    whole = StatisticsPart(options, max_value_bytes)
    for start in range(3):
        part = StatisticsPart(options, max_value_bytes)
        some = values[start::3]
        sizes = np.fromiter(map(len, some), np.int64, len(some))
        column = Values(Kind.BYTES, np.ones(len(some), np.int64), sizes, some)
        part.add(ExampleColumns(len(some), {"text": column}))
        whole.merge(part)
    return whole.proto().datasets[0].features, whole.sketched


@pytest.mark.slow
@pytest.mark.parametrize("examples", [odd_examples, alike_examples])
def test_two_jobs_make_the_same_as_one(tmp_path: Path, examples) -> None:
    pattern = write(tmp_path, *dealt(examples(3000), 5))
    options = StatisticsOptions(schema=IMAGES)
    one, two = (ours(pattern, options, LocalEngine(jobs)) for jobs in (1, 2))
    assert one.proto.SerializeToString(deterministic=True) == two.proto.SerializeToString(
        deterministic=True
    )
    assert (one.examples, one.sketched) == (two.examples, two.sketched)


def ragged(count: int) -> Iterator[dict[str, Feature]]:
    rng = random.Random(4)
    for _ in range(count):
        yield {"x": float_feature([rng.gauss(0, 1) for _ in range(rng.randrange(40))])}


def test_quantiles_are_those_of_numpy_within_their_bound(tmp_path: Path) -> None:
    examples = list(ragged(5_000))
    found = summary(tmp_path, *examples)["x"].detail
    assert isinstance(found, Numbers)
    numbers = np.sort(np.concatenate([each["x"].values for each in examples]))
    assert len(numbers) > 80_000
    assert (found.quantiles[0], found.quantiles[-1]) == (numbers[0], numbers[-1])
    bound = (1 + math.log2(len(numbers) / 4096)) / 4095
    for number, quantile in enumerate(found.quantiles):
        rank = np.searchsorted(numbers, quantile, "right") / len(numbers)
        assert abs(rank - number / 10) <= bound + 1 / len(numbers)
    assert found.quantiles[5] == found.median


def test_the_same_columns_decoded_and_from_the_wire(tmp_path: Path, monkeypatch) -> None:
    from tfrecreg.core.example import columns

    pattern = write(tmp_path, map(as_written, alike_examples(500)))
    found: Any = ours(pattern, StatisticsOptions(schema=IMAGES))
    monkeypatch.setattr(columns, "_WORTH_IT", 1 << 40)
    assert differences(ours(pattern, StatisticsOptions(schema=IMAGES)).proto, found.proto) == []
