"""Distances are those of TFDV."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format
from statistics_support import dealt, needs_tfdv, ours, write
from tensorflow_metadata.proto.v0 import schema_pb2

from tfrecreg.builtin.statistics.tfdv import load_tfdv
from tfrecreg.builtin.statistics.validators import comparators, distances
from tfrecreg.core.example.values import bytes_feature, float_feature

RANDOM = np.random.default_rng(1)
NORMAL, SHIFTED = RANDOM.normal(0, 1, 500).tolist(), RANDOM.normal(0.5, 2, 900).tolist()
NAN, INF = [math.nan] * 50, [math.inf] * 40
CASES = {
    "normal": (NORMAL, SHIFTED),
    "the same": (NORMAL, NORMAL),
    "apart": ([1.0, 2.0, 3.0], [7.0, 8.5]),
    "constant": ([28.0] * 9, [28.0] * 5),
    "two constants": ([28.0] * 9, [29.0] * 5),
    "constant in a range": ([0.5] * 9, NORMAL),
    "few": ([0.0, 0.0, 1.0, 2.0], [0.0, 1.0, 1.0, 2.0, 2.0]),
    "NaN": (NORMAL + NAN, SHIFTED + NAN),
    "NaN, same bounds": (NORMAL + NAN, NORMAL + 3 * NAN),
    "infinite": (NORMAL + INF, [*SHIFTED, -math.inf]),
    "NaN alone": (NAN, NORMAL),
    "nothing": ([], NORMAL),
    "texts": ([b"a"] * 5 + [b"b"] * 2, [b"a"] * 2 + [b"c"] * 9),
    "bytes": ([b"\xff"] * 5 + [b"\xfe"] * 2, [b"\xff"] * 2 + [b"a"] * 9),
    "texts and numbers": ([b"a", b"b"], NORMAL),
}
MEASURES = {
    "infinity_norm { threshold: 0.1 }": "L-infinity",
    "normalized_abs_difference { threshold: 0.1 }": "normalized absolute difference",
    "jensen_shannon_divergence { threshold: 0.1 }": "Jensen-Shannon",
    "jensen_shannon_divergence { threshold: 0.1 source { type: QUANTILES } }": "Jensen-Shannon",
}
NUMBERS = {1: "L-infinity", 2: "Jensen-Shannon", 3: "normalized absolute difference"}


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("case", CASES)
def test_equals_that_of_tfdv(tmp_path: Path, case: str, measure: str) -> None:
    needs_tfdv()
    one, other = (
        statistics(tmp_path / str(number), values) for number, values in enumerate(CASES[case])
    )
    kind = "FLOAT" if isinstance([*CASES[case][0], 0.0][0], float) else "BYTES"
    schema = text_format.Parse(
        f'feature {{ name: "x" type: {kind} drift_comparator {{ {measure} }} }}',
        schema_pb2.Schema(),
    )
    found, one_sided = distances(one, other, comparators(schema, one, "drift", None))
    said = load_tfdv().validate_statistics(one, schema, previous_statistics=other)
    expected = [each for info in said.drift_skew_info for each in info.drift_measurements]
    assert [each.measure for each in found] == [NUMBERS[each.type] for each in expected]
    assert {each.measure for each in found} <= {MEASURES[measure]}
    assert one_sided == []
    for mine, their in zip(found, expected, strict=True):
        assert mine.value == pytest.approx(their.value, abs=1e-9)
        assert mine.threshold == their.threshold


def statistics(folder: Path, values: list) -> Any:
    folder.mkdir()
    feature = bytes_feature if values and not isinstance(values[0], float) else float_feature
    examples = [{"x": feature(each)} for each in values] or [{"x": feature([])}]
    return ours(write(folder, *dealt(examples, 1))).proto


def test_a_feature_of_one_side_is_named(tmp_path: Path) -> None:
    schema = text_format.Parse(
        'feature { name: "y" drift_comparator { infinity_norm { threshold: 0.1 } } }'
        'feature { name: "x" drift_comparator { infinity_norm { threshold: 0.1 } } }'
        'feature { name: "z" drift_comparator { infinity_norm { threshold: 0.1 } } }',
        schema_pb2.Schema(),
    )
    proto = statistics(tmp_path / "x", [b"a"])
    empty = type(proto)()
    empty.datasets.add(num_examples=1)
    wanted = comparators(schema, proto, "drift", None)
    assert distances(proto, empty, wanted) == ([], ["x"])
    assert distances(empty, proto, wanted) == ([], ["x"])
