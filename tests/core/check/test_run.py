"""The check as an operation: targets, gates, and what makes it incomplete."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest
from registry_support import write
from scan_support import Watched, files, stream
from tests_support import Watcher, flip

import tfrecreg
from tfrecreg.builtin.python_data.build import build
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.run import check
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.check.target import check_target
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.config import Config, FailOn, parse_config
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.findings import Severity
from tfrecreg.core.values.shards import ShardPolicy
from tfrecreg.core.workers.local import LocalEngine

TRAIN = "data/digits/digits-train.tfrecord-0000{}-of-00002"
TEST = "data/digits/digits-test.tfrecord-0000{}-of-00002"


def codes(report: Report) -> list[str]:
    return [finding.code for finding in report.findings]


def targets(reports: list[Report]) -> list[str]:
    return [report.target for report in reports]


def config(root: Path, text: str) -> None:
    path = root / "tfrecreg.toml"
    path.write_text(path.read_text() + text)


def another(root: Path, name: str = "more") -> None:
    """A second dataset, of the same raw data."""
    request = BuildRequest(name=name, source="mnist", raw=str(root / "raw"))
    build(open_registry(root), request)


# Targets.


def test_each_reference_has_a_report_and_all_files_together_one(
    digits_registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(digits_registry)
    named = [TEST.format(0), "digits@1.0.0", TEST.format(1), "digits", "digits@1.0.0"]
    reports = check(named)
    assert targets(reports) == ["digits@1.0.0", "digits", f"{TEST.format(0)} {TEST.format(1)}"]
    assert [report.records for report in reports] == [260, 260, 60]
    assert {report.status for report in reports} == {"pass"}


def test_without_targets_every_build_is_checked(digits_registry: Path) -> None:
    another(digits_registry)
    assert targets(check([], registry=digits_registry)) == ["digits", "more"]


def test_without_targets_a_broken_build_hides_no_other(digits_registry: Path) -> None:
    for name in ("alpha", "gamma", "more", "newer"):
        another(digits_registry, name)
    write(digits_registry / "data/alpha/manifest.json", "{")
    write(digits_registry / "schemas/gamma.pbtxt", "feature {")
    write(digits_registry / "data/newer/manifest.json", '{"format_version": 9}')
    flip(digits_registry / TRAIN.format(0), 30)
    alpha, digits, gamma, more, newer = check([], registry=digits_registry)
    assert (alpha.target, alpha.status, alpha.exit_code) == ("alpha", "error", 3)
    assert alpha.errors[0].startswith("`data/alpha/manifest.json` is not a manifest: ")
    assert (digits.status, codes(digits)) == ("fail", ["CRC002"])
    assert gamma.status == "error"
    assert gamma.errors[0].startswith("schemas/gamma.pbtxt:")
    assert more.status == "pass"
    assert newer.status == "error"
    assert "manifest format 9" in newer.errors[0]
    assert json.loads(json.dumps(alpha.to_json()))["status"] == "error"


def test_files_need_no_registry_and_follow_the_one_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.tfrecord", b"")
    (report,) = check(["a.tfrecord"])
    assert (report.status, codes(report)) == ("pass", ["SHD007"])
    write(tmp_path / "tfrecreg.toml", '[gates.default]\nfail_on = "warning"\n')
    assert check(["a.tfrecord"])[0].status == "fail"
    monkeypatch.chdir("/")
    assert check([str(tmp_path / "a.tfrecord")])[0].status == "pass"
    assert check([str(tmp_path / "a.tfrecord")], registry=tmp_path)[0].status == "fail"
    with pytest.raises(UsageError, match="there is no folder"):
        check([str(tmp_path / "a.tfrecord")], registry=tmp_path / "none")


# What was read, and how the check becomes incomplete.


@pytest.mark.parametrize("kind", ["folder", "link to nothing"])
def test_a_shard_that_cannot_be_read_makes_the_check_incomplete(
    digits_registry: Path, kind: str
) -> None:
    shard = digits_registry / TRAIN.format(0)
    shard.unlink()
    if kind == "folder":
        shard.mkdir()
    else:
        shard.symlink_to("nowhere")
    flip(digits_registry / TEST.format(0), 30)
    (report,) = check(["digits"], registry=digits_registry)
    assert (report.status, report.exit_code) == ("error", 3)
    assert report.errors[0].startswith(f"`{shard.name}` was not read: ")
    # The others were scanned, and what is wrong with them is said.
    assert "CRC002" in codes(report)
    assert report.records == 259 - 100


@pytest.mark.parametrize("fail_on", [None, FailOn.NEVER])
def test_a_disk_that_fails_half_way_makes_the_check_incomplete(
    tmp_path: Path, fail_on: FailOn | None
) -> None:
    storage = Watched(LocalStorage(tmp_path), {"1.tfrecord": 100})
    found = files(tmp_path, stream(3), stream(3), stream(3), storage=storage)
    report = check_target(found, Config(), CheckOptions(fail_on=fail_on), engine=LocalEngine(1))
    assert (report.status, report.exit_code, report.records) == ("error", 3, 6)
    assert report.errors == (
        "`1.tfrecord` was not read: cannot read `1.tfrecord`: Input/output error",
    )


@pytest.mark.usefixtures("light_workers")
def test_one_job_and_two_give_the_same_report(digits_registry: Path) -> None:
    for number, at in ((0, 30), (1, 500)):
        flip(digits_registry / TRAIN.format(number), at)
    (digits_registry / TEST.format(1)).unlink()
    shard = digits_registry / TEST.format(0)
    shard.write_bytes(shard.read_bytes()[:-20])
    one, two = (
        check(["digits"], registry=digits_registry, engine=LocalEngine(jobs))[0].to_json()
        for jobs in (1, 2)
    )
    assert one == two
    assert {finding["code"] for finding in one["findings"]} >= {"CRC002", "CRC003", "SHD001"}


@pytest.mark.parametrize("reference", ["digits", "digits@1.0.0"])
def test_a_build_that_is_replaced_meanwhile_makes_the_check_incomplete(
    digits_registry: Path, reference: str
) -> None:
    class Builder(Watcher):
        def advance(self, records: int, size: int) -> None:
            if not self.records:
                request = BuildRequest(name="digits", policy=ShardPolicy(shards=3))
                build(open_registry(digits_registry), request)
            super().advance(records, size)

    (report,) = check([reference], registry=digits_registry, progress=Builder())
    assert (report.status, report.exit_code) == ("error", 3)
    assert report.errors[-1] == (
        f"the build under `{reference}` was replaced while it was checked: check it again"
    )


# Gates.


@pytest.fixture
def empty(tmp_path: Path) -> Target:
    """A shard without records, which is a warning (`SHD007`)."""
    return files(tmp_path, b"")


def judged(target: Target, text: str, watcher: Watcher | None = None, **options: Any) -> Report:
    return check_target(
        target,
        parse_config(text),
        CheckOptions(**options),
        engine=LocalEngine(1),
        progress=watcher or Watcher(),
        today=datetime.date(2026, 6, 1),
    )


def test_what_the_user_says_of_failing_beats_the_gate(empty: Target) -> None:
    gate = '[gates.default]\nfail_on = "warning"\n'
    assert judged(empty, "").status == "pass"
    assert judged(empty, gate).status == "fail"
    assert judged(empty, gate, fail_on=FailOn.ERROR).status == "pass"
    assert judged(empty, "", fail_on=FailOn.WARNING).exit_code == 1


def test_findings_are_in_order_of_the_severities_that_the_gate_gives(tmp_path: Path) -> None:
    data = stream(3)
    found = files(tmp_path, b"", data[:-1])
    assert codes(judged(found, ""))[:1] == ["CRC003"]
    report = judged(found, '[gates.default]\nseverity = { SHD007 = "error", CRC003 = "info" }\n')
    assert codes(report)[0] == "SHD007"
    assert report.findings[0].severity is Severity.ERROR
    assert codes(report)[-1] == "CRC003"


WAIVER = """
    [[waivers]]
    code = "SHD007"
    owner = "ada"
    reason = "it is meant to be empty"
    expires = {}
