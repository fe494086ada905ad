"""What TFDV's generators make of a scan is what TFDV makes, from the same files and options."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from statistics_support import (
    CATEGORIES,
    IMAGES,
    alike_examples,
    as_written,
    dealt,
    differences,
    needs_tfdv,
    odd_examples,
    ours,
    theirs,
    write,
)

from tfrecreg.engines.local import LocalEngine
from tfrecreg.example.features import bytes_feature, float_feature, int64_feature
from tfrecreg.statistics.options import StatisticsOptions
from tfrecreg.statistics.part import StatisticsPart
from tfrecreg.statistics.summary import parse_proto, render_proto
from tfrecreg.statistics.tfdv import load_tfdv

FLOATS = 'feature { name: "share" type: FLOAT float_domain { is_categorical: true } }'


@pytest.fixture(autouse=True)
def tfdv() -> None:
    needs_tfdv()


@pytest.mark.slow
@pytest.mark.parametrize("compress", [False, True], ids=["plain", "gzip"])
def test_odd_examples_with_images_and_categories(tmp_path: Path, compress: bool) -> None:
    pattern = write(tmp_path, *dealt(odd_examples(400), 3), compress=compress)
    options = StatisticsOptions(tfdv=True, schema=IMAGES + CATEGORIES)
    found = ours(pattern, options)
    assert differences(theirs(pattern, options), found.proto) == []
    assert found.examples == 400
    assert not found.left_out


@pytest.mark.medium
def test_odd_examples_without_a_schema(tmp_path: Path) -> None:
    pattern = write(tmp_path, *dealt(odd_examples(400), 2))
    options = StatisticsOptions(tfdv=True)
    assert differences(theirs(pattern, options), ours(pattern, options).proto) == []


@pytest.mark.slow
def test_options_mean_what_they_mean_to_tfdv(tmp_path: Path) -> None:
    pattern = write(tmp_path, *dealt(odd_examples(300), 2))
    options = StatisticsOptions(
        tfdv=True,
        schema=CATEGORIES,
        num_top_values=3,
        frequency_threshold=2,
        num_rank_histogram_buckets=4,
        num_values_histogram_buckets=3,
        num_histogram_buckets=5,
        num_quantiles_histogram_buckets=4,
        epsilon=0.05,
    )
    assert differences(theirs(pattern, options), ours(pattern, options).proto) == []
    assert differences(
        ours(pattern, StatisticsOptions(tfdv=True)).proto, ours(pattern, options).proto
    )


@pytest.mark.medium
def test_numbers_of_type_float_as_categories_take_the_sketches_of_tfdv(tmp_path: Path) -> None:
    pattern = write(tmp_path, *dealt(odd_examples(300), 2))
    schema = IMAGES + CATEGORIES + FLOATS
    asked = StatisticsOptions(tfdv=True, schema=schema, use_sketch_based_topk_uniques=True)
    expected = theirs(pattern, asked)
    assert differences(expected, ours(pattern, asked).proto) == []
    assert (
        differences(expected, ours(pattern, StatisticsOptions(tfdv=True, schema=schema)).proto)
        == []
    )


@pytest.mark.medium
def test_generators_that_a_schema_asks_for(tmp_path: Path) -> None:
    pattern = write(tmp_path, *dealt(odd_examples(200), 2))
    schema = """
    feature { name: "text" type: BYTES natural_language_domain {} }
    feature { name: "ragged" type: INT int_domain { min: -5 max: 50 } }
    feature { name: "binary" type: BYTES }
    feature { name: "share" type: FLOAT }
    sparse_feature {
      name: "sparse" index_feature { name: "ragged" } value_feature { name: "binary" }
    }
    weighted_feature {
      name: "weighted" feature { step: "text" } weight_feature { step: "share" }
    }
    """
    options = StatisticsOptions(tfdv=True, schema=IMAGES + schema)
    expected = theirs(pattern, options)
    assert {feature.path.step[0] for feature in expected.datasets[0].features} >= {
        "sparse",
        "weighted",
    }
    assert differences(expected, ours(pattern, options).proto) == []


@pytest.mark.slow
@pytest.mark.parametrize("schema", [IMAGES, None], ids=["images", "no schema"])
def test_small_records_that_are_all_alike(tmp_path: Path, schema: str | None) -> None:
    pattern = write(tmp_path, *dealt(alike_examples(900), 2))
    options = StatisticsOptions(tfdv=True, schema=schema)
    assert differences(theirs(pattern, options), ours(pattern, options).proto) == []


@pytest.mark.slow
def test_large_images_that_are_cut_out(tmp_path: Path) -> None:
    rng = random.Random(5)
    examples = [
        {
            "label": int64_feature(rng.randrange(9)),
            "image": bytes_feature([rng.randbytes(rng.randrange(60_000)) for _ in range(many)]),
            "name": bytes_feature(b"\xff%d" % number),
        }
        for number, many in enumerate([1, 0, 3, 1, 1, 2] * 20)
    ]
    for example in examples[::7]:
        del example["image"]
    pattern = write(tmp_path, *dealt(examples, 2))
    options = StatisticsOptions(tfdv=True, schema=IMAGES)
    expected = theirs(pattern, options)
    assert differences(expected, ours(pattern, options).proto) == []
    (image,) = [each for each in expected.datasets[0].features if each.path.step[0] == "image"]
    assert image.bytes_stats.max_num_bytes > 10_000  # there was something to cut


@pytest.mark.medium
def test_an_image_domain_of_what_is_no_bytes(tmp_path: Path) -> None:
    examples = [{"image": int64_feature(each), "label": int64_feature(each)} for each in range(50)]
    pattern = write(tmp_path, *dealt(examples, 1))
    options = StatisticsOptions(tfdv=True, schema=IMAGES)
    assert differences(theirs(pattern, options), ours(pattern, options).proto) == []


@pytest.mark.slow
def test_two_jobs_make_the_same_as_one(tmp_path: Path) -> None:
    pattern = write(tmp_path, *dealt(odd_examples(600), 5))
    options = StatisticsOptions(tfdv=True, schema=IMAGES)
    one = ours(pattern, options)
    two = ours(pattern, options, LocalEngine(2))
    assert one.proto.SerializeToString(deterministic=True) == two.proto.SerializeToString(
        deterministic=True
    )
    assert (one.examples, one.sketched) == (two.examples, two.sketched)


def test_the_text_form_is_read_by_tfdv_and_by_us(tmp_path: Path) -> None:
    found = ours(write(tmp_path, *dealt(odd_examples(50), 1)), StatisticsOptions(tfdv=True))
    path = tmp_path / "statistics.pbtxt"
    path.write_text(render_proto(found.proto), encoding="utf-8")
    assert differences(load_tfdv().api.load_stats_text(str(path)), found.proto) == []
    data = found.proto.SerializeToString(deterministic=True)
    assert parse_proto(data).SerializeToString(deterministic=True) == data


class TestRealData:
    @pytest.mark.slow
    @pytest.mark.realdata
    @pytest.mark.parametrize("split", ["Split-train", "Split-eval"])
    def test_penguins_by_their_schema(self, realdata: Path, split: str) -> None:
        folder = realdata / "tfrecord/tfx/components/testdata/penguin"
        schema = (folder / "schema/schema.pbtxt").read_text(encoding="utf-8")
        pattern = str(folder / "data" / split / "*.gz")
        options = StatisticsOptions(tfdv=True, schema=schema)
        assert differences(theirs(pattern, options), ours(pattern, options).proto) == []

    @pytest.mark.slow
    @pytest.mark.realdata
    def test_taxi_rides_of_twelve_shards(self, realdata: Path) -> None:
        """Where a feature has thousands of different numbers, sketches meet them in other orders:
        then quantiles, and what is made from them, differ by less than `epsilon` of all values."""
        folder = realdata / "tfrecord/tfx/components/testdata/csv_example_gen/Split-train"
        pattern = str(folder / "*.gz")
        options = StatisticsOptions(tfdv=True)
        expected, found = theirs(pattern, options), ours(pattern, options).proto
        told = differences(expected, found)
        assert all(".num_stats.histograms" in each or ".median" in each for each in told), told
        for number, feature in enumerate(expected.datasets[0].features):
            values = feature.num_stats.common_stats.tot_num_values
            for histogram, own in zip(
                feature.num_stats.histograms,
                found.datasets[0].features[number].num_stats.histograms,
                strict=True,
            ):
                pairs = zip(histogram.buckets, own.buckets, strict=True)
                worst = max(abs(one.sample_count - other.sample_count) for one, other in pairs)
                assert worst <= options.epsilon * values


class TestSketches:
    """What sketches leave open, against what is really so. See docs/statistics.md."""

    @pytest.mark.medium
    def test_the_ranks_of_quantiles_are_off_by_less_than_epsilon(self, tmp_path: Path) -> None:
        numbers = np.random.default_rng(1).normal(size=40_000).astype(np.float32)
        payloads = [as_written({"x": float_feature(float(each))}) for each in numbers]
        shards = [payloads[start::4] for start in range(4)]
        options = StatisticsOptions(tfdv=True, num_quantiles_histogram_buckets=20)
        (feature,) = ours(write(tmp_path, *shards), options).proto.datasets[0].features
        ordered = np.sort(numbers)
        quantiles = feature.num_stats.histograms[1]
        assert len(quantiles.buckets) == 20
        for number, bucket in enumerate(quantiles.buckets, 1):
            rank = np.searchsorted(ordered, np.float32(bucket.high_value), "right")
            assert abs(rank / len(ordered) - number / 20) <= options.epsilon
        median = np.searchsorted(ordered, np.float32(feature.num_stats.median)) / len(ordered)
        assert abs(median - 0.5) <= options.epsilon
        standard = feature.num_stats.histograms[0]
        for bucket in standard.buckets:
            inside = np.count_nonzero((ordered >= bucket.low_value) & (ordered < bucket.high_value))
            # Both ends of a bucket are off by as much.
            assert abs(bucket.sample_count - inside) <= 2 * options.epsilon * len(ordered)

    @pytest.mark.medium
    def test_values_beyond_memory_are_estimated_and_the_result_says_so(self) -> None:
        rng = random.Random(3)
        often = [b"often"] * 6_000 + [b"seldom"] * 2_000
        values = often + [b"%d" % number for number in range(50_000)]
        rng.shuffle(values)
        (text,), exact = statistics_of(values, 1 << 30)
        assert exact == ()
        assert text.string_stats.unique == 50_002
        (text,), estimated = statistics_of(values, 1 << 20)
        assert estimated == ("text",)
        assert abs(text.string_stats.unique - 50_002) <= 0.03 * 50_002
        counts = {each.value: each.frequency for each in text.string_stats.top_values}
        for value, count in (("often", 6_000), ("seldom", 2_000)):
            assert abs(counts[value] - count) <= len(values) / 1024


def statistics_of(values: list[bytes], max_value_bytes: int):
    """The features, and the names of those that were sketched, in three merged parts."""
    pa = load_tfdv().pa
    options = StatisticsOptions(tfdv=True)
    whole = StatisticsPart(options, max_value_bytes)
    for start in range(3):
        part = StatisticsPart(options, max_value_bytes)
        column = pa.array([[each] for each in values[start::3]], pa.large_list(pa.large_binary()))
        part.add(pa.RecordBatch.from_arrays([column], ["text"]))
        whole.merge(part)
    return whole.proto().datasets[0].features, whole.sketched
