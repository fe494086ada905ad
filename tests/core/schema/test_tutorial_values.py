"""Every type of value that TensorFlow's TFRecord tutorial writes, on its way through the schema.

Written by TensorFlow's own `tf.train.Example`; a draft is inferred, the record passes it, and the
reader that follows from the draft gives the value back.
"""

from __future__ import annotations

import enum
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from check_support import framed
from tf_spec_support import feature_spec

from tfrecreg.builtin.look.head import head
from tfrecreg.core.check.infer import infer_schema
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.run import check
from tfrecreg.core.registry.shardset.target import find_target
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.workers.local import LocalEngine


class Colour(enum.IntEnum):
    RED = 0
    BLUE = 2


class Case(NamedTuple):
    """A value, the list that the tutorial puts it into, and what comes of it."""

    kind: str
    value: Any
    read: Any
    """What the reader gives: a scalar, or a list."""
    declared: str
    """Of the draft, in one line."""
    shown: str
    """How `head` shows it."""


def float32(number: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", number))[0])


SCALAR = "presence { min_fraction: 1 min_count: 1 } shape {}"
PAIR = "presence { min_fraction: 1 min_count: 1 } shape { dim { size: 2 } }"
GOAT = "Ziege ü".encode()
FINITE = "float_domain { disallow_nan: true disallow_inf: true }"

CASES: dict[str, Case] = {
    "bool true": Case("int64_list", True, 1, f"type: INT {SCALAR}", "1"),
    "bool false": Case("int64_list", False, 0, f"type: INT {SCALAR}", "0"),
    "enum": Case("int64_list", Colour.BLUE, 2, f"type: INT {SCALAR}", "2"),
    "int32": Case("int64_list", np.int32(-(2**31)), -(2**31), f"type: INT {SCALAR}", "-2147483648"),
    "uint32": Case("int64_list", np.uint32(2**32 - 1), 2**32 - 1, f"type: INT {SCALAR}", ""),
    "int64": Case("int64_list", -(2**63), -(2**63), f"type: INT {SCALAR}", "-9223372036854775808"),
    "uint64": Case("int64_list", np.uint64(2**63 - 1), 2**63 - 1, f"type: INT {SCALAR}", ""),
    "float": Case("float_list", 0.5, 0.5, f"type: FLOAT {SCALAR} {FINITE}", "0.5"),
    "double": Case("float_list", 0.1, float32(0.1), f"type: FLOAT {SCALAR} {FINITE}", "0.1"),
    "string": Case("bytes_list", b"goat", b"goat", f"type: BYTES {SCALAR}", "goat"),
    "unicode": Case("bytes_list", GOAT, GOAT, f"type: BYTES {SCALAR}", "Ziege ü"),
    "bytes": Case("bytes_list", b"\x00\xff", b"\x00\xff", f"type: BYTES {SCALAR}", "00 ff"),
    "list of ints": Case("int64_list", [3, -4], [3, -4], f"type: INT {PAIR}", "3, -4"),
    "list of bools": Case("int64_list", [True, False], [1, 0], f"type: INT {PAIR}", "1, 0"),
    "list of floats": Case("float_list", [0.5, 2], [0.5, 2], f"type: FLOAT {PAIR} {FINITE}", "0.5"),
    "list of strings": Case("bytes_list", [b"a", b"b"], [b"a", b"b"], f"type: BYTES {PAIR}", ""),
}  # fmt: skip

TENSORS: dict[str, tuple[Any, str, str]] = {
    "float matrix": ([[1.5, 2.5, 3.5], [4.5, 5.5, 6.5]], "float32", "float32[2, 3]"),
    "int vector": ([1, -2, 3], "int32", "int32[3]"),
    "bool scalar": (True, "bool", "bool[]"),
    "strings": ([["a", "b"]], "string", "string[1, 2]"),
    "doubles": ([0.1], "float64", "float64[1]"),
    "unsigned ids": ([2**64 - 1], "uint64", "uint64[1]"),
}


@pytest.fixture(scope="module")
def tf() -> Any:
    return pytest.importorskip("tensorflow")


def example(tf: Any, kind: str, value: Any) -> bytes:
    """As the tutorial's `_bytes_feature`, `_float_feature` and `_int64_feature` make it."""
    values = value if isinstance(value, list) else [value]
    lists = {
        "bytes_list": tf.train.BytesList,
        "float_list": tf.train.FloatList,
        "int64_list": tf.train.Int64List,
    }
    try:
        listed = lists[kind](value=values)
    except ValueError:  # protobuf 6 takes no bool for an integer
        listed = lists[kind](value=[int(each) for each in values])
    feature = tf.train.Feature(**{kind: listed})
    features = tf.train.Features(feature={"feature": feature})
    return bytes(tf.train.Example(features=features).SerializeToString())


class Trip(NamedTuple):
    draft: str
    parsed: Any
    shown: tuple[str, int, str]
    """Kind, count and text of `head`."""


def round_trip(tf: Any, folder: Path, payload: bytes) -> Trip:
    """Infer a schema from a file of the payload, check the file against it, parse it, show it."""
    path = folder / "values.tfrecord"
    path.write_bytes(framed(payload, payload))
    target = find_target(str(path))
    draft = infer_schema(target, LocalEngine(1))
    schema_path = folder / "schema.pbtxt"
    schema_path.write_text(draft)
    (report,) = check(
        [str(path)], options=CheckOptions(only=("crc", "schema"), schema=str(schema_path))
    )
    assert (report.status, report.findings) == ("pass", ())
    assert "schema" in report.validators
    schema = parse_schema(draft)
    spec = feature_spec(tf, schema)
    dataset = tf.data.TFRecordDataset(str(path)).map(
        lambda record: tf.io.parse_single_example(record, spec)
    )
    parsed = [np.asarray(each["feature"].numpy(), each["feature"].dtype.as_numpy_dtype).tolist()
              for each in dataset]  # fmt: skip
    assert parsed[0] == parsed[1]
    (record,) = head(target, 1)
    assert record.features is not None
    (feature,) = record.features
    return Trip(draft, parsed[0], (feature.kind, feature.count, feature.shown))


@pytest.mark.parametrize("name", CASES)
def test_a_value_of_the_tutorial_comes_back(tf: Any, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    trip = round_trip(tf, tmp_path, example(tf, case.kind, case.value))
    assert trip.parsed == case.read
    lines = [line for line in trip.draft.splitlines() if not line.startswith("#")]
    declared = " ".join(" ".join(lines).split())
    assert declared == f'feature {{ name: "feature" {case.declared} }}'
    kind, count, shown = trip.shown
    assert kind == case.kind.removesuffix("_list")
    assert count == (len(case.value) if isinstance(case.value, list) else 1)
    assert case.shown in shown


def test_a_number_that_no_int64_holds_is_refused_by_tensorflow(tf: Any) -> None:
    with pytest.raises(ValueError, match="out of range"):
        example(tf, "int64_list", 2**63)


@pytest.mark.parametrize("name", TENSORS)
def test_a_serialised_tensor_is_recognised_with_dtype_and_shape(
    tf: Any, tmp_path: Path, name: str
) -> None:
    value, dtype, described = TENSORS[name]
    tensor = tf.constant(value, dtype)
    payload = example(tf, "bytes_list", tf.io.serialize_tensor(tensor).numpy())
    trip = round_trip(tf, tmp_path, payload)
    assert f"# serialized tensors, {described}, in 2 of 2 values" in trip.draft
    assert "string_domain" not in trip.draft
    assert trip.shown[0] == "bytes"
    assert f"tensor, {described}" in trip.shown[2]
    again = tf.io.parse_tensor(trip.parsed, dtype)
    assert again.shape == tensor.shape
    assert again.numpy().tolist() == tensor.numpy().tolist()


def test_a_list_of_another_length_each_time_is_read_as_it_is(tf: Any, tmp_path: Path) -> None:
    path = tmp_path / "values.tfrecord"
    lists = [[1], [1, 2, 3], []]
    path.write_bytes(framed(*(example(tf, "int64_list", values) for values in lists)))
    draft = infer_schema(find_target(str(path)), LocalEngine(1))
    assert "# 0 to 3 values in an example" in draft
    spec = feature_spec(tf, parse_schema(draft))
    dataset = tf.data.TFRecordDataset(str(path))
    found = [
        tf.sparse.to_dense(tf.io.parse_single_example(each, spec)["feature"]).numpy().tolist()
        for each in dataset
    ]
    assert found == lists