"""


def test_a_waiver_covers_until_its_day_and_says_when_it_no_longer_does(empty: Target) -> None:
    watcher = Watcher()
    report = judged(empty, WAIVER.format("2026-06-01"), watcher, fail_on=FailOn.WARNING)
    assert (report.status, report.findings) == ("pass", ())
    assert [finding.code for finding in report.waived] == ["SHD007"]
    assert watcher.notes == []
    report = judged(empty, WAIVER.format("2026-05-31"), watcher, fail_on=FailOn.WARNING)
    assert (report.status, report.waived) == ("fail", ())
    assert watcher.notes == [
        "the waiver of `SHD007` by ada expired on 2026-05-31: its findings count again"
    ]


def test_a_digest_that_differs_is_not_told_beside_the_damage_that_explains_it(
    digits_registry: Path,
) -> None:
    flip(digits_registry / TRAIN.format(0), 30)
    (report,) = check(["digits"], registry=digits_registry)
    assert codes(report) == ["CRC002"]
    options = CheckOptions(only=("manifest",))
    (report,) = check(["digits"], registry=digits_registry, options=options)
    assert codes(report) == ["SHD002"]


def test_an_error_does_not_leave_with_a_warning_that_explains_it(digits_registry: Path) -> None:
    flip(digits_registry / TRAIN.format(0), 30)
    config = digits_registry / "tfrecreg.toml"
    config.write_text(config.read_text() + '[gates.default]\nseverity = { CRC002 = "warning" }\n')
    (report,) = check(["digits"], registry=digits_registry)
    assert sorted(codes(report)) == ["CRC002", "SHD002"]
    assert report.status == "fail"


def test_undeclared_features_of_the_same_records_are_one_finding(tmp_path: Path) -> None:
    root = tfrecreg.init(tmp_path, with_dvc=False)
    features = {f"f{number:02}": 1.5 for number in range(20)}
    rows = [{"x": 1, **features, **({"odd": 1} if number == 2 else {})} for number in range(6)]
    root["d"].build(data={"train": rows[:4], "test": rows[4:]}, progress=False)
    schema = tmp_path / "small.pbtxt"
    schema.write_text('feature { name: "x" type: INT }')

    def found() -> Report:
        return tfrecreg.open(tmp_path)["d"].built.check(
            schema=schema, only=["schema"], progress=False
        )

    report = found()
    several, odd = sorted(report.findings, key=lambda each: -each.count)
    assert (several.code, several.count, odd.code, odd.count) == ("SCH005", 6, "SCH005", 1)
    assert odd.fingerprint == "SCH005:d:train:odd:"
    assert [(each.split, each.record) for each in several.locations] == [
        *(("test", record) for record in range(2)),
        *(("train", record) for record in range(4)),
    ]
    assert several.message.startswith("20 features are not in the schema: `f00`, `f01`")
    assert several.message.endswith(", and 4 more")
    declared = parse_schema(several.hint[several.hint.index("feature {") :], "hint").features
    assert [each.name for each in declared] == sorted(features)[:16]
    schema.write_text(schema.read_text() + several.hint[several.hint.index("feature {") :])
    assert "4 features are not in the schema" in str(found())
    schema.write_text('feature { name: "x" type: INT }')
    waived = '[[waivers]]\nowner = "a"\nreason = "b"\nexpires = 9999-01-01\nfingerprint = '
    config(tmp_path, f'{waived}"SCH005:d:*:f0[0-8]:"\n{waived}"{odd.fingerprint}"\n')
    report = found()
    assert [each.message[:11] for each in report.findings] == ["11 features"]
    assert len(report.waived) == 9 * 2 + 1
    config(tmp_path, f'{waived}"{report.findings[0].fingerprint}"\n')
    assert found().status == "pass"
