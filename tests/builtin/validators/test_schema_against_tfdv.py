"""The same data, judged by TFDV and by us: both object, or neither does."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from tfrecreg.builtin.schemas.validator import SchemaValidator
from tfrecreg.core.check.scan.interface import Shard, Target
from tfrecreg.core.example.model import Example, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.records.batch import RecordBatch, StreamEnd
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.findings import Finding, Severity

B, F, N = bytes_feature, float_feature, int64_feature
INF, NAN = float("inf"), float("nan")

# NumPy warns while TFDV takes the variance of infinity.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

REQUIRED = "presence { min_fraction: 1 min_count: 1 }"

SAME: list[tuple[str, list[Example]]] = [
    (f"type: INT {REQUIRED} shape {{ dim {{ size: 1 }} }}", [{"x": N(1)}, {"x": N(2)}]),
    (f"type: INT {REQUIRED}", [{"x": N(1)}, {}]),
    (f"type: INT {REQUIRED}", [{"x": N(1)}, {"x": unset_feature()}]),
    (f"type: INT {REQUIRED}", [{"x": N(1)}, {"x": N([])}]),
    (f"type: INT {REQUIRED} shape {{}}", [{"x": N([1, 2])}]),
    (f"type: INT {REQUIRED} shape {{}}", [{"x": N([])}]),
    (f"type: INT {REQUIRED} shape {{ dim {{ size: 2 }} dim {{ size: 3 }} }}", [{"x": N(range(6))}]),
    (f"type: INT {REQUIRED} shape {{ dim {{ size: 2 }} dim {{ size: 3 }} }}", [{"x": N(range(5))}]),
    ("type: INT value_count { min: 1 }", [{"x": N([])}]),
    ("type: INT value_count { min: 1 }", [{"x": N(1)}, {}]),
    ("type: INT value_count { max: 1 }", [{"x": N([1, 2])}]),
    ("type: INT value_counts { value_count { max: 1 } }", [{"x": N([1, 2])}]),
    ("type: INT presence { min_fraction: 0.5 }", [{"x": N(1)}, {}]),
    ("type: INT presence { min_fraction: 0.5 }", [{"x": N(1)}, {}, {}]),
    ("type: INT presence { min_count: 2 }", [{"x": N(1)}, {}, {}]),
    ("type: INT", [{"x": F(1)}]),
    ("type: INT", [{"x": F([])}]),
    ("type: STRUCT", [{"x": N(1)}]),
    ("type: INT", [{"x": N(1), "z": unset_feature()}]),
    ("type: INT lifecycle_stage: DISABLED", [{"x": F(1)}]),
    ("type: INT lifecycle_stage: PLANNED presence { min_fraction: 1 }", [{}, {}]),
    ("type: INT int_domain { min: 0 max: 9 }", [{"x": N(9)}, {"x": N(10)}]),
    ("type: INT int_domain { min: 0 max: 9 }", [{"x": N([0, 9])}]),
    ("type: BYTES int_domain { min: 0 max: 9 }", [{"x": B(b" 5")}, {"x": B(b"+5")}]),
    ("type: BYTES int_domain { min: 0 max: 9 }", [{"x": B(b"12")}]),
    ("type: BYTES int_domain {}", [{"x": B(b"x")}]),
    ("type: FLOAT float_domain { min: 0 max: 1 }", [{"x": F([0, 1])}]),
    ("type: FLOAT float_domain { min: 0 max: 1 }", [{"x": F(1.5)}]),
    ("type: FLOAT float_domain { min: 0 max: 1 disallow_inf: true }", [{"x": F(INF)}]),
    ("type: FLOAT float_domain { disallow_inf: true }", [{"x": F(NAN)}, {"x": F(1)}]),
    ("type: FLOAT float_domain { disallow_nan: true }", [{"x": F(NAN)}]),
    ("type: FLOAT float_domain { min: 0 max: 1 }", [{"x": F(NAN)}, {"x": F(1)}]),
    ("type: BYTES float_domain { min: 0 max: 9 }", [{"x": B(b"1e1")}]),
    ("type: BYTES float_domain { min: 0 max: 9 }", [{"x": B(b"1e0")}]),
    ("type: BYTES string_domain { value: 'a' }", [{"x": B(b"a")}]),
    ("type: BYTES string_domain { value: 'a' }", [{"x": B(b"a")}, {"x": B(b"b")}]),
    ("type: BYTES string_domain { value: 'a' }", [{"x": B(b"\xff")}]),
    ("type: BYTES string_domain {}", [{"x": B(b"a")}]),
    ("type: BYTES bool_domain { true_value: 'y' false_value: 'n' }", [{"x": B(b"y")}]),
    ("type: BYTES bool_domain { true_value: 'y' false_value: 'n' }", [{"x": B(b"q")}]),
    ("type: FLOAT bool_domain {}", [{"x": F(0.5)}, {"x": F(1)}, {"x": F(0)}]),
    ("type: BYTES image_domain { max_image_byte_size: 4 }", [{"x": B(b"1234")}]),
    ("type: BYTES image_domain { max_image_byte_size: 3 }", [{"x": B(b"1234")}]),
    ("type: BYTES unique_constraints { min: 2 max: 3 }", [{"x": B(b"a")}, {"x": B(b"b")}]),
    ("type: BYTES unique_constraints { min: 2 max: 3 }", [{"x": B(b"a")}, {"x": B(b"a")}]),
    ("type: BYTES unique_constraints { min: 1 max: 2 }", [{"x": B(list("abcb"))}]),
    (
        "type: INT int_domain { is_categorical: true } unique_constraints { min: 1 max: 1 }",
        [{"x": N([1, 2])}],
    ),
    (
        "type: BYTES string_domain { value: 'a' } distribution_constraints { min_domain_mass: .5 }",
        [{"x": B(b"a")}, {"x": B(b"b")}],
    ),
    (
        "type: BYTES string_domain { value: 'a' } distribution_constraints { min_domain_mass: .5 }",
        [{"x": B(b"a")}, {"x": B([b"b", b"c"])}],
    ),
]

SPARSE = """
feature { name: "i" type: INT } feature { name: "v" type: FLOAT }
sparse_feature { name: "s" index_feature { name: "i" } value_feature { name: "v" } %s }
"""

WHOLE: list[tuple[str, list[Example]]] = [
    (SPARSE % "", [{"i": N([0, 1]), "v": F([1, 2])}]),
    (SPARSE % "", [{"i": N([0, 1]), "v": F([1])}, {"i": N(0), "v": F(1)}]),
    (SPARSE % "", [{"i": N([0, 1])}, {"i": N(0), "v": F(1)}]),
    (SPARSE % "", [{"v": F([0, 1])}, {"i": N(0), "v": F(1)}]),
    ('feature { name: "x" type: INT } dataset_constraints { min_examples_count: 2 }',
     [{"x": N(1)}, {"x": N(1)}]),
    ('feature { name: "x" type: INT } dataset_constraints { min_examples_count: 3 }',
     [{"x": N(1)}, {"x": N(1)}]),
]  # fmt: skip
"""Whole schemas."""

STRICTER: list[tuple[str, list[Example]]] = [
    # TFDV takes whole numbers with a bool domain for categories and does not look at their range.
    ("type: INT bool_domain {}", [{"x": N(2)}]),
]

WHOLE_STRICTER = 'feature { name: "x" type: INT } dataset_constraints { max_examples_count: 1 }'
"""TFDV has the field and does not look at it."""

MILDER: list[tuple[str, list[Example]]] = [
    # To TFDV a shape says as well that the feature is in every example.
    ("type: INT shape {}", [{"x": N(1)}, {"y": N(1)}]),
]


def ours(schema: str, examples: list[Example]) -> bool:
    """Whether we find an error."""
    payloads = [encode(example) for example in examples]
    target = Target("d", "files", "", (), None, None, schema, "s.pbtxt", None)
    shard = Shard("", 0, "s", LocalStorage("/"), "s", None, None, None)
    validator = SchemaValidator()
    visitor = validator.begin(target, {})(shard)
    starts = [sum(map(len, payloads[:number])) for number in range(len(payloads))]
    lengths = [len(payload) for payload in payloads]
    visitor.batch(RecordBatch(0, starts, lengths, starts, b"".join(payloads)))
    part = visitor.close(StreamEnd("none", 0, 0, len(payloads), 0, None, None))
    found = validator.finish(target, [(shard, part)])
    return any(isinstance(f, Finding) and f.severity is Severity.ERROR for f in found)


@pytest.fixture(scope="module")
def tfdv() -> Any:
    return pytest.importorskip("tensorflow_data_validation")


def theirs(tfdv: Any, schema: str, examples: list[Example]) -> bool:
    """Whether TFDV finds an anomaly."""
    coder = importlib.import_module("tfx_bsl.coders.example_coder")
    text_format = importlib.import_module("google.protobuf.text_format")
    schema_pb2 = importlib.import_module("tensorflow_metadata.proto.v0.schema_pb2")
    stats = importlib.import_module("tensorflow_data_validation.statistics.stats_impl")
    message = text_format.Parse(schema, schema_pb2.Schema())
    payloads = [encode(example) for example in examples]
    batch = coder.ExamplesToRecordBatchDecoder().DecodeBatch(payloads)
    seen = stats.generate_statistics_in_memory(batch, tfdv.StatsOptions(schema=message))
    anomalies = tfdv.validate_statistics(seen, message)
    return bool(anomalies.anomaly_info) or anomalies.HasField("dataset_anomaly_info")


def declared(body: str) -> str:
    return f'feature {{ name: "x" {body} }} feature {{ name: "y" type: INT }}'


def test_both_object_or_neither_does(tfdv: Any) -> None:
    differ = [
        (body, examples)
        for body, examples in SAME
        if ours(declared(body), examples) != theirs(tfdv, declared(body), examples)
    ]
    assert differ == []
    verdicts = {ours(declared(body), examples) for body, examples in SAME}
    assert verdicts == {True, False}


def test_both_object_to_what_is_said_of_more_than_a_feature(tfdv: Any) -> None:
    differ = [
        (schema, examples)
        for schema, examples in WHOLE
        if ours(schema, examples) != theirs(tfdv, schema, examples)
    ]
    assert differ == []


def test_where_we_are_stricter_is_known(tfdv: Any) -> None:
    for body, examples in STRICTER:
        assert ours(declared(body), examples)
        assert not theirs(tfdv, declared(body), examples)
    two: list[Example] = [{"x": N(1)}, {"x": N(1)}]
    assert ours(WHOLE_STRICTER, two)
    assert not theirs(tfdv, WHOLE_STRICTER, two)


def test_where_we_are_milder_is_known(tfdv: Any) -> None:
    for body, examples in MILDER:
        assert not ours(declared(body), examples)
        assert theirs(tfdv, declared(body), examples)
