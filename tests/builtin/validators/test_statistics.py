"""TFDV's verdict over whole splits: its anomalies by code, its text, the records behind them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from scan_support import write_examples
from tensorflow_metadata.proto.v0.anomalies_pb2 import AnomalyInfo

from tfrecreg.builtin.statistics import tfdv
from tfrecreg.cli.main import main
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.run import check
from tfrecreg.core.example.model import Feature
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.values.codes.pages import anomaly_code
from tfrecreg.core.values.config import FailOn

# Not `importorskip`: whoever collects tests would import TensorFlow.
pytestmark = pytest.mark.skipif(
    find_spec("tensorflow_data_validation") is None, reason="the extra `tfdv` is not installed"
)


def judged(folder: Path, schema: str, examples: Sequence[dict[str, Feature]], *only: str) -> Report:
    (folder / "s.pbtxt").write_text(schema)
    path = write_examples(folder / "d-train.tfrecord-00000-of-00001", examples)
    options = CheckOptions(
        only=only or ("statistics",), schema=str(folder / "s.pbtxt"), fail_on=FailOn.ERROR
    )
    (report,) = check([str(path)], options=options)
    return report


def feature(text: str, kind: str = "INT") -> str:
    return f'feature {{ name: "x" type: {kind} {text} }}\n'


INT = int64_feature
FLOAT = float_feature
BYTES = bytes_feature
ONE = "value_count { min: 1 max: 1 }"

SEEN: list[tuple[int, str, list[dict[str, Feature]]]] = [
    (52, feature('bool_domain { true_value: "1" }', "FLOAT"), [{"x": FLOAT(0.5)}]),
    (9, feature('bool_domain { true_value: "y" false_value: "n" }', "BYTES"), [{"x": BYTES("?")}]),
    (13, feature('string_domain { value: "a" }', "BYTES"), [{"x": BYTES(b"\xff\xfe")}]),
    (14, feature('string_domain { value: "a" }', "BYTES"), [{"x": BYTES("b")}]),
    (15, feature("value_count { max: 2 }"), [{"x": INT([1, 2, 3])}, {"x": INT(1)}]),
    (16, feature("presence { min_fraction: 0.9 }"), [{"x": INT(1)}, {"y": INT(1)}]),
    (17, feature("presence { min_count: 5 }"), [{"x": INT(1)}, {"x": INT(1)}]),
    (18, feature("value_count { min: 2 }"), [{"x": INT([1, 2])}, {"x": INT(1)}]),
    (22, feature("float_domain { max: 1.0 }", "FLOAT"), [{"x": FLOAT(1.5)}]),
    (24, feature("float_domain { min: 1.0 }", "FLOAT"), [{"x": FLOAT(0.5)}]),
    (25, feature("float_domain { min: 1.0 }", "BYTES"), [{"x": BYTES("no number")}]),
    (28, feature("int_domain { max: 3 }"), [{"x": INT(4)}]),
    (30, feature("int_domain { max: 3 }", "BYTES"), [{"x": BYTES("no number")}]),
    (32, feature("int_domain { min: 3 }"), [{"x": INT(2)}]),
    (35, feature("presence { min_fraction: 1.0 min_count: 1 }"), [{"y": INT(1)}]),
    (36, feature(""), [{"x": INT(1), "news": INT(1)}]),
    (53, feature("float_domain { disallow_nan: true }", "FLOAT"), [{"x": FLOAT(float("nan"))}]),
    (62, feature("float_domain { disallow_inf: true }", "FLOAT"), [{"x": FLOAT(float("inf"))}]),
    (51, feature("") + "dataset_constraints { min_examples_count: 9 }", [{"x": INT(1)}]),
    (59, feature("unique_constraints { max: 1 }", "BYTES"), [{"x": BYTES("a")}, {"x": BYTES("b")}]),
    (60, feature("unique_constraints { min: 3 max: 9 }", "BYTES"), [{"x": BYTES("a")}]),
    (70, feature(""), [{"x": BYTES("a")}]),
    (80, feature("shape { dim { size: 2 } } presence { min_fraction: 1 }"), [{"x": INT(1)}]),
    (
        46,
        'feature { name: "v" type: INT }\nfeature { name: "i" type: INT }\n'
        'sparse_feature { name: "s" value_feature { name: "v" } index_feature { name: "i" } }',
        [{"v": INT([1, 2]), "i": INT(1)}],
    ),
    (
        45,
        'feature { name: "v" type: INT }\nfeature { name: "i" type: INT }\n'
        'sparse_feature { name: "s" value_feature { name: "v" } index_feature { name: "i" } }',
        [{"v": INT([1, 2])}],
    ),
    (
        44,
        'feature { name: "v" type: INT }\nfeature { name: "i" type: INT }\n'
        'sparse_feature { name: "s" value_feature { name: "v" } index_feature { name: "i" } }',
        [{"i": INT([1, 2])}],
    ),
]
"""Number of the type, schema, examples: what TFDV can be made to say of Examples."""


@pytest.mark.parametrize(
    ("number", "schema", "examples"),
    SEEN,
    ids=[AnomalyInfo.Type.Name(number).lower() for number, _, _ in SEEN],
)
def test_an_anomaly_is_found_under_its_code(tmp_path, number, schema, examples) -> None:
    report = judged(tmp_path, schema, examples)
    found = {finding.code: finding for finding in report.findings}
    assert anomaly_code(number) in found, [each.message for each in report.findings]
    finding = found[anomaly_code(number)]
    assert finding.rule == "tfdv-" + AnomalyInfo.Type.Name(number).lower().replace("_", "-")
    assert finding.message
    assert report.exit_code == 1


def test_records_that_are_in_order_have_no_anomaly(tmp_path) -> None:
    schema = feature(f"presence {{ min_fraction: 1 min_count: 1 }} {ONE} int_domain {{ max: 3 }}")
    report = judged(tmp_path, schema, [{"x": INT(n % 4)} for n in range(20)])
    assert report.findings == ()
    assert report.exit_code == 0
    (measure,) = [each for each in report.measures if each.name == "statistics.examples"]
    assert (measure.value, measure.text) == (20, "20 examples judged")


def test_the_verdict_is_that_of_tfdv_with_its_own_words(tmp_path) -> None:
    import tensorflow_data_validation as tfdv

    schema = (
        feature("int_domain { min: 0 max: 3 } presence { min_fraction: 1.0 min_count: 1 }")
        + 'feature { name: "label" type: BYTES string_domain { value: "cat" } }\n'
    )
    examples = [
        {"x": INT(n % 6), "label": BYTES("cat" if n % 3 else "dog"), "z": FLOAT(n)}
        for n in range(30)
    ]
    report = judged(tmp_path, schema, examples)
    batches = _record_batches(tmp_path, schema)
    statistics = tfdv.generate_statistics_from_dataframe(batches)
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0.schema_pb2 import Schema

    anomalies = tfdv.validate_statistics(statistics, text_format.Parse(schema, Schema()))
    expected = {
        (".".join(info.path.step), anomaly_code(reason.type), reason.description.rstrip(". "))
        for info in anomalies.anomaly_info.values()
        for reason in info.reason
    }
    found = {
        (each.locations[0].feature, each.code, each.message.partition(": ")[2])
        for each in report.findings
    }
    assert found == expected
    assert len(found) == 3


def _record_batches(folder: Path, schema: str) -> Any:
    """The same records as a table that TFDV reads by itself."""
    import pandas as pd

    return pd.DataFrame(
        {
            "x": [n % 6 for n in range(30)],
            "label": ["cat" if n % 3 else "dog" for n in range(30)],
            "z": [float(n) for n in range(30)],
        }
    )


def test_an_anomaly_names_the_records_where_the_schema_validator_ran(tmp_path) -> None:
    examples = [{"x": INT(9 if n in (3, 7) else 1)} for n in range(10)]
    report = judged(tmp_path, feature("int_domain { max: 3 }"), examples, "statistics", "schema")
    finding = next(each for each in report.findings if each.code == "SCH128")
    assert finding.count == 2
    assert [place.record for place in finding.locations] == [3, 7]
    alone = judged(tmp_path, feature("int_domain { max: 3 }"), examples)
    (finding,) = alone.findings
    assert [(place.split, place.feature, place.record) for place in finding.locations] == [
        ("train", "x", None)
    ]


def test_values_of_two_types_are_told_instead_of_statistics(tmp_path) -> None:
    report = judged(tmp_path, feature(""), [{"x": INT(1)}, {"x": BYTES("a")}])
    (finding,) = report.findings
    assert finding.code == "SCH170"
    assert finding.message == ("`x`: bytes values in some examples and int64 values in others")


def test_too_many_features_are_told_instead_of_statistics(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfrecreg.builtin.statistics.collect.MAX_FEATURES", 1)
    report = judged(tmp_path, feature(""), [{"x": INT(1), "y": INT(2)}])
    (finding,) = report.findings
    assert (finding.code, finding.rule) == ("SCH198", "too-many-features")
    assert finding.message == "more than 1 features, which statistics do not support"
    write_examples(tmp_path / "d-test.tfrecord-00000-of-00001", [{"x": INT(1), "y": INT(2)}])
    (report,) = check([str(tmp_path / "d-*")], options=CheckOptions(only=("drift",)))
    assert report.errors == (
        "the validator `drift` failed: the records have more than 1 features, which statistics do "
        "not support",
    )


def test_an_environment_leaves_out_what_it_does_not_have(tmp_path) -> None:
    schema = (
        'default_environment: "TRAINING"\ndefault_environment: "SERVING"\n'
        + feature('presence { min_fraction: 1.0 min_count: 1 } not_in_environment: "SERVING"')
        + 'feature { name: "y" type: INT }\n'
    )
    root = tmp_path / "registry"
    assert main(["init", str(root), "--no-dvc"]) == 0
    (root / "tfrecreg.toml").write_text(
        '[gates.default.limits.statistics]\nenvironments = { test = "SERVING" }\n'
    )
    (root / "s.pbtxt").write_text(schema)
    for split in ("train", "test"):
        write_examples(root / f"d-{split}.tfrecord-00000-of-00001", [{"y": INT(1)}])
    options = CheckOptions(only=("statistics",), schema=str(root / "s.pbtxt"))
    (report,) = check([str(root / "d-*")], registry=root, options=options)
    assert [(each.code, each.locations[0].split) for each in report.findings] == [
        ("SCH135", "train")
    ]


def test_it_runs_where_it_is_named_and_not_by_default(tmp_path) -> None:
    (tmp_path / "s.pbtxt").write_text(feature(""))
    path = write_examples(tmp_path / "d.tfrecord", [{"x": INT(1)}])
    (report,) = check([str(path)], options=CheckOptions(schema=str(tmp_path / "s.pbtxt")))
    assert "statistics" not in report.validators
    assert "drift" not in report.validators


def test_hostile_values_are_escaped_in_text_and_json(tmp_path, capsys) -> None:
    (tmp_path / "s.pbtxt").write_text(feature('string_domain { value: "a" }', "BYTES"))
    path = write_examples(tmp_path / "d.tfrecord", [{"x": BYTES("\x1b[31m\u202e")}])
    arguments = ["check", str(path), "--only", "statistics", "--schema", str(tmp_path / "s.pbtxt")]
    assert main(arguments) == 1
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert "\u202e" not in told
    assert main([*arguments, "--json"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["code"] == "SCH114"
    assert finding["message"].isprintable()


def test_images_that_are_too_large_are_counted_and_placed_by_the_schema(tmp_path: Path) -> None:
    from image_support import png

    schema = feature("shape {} image_domain { max_image_byte_size: 60 }", "BYTES")
    rows = [{"x": BYTES(png(3, 2) + bytes(60 * (number % 2)))} for number in range(42)]
    report = judged(tmp_path, schema, rows, "statistics", "schema")
    found = {each.code: each for each in report.findings}
    assert {"SCH179", "SCH006"} <= found.keys()
    assert found["SCH179"].count == found["SCH006"].count
    assert found["SCH179"].locations == found["SCH006"].locations


def test_a_check_that_asks_for_statistics_is_incomplete_without_tfdv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(name: str) -> object:
        return None if name == "tensorflow_data_validation" else find_spec(name)

    monkeypatch.setattr(tfdv, "find_spec", absent)
    (tmp_path / "s.pbtxt").write_text(feature(""))
    path = write_examples(tmp_path / "d-train.tfrecord-00000-of-00001", [{"x": INT(1)}])
    command = ["check", str(path), "--schema", str(tmp_path / "s.pbtxt"), "--json"]
    assert main([*command, "--only", "statistics"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert told["status"] == "error"
    (error,) = told["errors"]
    assert "TensorFlow Data Validation needs the extra `tfdv`, which is not installed" in str(error)
