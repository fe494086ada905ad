from __future__ import annotations

import math
from typing import Any

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import statistics_pb2

from tfrecreg.builtin.statistics.summary import (
    FeatureSummary,
    Image,
    Numbers,
    Texts,
    named,
    parse_proto,
    render_proto,
    summarize,
)

COMMON = """
common_stats { num_non_missing: 3 num_missing: 1 min_num_values: 1 max_num_values: 2
               avg_num_values: 1.5 tot_num_values: 5 }
"""


def feature(text: str) -> FeatureSummary:
    proto = text_format.Parse(
        f'datasets {{ features {{ path {{ step: "x" }} {text} }} }}',
        statistics_pb2.DatasetFeatureStatisticsList(),
    )
    (found,) = summarize(proto)
    return found


def test_numbers() -> None:
    found = feature(
        f"""type: FLOAT num_stats {{ {COMMON} mean: 2 std_dev: 1 num_zeros: 1 min: -inf median: 2
        max: 4 histograms {{ num_nan: 2 buckets {{ sample_count: 3 }} buckets {{ }} }}
        histograms {{ type: QUANTILES buckets {{ low_value: 1 high_value: 4 }} }} }}"""
    )
    assert (found.name, found.type, found.present, found.missing) == ("x", "float", 3, 1)
    assert (found.values, found.min_values, found.mean_values, found.max_values) == (5, 1, 1.5, 2)
    assert found.detail == Numbers(2, 1, -math.inf, 2, 4, 1, 2, (1, 4))
    assert found.histogram == (3, 0)


def test_numbers_that_are_all_nan() -> None:
    found = feature(f"type: FLOAT num_stats {{ {COMMON} histograms {{ num_nan: 5 }} }}")
    assert isinstance(found.detail, Numbers)
    assert math.isnan(found.detail.mean)
    assert (found.detail.nan, found.histogram) == (5, ())


def test_bytes() -> None:
    found = feature(
        f"""type: STRING string_stats {{ {COMMON} unique: 2 avg_length: 1.5 invalid_utf8_count: 1
        top_values {{ value: "a" frequency: 4 }} top_values {{ value: "b" frequency: 1 }}
        rank_histogram {{ buckets {{ sample_count: 4 }} buckets {{ sample_count: 1 }} }} }}"""
    )
    assert found.type == "bytes"
    assert found.detail == Texts(2, 1.5, 1, (("a", 4.0), ("b", 1.0)))
    assert found.histogram == (4, 1)


def test_numbers_that_are_categories_are_told_as_texts() -> None:
    found = feature(f"type: INT string_stats {{ {COMMON} unique: 2 }}")
    assert found.type == "int64"
    assert isinstance(found.detail, Texts)


def test_images() -> None:
    found = feature(
        f"type: BYTES bytes_stats {{ {COMMON} avg_num_bytes: 5 min_num_bytes: 1 max_num_bytes: 9 }}"
    )
    assert (found.type, found.detail) == ("picture", Image(5, 1, 9))


@pytest.mark.parametrize("text", ["type: STRING", "type: FLOAT num_stats { }", "type: STRUCT"])
def test_features_without_values_have_no_detail(text: str) -> None:
    found = feature(text)
    assert (found.detail, found.histogram, found.values) == (None, (), 0)


def lists(count: int) -> Any:
    return text_format.Parse(
        f"datasets {{ num_examples: {count} }}", statistics_pb2.DatasetFeatureStatisticsList()
    )


def test_several_become_one_with_their_names() -> None:
    one = lists(1)
    together = named([("train", one), ("test", lists(2))])
    assert [(each.name, each.num_examples) for each in together.datasets] == [
        ("train", 1),
        ("test", 2),
    ]
    assert one.datasets[0].name == ""
    text = render_proto(together)
    assert text_format.Parse(text, statistics_pb2.DatasetFeatureStatisticsList()) == together


def test_bytes_that_are_no_statistics_are_told() -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_proto(b"\xff\xff\xff")


def test_the_text_form_keeps_letters_as_they_are() -> None:
    together = named([("größe ▁the", lists(1))])
    assert 'name: "größe ▁the"' in render_proto(together)
