"""Statistics are those that TFDV makes of the same files, where it counts, and close elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from statistics_support import (
    CATEGORIES,
    IMAGES,
    alike_examples,
    counted_differences,
    dealt,
    differences,
    needs_tfdv,
    odd_examples,
    ours,
    theirs,
    write,
)

from tfrecreg.builtin.statistics.summary import Texts, parse_proto, render_proto, summarize
from tfrecreg.builtin.statistics.tfdv import load_tfdv
from tfrecreg.core.example.values import float_feature, int64_feature

FLOATS = 'feature { name: "share" type: FLOAT float_domain { is_categorical: true } }'
DERIVED = """
feature { name: "ragged" type: INT int_domain { min: -5 max: 50 } }
feature { name: "binary" type: BYTES }
feature { name: "share" type: FLOAT }
feature { name: "flag" type: INT }
feature { name: "text" type: BYTES }
sparse_feature {
  name: "sparse" index_feature { name: "ragged" } value_feature { name: "binary" }
}
sparse_feature {
  name: "pair" index_feature { name: "unset" } index_feature { name: "flag" }
  value_feature { name: "float" }
}
weighted_feature {
  name: "weighted" feature { step: "text" } weight_feature { step: "share" }
}
feature { name: "unset" type: INT }
feature { name: "float" type: FLOAT }
"""


@pytest.fixture(autouse=True)
def tfdv() -> None:
    needs_tfdv()


@pytest.mark.slow
@pytest.mark.parametrize("schema", [None, IMAGES + CATEGORIES], ids=["no schema", "schema"])
@pytest.mark.parametrize("examples", [odd_examples, alike_examples])
def test_of_examples_of_every_kind(tmp_path: Path, schema, examples) -> None:
    pattern = write(tmp_path, *dealt(examples(700), 3))
    found = ours(pattern, schema)
    assert counted_differences(theirs(pattern, schema), found.proto) == []
    assert found.examples == 700
    assert not found.left_out


@pytest.mark.medium
def test_what_tfdv_estimates_is_close(tmp_path: Path) -> None:
    """Of numbers that are spread evenly, so that an error of the rank is one of the number."""
    pattern = write(tmp_path, *dealt(alike_examples(900), 2))
    protos = (theirs(pattern), ours(pattern).proto)
    assert counted_differences(*protos) == []
    stats = [
        {each.path.step[0]: each.num_stats for each in proto.datasets[0].features}
        for proto in protos
    ]
    for name in ("box", "label"):
        one, two = (side[name] for side in stats)
        allowed = 0.02 * (one.max - one.min)
        few = 0.02 * one.common_stats.tot_num_values
        for left, right in zip(one.histograms, two.histograms, strict=True):
            counts = [[each.sample_count for each in side.buckets] for side in (left, right)]
            assert (left.type, counts[0]) == (right.type, pytest.approx(counts[1], abs=few))
        assert two.median == pytest.approx(one.median, abs=allowed)
        for left, right in zip(one.histograms[1].buckets, two.histograms[1].buckets, strict=True):
            assert right.high_value == pytest.approx(left.high_value, abs=allowed)


@pytest.mark.medium
def test_numbers_of_type_float_as_categories(tmp_path: Path) -> None:
    shares = [0.1, 2.0, 2.0, -1.5, 2.0, 0.1]
    pattern = write(tmp_path, *dealt(({"share": float_feature(x)} for x in shares), 2))
    found = ours(pattern, FLOATS).proto
    assert counted_differences(theirs(pattern, FLOATS, sketches=True), found) == []
    (feature,) = summarize(found)
    assert isinstance(feature.detail, Texts)
    assert feature.detail.top == (("2", 3.0), ("0.1", 2.0), ("-1.5", 1.0))


@pytest.mark.medium
def test_sparse_and_weighted_features(tmp_path: Path) -> None:
    pattern = write(tmp_path, *dealt(odd_examples(200), 2))
    found = ours(pattern, IMAGES + DERIVED).proto
    assert counted_differences(theirs(pattern, IMAGES + DERIVED), found) == []
    names = {each.path.step[0] for each in found.datasets[0].features if each.custom_stats}
    assert names == {"sparse", "pair", "weighted"}


@pytest.mark.medium
def test_an_image_domain_of_what_is_no_bytes(tmp_path: Path) -> None:
    examples = [{"image": int64_feature(each), "label": int64_feature(each)} for each in range(50)]
    pattern = write(tmp_path, *dealt(examples, 1))
    assert counted_differences(theirs(pattern, IMAGES), ours(pattern, IMAGES).proto) == []


@pytest.mark.medium
def test_the_text_form_is_read_by_tfdv_and_by_us(tmp_path: Path) -> None:
    found = ours(write(tmp_path, *dealt(odd_examples(50), 1)))
    path = tmp_path / "statistics.pbtxt"
    path.write_text(render_proto(found.proto), encoding="utf-8")
    assert differences(load_tfdv().load_stats_text(str(path)), found.proto) == []
    data = found.proto.SerializeToString(deterministic=True)
    assert parse_proto(data).SerializeToString(deterministic=True) == data


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.parametrize(
    ("pattern", "examples"),
    [
        ("tfx/components/testdata/csv_example_gen/Split-train/*.gz", None),
        ("tfx/components/testdata/external/tfrecord/data_tfrecord-*", 15_000),
        ("tfx/components/testdata/penguin/data/Split-train/*.gz", 234),
        ("tfx/components/testdata/transform/transformed_examples/Split-train/*.gz", 9_909),
        ("tfx/examples/mnist/data/mnist.tfrecord", 1_000),
        ("tfx/examples/tfjs_next_page_prediction/data/data.tfrecord.gz", 100),
        ("raccoon/data/test.record", 40),
        ("ydf/adult_test.recordio.gz", 9_769),
    ],
)
def test_numbers_of_real_data(realdata: Path, pattern: str, examples) -> None:
    path = str(realdata / "tfrecord" / pattern)
    found = ours(path)
    assert examples in (found.examples, None)
    assert counted_differences(theirs(path), found.proto) == []
