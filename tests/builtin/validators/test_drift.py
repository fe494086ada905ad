"""Drift and skew: DRF001, DRF002 and DRF003, by the schema's comparators or sensible ones."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest
from scan_support import write_examples

from tfrecreg.builtin.statistics import tfdv
from tfrecreg.cli.main import main
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.run import check
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.values.config import FailOn
from tfrecreg.core.values.errors import FailureError, RefusedError, UsageError

LABELS = 'feature { name: "label" type: INT int_domain { min: 0 max: 9 is_categorical: true } }\n'


def examples(share: float, count: int = 400, seed: int = 1, name: str = "label") -> list:
    """So large a share of the label 1, the rest 0; and a height around 100 times the share."""
    rng = random.Random(seed)
    return [
        {
            name: int64_feature(int(rng.random() < share)),
            "height": float_feature(100 * share + rng.random()),
        }
        for _ in range(count)
    ]


def compared(folder: Path, schema: str = LABELS, *, against: str | None = None, **limits) -> Report:
    if limits:
        table = "\n".join(f"{name} = {json.dumps(value)}" for name, value in limits.items())
        (folder / "tfrecreg.toml").write_text(f"[gates.default.limits.drift]\n{table}\n")
    else:
        (folder / "tfrecreg.toml").write_text("")
    (folder / "s.pbtxt").write_text(schema)
    options = CheckOptions(
        only=("drift",),
        schema=str(folder / "s.pbtxt"),
        against=None if against is None else str(folder / against),
        fail_on=FailOn.WARNING,
    )
    (report,) = check([str(folder / "new-*")], registry=folder, options=options)
    return report


def features(report: Report) -> dict[str, list[str | None]]:
    found: dict[str, list[str | None]] = {}
    for finding in report.findings:
        found.setdefault(finding.code, []).append(finding.locations[0].feature)
    return found


@pytest.mark.medium
def test_labels_and_sizes_that_drifted_are_found_without_a_comparator(tmp_path) -> None:
    write_examples(tmp_path / "old-train.tfrecord-00000-of-00001", examples(0.5))
    write_examples(tmp_path / "new-train.tfrecord-00000-of-00001", examples(0.9))
    report = compared(tmp_path, against="old-*")
    assert features(report) == {"DRF001": ["height", "label"]}
    label = report.findings[1]
    assert label.message.startswith("split `train`, `label`: the L-infinity distance to `train` of")
    assert label.message.endswith("allowed 0.1")
    assert report.exit_code == 1
    assert "Jensen-Shannon" in report.findings[0].message


def test_the_same_distribution_is_no_finding_and_its_distance_is_told(tmp_path) -> None:
    write_examples(tmp_path / "old-train.tfrecord-00000-of-00001", examples(0.5, seed=1))
    write_examples(tmp_path / "new-train.tfrecord-00000-of-00001", examples(0.5, seed=1))
    report = compared(tmp_path, against="old-*")
    assert report.findings == ()
    (measure,) = [each for each in report.measures if each.name == "drift.drift.train"]
    assert measure.value == 0


def test_a_test_split_that_does_not_look_like_train_is_skew(tmp_path) -> None:
    train, test = examples(0.5, name="animal"), examples(0.1, seed=2, name="animal")
    write_examples(tmp_path / "new-train.tfrecord-00000-of-00001", train)
    write_examples(tmp_path / "new-test.tfrecord-00000-of-00001", test)
    report = compared(tmp_path, LABELS.replace("label", "animal"))
    assert features(report) == {"DRF002": ["animal", "height"]}
    assert {each.locations[0].split for each in report.findings} == {"test"}


def test_the_schemas_own_comparators_count_alone(tmp_path) -> None:
    schema = LABELS.replace(" }\n", " drift_comparator { infinity_norm { threshold: 0.6 } } }\n")
    write_examples(tmp_path / "old-train.tfrecord-00000-of-00001", examples(0.5))
    write_examples(tmp_path / "new-train.tfrecord-00000-of-00001", examples(0.9))
    assert compared(tmp_path, schema, against="old-*").findings == ()
    strict = schema.replace("0.6", "0.2")
    assert features(compared(tmp_path, strict, against="old-*")) == {"DRF001": ["label"]}


def test_a_feature_to_compare_that_is_missing_on_one_side_is_said(tmp_path) -> None:
    schema = LABELS.replace(" }\n", " drift_comparator { infinity_norm { threshold: 0.1 } } }\n")
    write_examples(tmp_path / "old-train.tfrecord-00000-of-00001", examples(0.5, name="other"))
    write_examples(tmp_path / "new-train.tfrecord-00000-of-00001", examples(0.5))
    assert features(compared(tmp_path, schema, against="old-*")) == {"DRF003": ["label"]}


def test_few_examples_are_not_compared_by_chance(tmp_path) -> None:
    write_examples(tmp_path / "old-train.tfrecord-00000-of-00001", examples(0.2, 20))
    write_examples(tmp_path / "new-train.tfrecord-00000-of-00001", examples(0.9, 20))
    report = compared(tmp_path, against="old-*")
    assert report.findings == ()
    assert "needs labels or sizes, and 100 examples on both sides" in report.measures[-1].text
    assert features(compared(tmp_path, against="old-*", min_examples=10))["DRF001"]


def test_the_threshold_is_a_limit_of_the_gate(tmp_path) -> None:
    write_examples(tmp_path / "old-train.tfrecord-00000-of-00001", examples(0.5))
    write_examples(tmp_path / "new-train.tfrecord-00000-of-00001", examples(0.55))
    loose = compared(tmp_path, against="old-*", threshold=1.0)
    assert "label" not in features(loose).get("DRF001", [])
    assert features(compared(tmp_path, against="old-*", threshold=0.01))["DRF001"]


def test_the_command_compares_with_what_against_names(tmp_path, capsys) -> None:
    write_examples(tmp_path / "old-train.tfrecord-00000-of-00001", examples(0.5))
    new = write_examples(tmp_path / "new-train.tfrecord-00000-of-00001", examples(0.9))
    arguments = ["check", str(new), "--skip", "inflation"]
    assert main([*arguments, "--against", str(tmp_path / "old-*"), "--fail-on", "warning"]) == 1
    told = capsys.readouterr().out
    assert "DRF001 drift" in told
    assert main([*arguments, "--against", str(tmp_path / "nothing-*")]) == 2
    assert "no file matches" in capsys.readouterr().err


def test_splits_that_have_nothing_in_common_do_not_pass(tmp_path, capsys) -> None:
    write_examples(tmp_path / "old-train.tfrecord-00000-of-00001", examples(0.5))
    write_examples(tmp_path / "new-val.tfrecord-00000-of-00001", examples(0.9))
    report = compared(tmp_path, against="old-*")
    (finding,) = report.findings
    assert (finding.code, finding.locations) == ("DRF004", ())
    assert finding.message == (
        f"nothing was compared with {tmp_path}/old-*, because its splits are `train`, "
        "but those of this target are `validation`"
    )
    arguments = ["check", str(tmp_path / "new-*"), "--against", str(tmp_path / "old-*")]
    assert main([*arguments, "--only", "drift"]) == 1
    assert "error DRF004 no-split-in-common: nothing was compared" in capsys.readouterr().out
    assert main([*arguments, "--only", "drift,crc", "--skip", "drift"]) == 0


def test_strings_are_compared_as_categories(tmp_path) -> None:
    def named(share: float) -> list:
        return [{"class/text": bytes_feature("a" if n < share * 200 else "b")} for n in range(200)]

    write_examples(tmp_path / "old-train.tfrecord-00000-of-00001", named(0.5))
    write_examples(tmp_path / "new-train.tfrecord-00000-of-00001", named(0.8))
    schema = 'feature { name: "class/text" type: BYTES }\n'
    report = compared(tmp_path, schema, against="old-*")
    assert features(report) == {"DRF001": ["class/text"]}
    assert "is 0.3," in report.findings[0].message


# The statistics of the baseline.


def test_a_baseline_that_has_no_statistics_ends_the_check(tmp_path: Path) -> None:
    write_examples(tmp_path / "new-train.tfrecord-00000-of-00001", examples(0.5, 5))
    write_examples(tmp_path / "no-train.tfrecord-00000-of-00001", [])
    with pytest.raises(UsageError, match=r"no-\*` has no Examples to compute statistics from"):
        compared(tmp_path, against="no-*")
    (tmp_path / "cut-train.tfrecord-00000-of-00001").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FailureError, match=r"`.*cut-\*` was not read completely: `"):
        compared(tmp_path, against="cut-*")
    mixed = [{"label": int64_feature(1)}, {"label": bytes_feature("1")}]
    write_examples(tmp_path / "two-train.tfrecord-00000-of-00001", mixed)
    with pytest.raises(RefusedError, match="`label` has bytes values in some examples and int64"):
        compared(tmp_path, against="two-*")


def test_a_comparison_needs_no_tfdv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow_data_validation", None)
    monkeypatch.setattr(tfdv, "find_spec", lambda name: None)
    old = write_examples(tmp_path / "old-train.tfrecord-00000-of-00001", examples(0.5))
    new = write_examples(tmp_path / "new-train.tfrecord-00000-of-00001", examples(0.9))
    options = CheckOptions(
        against=str(old), skip=("inflation", "duplicates"), fail_on=FailOn.WARNING
    )
    (report,) = check([str(new)], options=options)
    assert (report.exit_code, features(report)) == (1, {"DRF001": ["height", "label"]})
