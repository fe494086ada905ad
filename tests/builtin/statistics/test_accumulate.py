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
from tfrecreg.builtin.statistics.collect import StatisticsPart
from tfrecreg.builtin.statistics.summary import FeatureSummary, Numbers, summarize
from tfrecreg.core.example.model import Feature, Kind
from tfrecreg.core.example.values import float_feature
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.workers.local import LocalEngine


def summary(
    folder: Path, *examples: dict[str, Feature], schema: str | None = None
) -> dict[str, FeatureSummary]:
    pattern = write(folder, *dealt(examples, 2))
    proto = ours(pattern, schema).proto
    return {feature.name: feature for feature in summarize(proto)}


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
    schema = parse_schema("")
    whole = StatisticsPart(schema, max_value_bytes)
    for start in range(3):
        part = StatisticsPart(schema, max_value_bytes)
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
    one, two = (ours(pattern, IMAGES, LocalEngine(jobs)) for jobs in (1, 2))
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
    from tfrecreg.core.records import batch_columns as columns

    pattern = write(tmp_path, map(as_written, alike_examples(500)))
    found: Any = ours(pattern, IMAGES)
    monkeypatch.setattr(columns, "_WORTH_IT", 1 << 40)
    assert differences(ours(pattern, IMAGES).proto, found.proto) == []
