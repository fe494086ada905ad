"""Judging a saved report: only one about the target as it is, that looked at all it should."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests_support import flip

from tfrecreg.core.check.gate import gate
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.run import check
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.config import FailOn
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.findings import Measure

TODAY = date(2026, 5, 1)
NEVER = CheckOptions(fail_on=FailOn.NEVER)

WAIVER = """
[[waivers]]
code = "CRC*"
owner = "ada"
reason = "known"
expires = {}
"""


def save(root: Path, target: str = "digits", options: CheckOptions = NEVER) -> Path:
    (report,) = check([target], registry=str(root), options=options)
    path = root / "report.json"
    path.write_text(json.dumps({**report.to_json()}), "utf-8")
    return path


def judge(root: Path, path: Path, target: str = "digits") -> Report:
    return gate(open_registry(root), target, path, today=TODAY)


def damage(root: Path) -> None:
    shard = root / "data/digits/digits-train.tfrecord-00001-of-00002"
    flip(shard, 30)


def configure(root: Path, text: str) -> None:
    file = root / "tfrecreg.toml"
    file.write_text(f"{file.read_text('utf-8')}\n{text}\n", "utf-8")


@pytest.mark.parametrize("target", ["digits", "digits@1.0.0", "digits@latest"])
def test_a_sound_target_passes(target: str, digits_registry: Path) -> None:
    path = save(digits_registry, target)
    judged = judge(digits_registry, path, target)
    assert (judged.status, judged.exit_code, judged.judged) == ("pass", 0, True)
    assert judged.fail_on is FailOn.ERROR
    assert (judged.records, judged.shards, judged.splits) == (260, 4, {"test": 60, "train": 200})


def test_damage_fails_with_the_findings_as_they_were_measured(digits_registry: Path) -> None:
    damage(digits_registry)
    path = save(digits_registry)
    measured = json.loads(path.read_text())
    assert (measured["status"], measured["judged"]) == ("pass", False)
    judged = judge(digits_registry, path)
    assert (judged.status, judged.exit_code) == ("fail", 1)
    assert json.loads(json.dumps(judged.to_json()))["findings"] == measured["findings"]
    assert [finding.code for finding in judged.failing] == ["CRC002"]


def test_severities_and_waivers_are_todays(digits_registry: Path) -> None:
    damage(digits_registry)
    path = save(digits_registry)
    configure(digits_registry, '[gates.default]\nseverity = { "CRC*" = "warning" }')
    judged = judge(digits_registry, path)
    assert (judged.status, judged.findings[0].severity.value) == ("pass", "warning")
    configure(digits_registry, 'fail_on = "warning"')
    assert judge(digits_registry, path).status == "fail"
    configure(digits_registry, WAIVER.format("2026-05-01"))
    judged = judge(digits_registry, path)
    assert (judged.status, judged.findings) == ("pass", ())
    assert [finding.code for finding in judged.waived] == ["CRC002"]
    assert judged.to_json()["waived"][0]["waiver"] == {
        "owner": "ada",
        "reason": "known",
        "expires": "2026-05-01",
    }


@pytest.mark.parametrize("severity", ["error", "warning", "info"])
def test_an_expired_waiver_fails_whatever_it_covered(severity: str, digits_registry: Path) -> None:
    damage(digits_registry)
    path = save(digits_registry)
    configure(digits_registry, f'[gates.default]\nseverity = {{ "CRC*" = "{severity}" }}')
    configure(digits_registry, WAIVER.format("2026-04-30"))
    judged = judge(digits_registry, path)
    assert judged.exit_code == 1
    found = {finding.code: finding for finding in judged.findings}
    assert set(found) == {"REG009", "CRC002"}
    assert found["CRC002"].message.endswith(" (waived by ada until 2026-04-30)")
    assert found["CRC002"].severity.value == severity
    assert found["REG009"].message == (
        "The waiver of `CRC*` by ada expired on 2026-04-30, and its findings are still present; "
        "its reason was: known"
    )
    assert (found["REG009"].fingerprint, found["REG009"].count) == ("REG009:digits:::CRC*", 1)
    assert "REG009" in [finding.code for finding in judged.failing]


def test_an_incomplete_check_stays_incomplete(digits_registry: Path) -> None:
    shard = digits_registry / "data/digits/digits-train.tfrecord-00001-of-00002"
    shard.unlink()
    shard.symlink_to("nowhere")
    path = save(digits_registry)
    document = json.loads(path.read_text())
    document |= {"status": "error", "errors": ["`x` was not read"]}
    path.write_text(json.dumps(document))
    assert judge(digits_registry, path).exit_code == 3


def refused(root: Path, path: Path, complaint: str, target: str = "digits") -> None:
    with pytest.raises(UsageError, match=complaint) as caught:
        judge(root, path, target)
    assert caught.value.exit_code == 2
    assert "tfrecreg check" in caught.value.hint


@pytest.mark.medium
def test_a_report_about_another_build_is_refused(digits_registry: Path) -> None:
    from tfrecreg.builtin.python_data.build import build
    from tfrecreg.cli.digits import write_digits
    from tfrecreg.core.build.request import BuildRequest
    from tfrecreg.core.storage.local import LocalStorage

    path = save(digits_registry)
    raw = digits_registry / "raw-now"
    write_digits(LocalStorage(raw), train=210, test=60, seed=1)
    build(open_registry(digits_registry), BuildRequest(name="digits", raw=str(raw)))
    refused(digits_registry, path, "is about another state of `digits`: expected digest")
    refused(digits_registry, path, "is about `digits`, not about `digits@1.0.0`", "digits@1.0.0")


def test_a_report_under_another_schema_is_refused(digits_registry: Path) -> None:
    path = save(digits_registry)
    schema = digits_registry / "schemas/digits.pbtxt"
    schema.write_text(f"{schema.read_text()}\n# changed\n")
    refused(digits_registry, path, "is about another state of the schema")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (CheckOptions(only=("crc",), fail_on=FailOn.NEVER), "lacks .*`manifest`"),
        (CheckOptions(skip=("crc",), fail_on=FailOn.NEVER), "lacks `crc`, which the"),
    ],
)
def test_a_report_that_left_something_out_is_refused(
    options: CheckOptions, complaint: str, digits_registry: Path
) -> None:
    path = save(digits_registry, options=options)
    refused(digits_registry, path, complaint)
    configure(digits_registry, '[gates.default]\nvalidators = ["crc"]')
    if "crc" in options.only:
        assert judge(digits_registry, path).status == "pass"
    else:
        refused(digits_registry, path, "lacks `crc`")


def test_a_report_under_other_limits_is_refused(digits_registry: Path) -> None:
    path = save(digits_registry)
    configure(digits_registry, "[gates.digits.limits.inflation]\nratio = 1.2")
    refused(digits_registry, path, "measured under other limits of `inflation`: expected")
    assert judge(digits_registry, save(digits_registry)).status == "pass"


Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "is not a check report"),
        (b"\xff", "is not a check report"),
        (b"[" * 100_000, "is not a check report"),
        (b"[]", "is not a check report"),
        (b"{}", "is not a check report"),
        (b'{"format_version": 1}', "is about none, not about `digits`"),
        (b'{"format_version": 1, "reports": [1, {"target": 2}]}', "is about `2`, not"),
        (b'{"format_version": 1, "target": "digits"}', "is not a check report: .*status"),
    ],
)
def test_what_is_no_report_is_refused(
    data: bytes, complaint: str, digits_original: Path, tmp_path: Path
) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(data)
    refused(digits_original, path, complaint)


def damaged_report(root: Path) -> tuple[Path, dict[str, Any]]:
    damage(root)
    path = save(root)
    return path, json.loads(path.read_text())


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda report: report.update(findings=[]), "`summary.findings` is 1, found 0"),
        (
            lambda report: report["findings"][0].update(severity="warning"),
            "`summary.severities.error` is 1, found 0",
        ),
        (
            lambda report: (
                report["findings"][0].update(severity="info"),
                report["summary"].update(severities={"error": 0, "warning": 0, "info": 1}),
            ),
            "CRC002 has the severity error, found info",
        ),
        (
            lambda report: (
                report["findings"][0].update(severity="info"),
                report["summary"].pop("severities", None),
            ),
            "CRC002 has the severity error, found info",
        ),
        (
            lambda report: report.update(status="pass", errors=["a shard was not read"]),
            "`status` is pass, but the number of `errors` is 1",
        ),
        (
            lambda report: report.update(status="error"),
            "`status` is error, but the number of `errors` is 0",
        ),
    ],
)
def test_a_report_that_contradicts_itself_is_refused(
    change: Change, complaint: str, digits_registry: Path
) -> None:
    path, report = damaged_report(digits_registry)
    change(report)
    path.write_text(json.dumps(report))
    refused(digits_registry, path, f"the report `.*report.json` contradicts itself: {complaint}")


def test_a_report_of_an_earlier_version_is_judged(digits_registry: Path) -> None:
    """One without the shards and the number of findings of each severity."""
    path, report = damaged_report(digits_registry)
    del report["basis"]["shards"], report["summary"]["severities"], report["lowered"]
    path.write_text(json.dumps(report))
    assert judge(digits_registry, path).status == "fail"


def test_the_report_names_the_bytes_that_it_is_about(digits_registry: Path) -> None:
    report = json.loads(save(digits_registry).read_text())
    shards = open_registry(digits_registry).dataset("digits").build_manifest().shards
    assert report["basis"]["shards"] == [
        {"path": each.path, "bytes": each.bytes, "blake3": each.blake3} for each in shards
    ]
    files = [f"data/digits/{each.path}" for each in shards[:1]]
    (bare,) = check([str(digits_registry / files[0])], options=CheckOptions(only=("crc",)))
    assert bare.to_json()["basis"]["shards"] == [{"path": shards[0].path, "bytes": shards[0].bytes}]


SHARD = "data/digits/digits-train.tfrecord-00001-of-00002"


def age(path: Path, seconds: float) -> None:
    """Set the modification time of a file to so many seconds from now."""
    then = time.time() + seconds
    os.utime(path, (then, then))


def test_bytes_that_changed_since_the_report_are_refused(digits_registry: Path) -> None:
    path = save(digits_registry)
    age(path, -60)
    assert judge(digits_registry, path).status == "pass"
    damage(digits_registry)
    refused(digits_registry, path, f"is about another state of `{SHARD}`: expected blake3 ")
    # In the same tick of the clock: who was first, nobody knows.
    shared = path.stat().st_mtime_ns
    os.utime(digits_registry / SHARD, ns=(shared, shared))
    refused(digits_registry, path, f"is about another state of `{SHARD}`: expected blake3 ")
    with (digits_registry / SHARD).open("ab") as shard:
        shard.write(b"more")
    age(digits_registry / SHARD, -120)
    refused(digits_registry, path, f"is about another state of `{SHARD}`: expected .* bytes, found")


def test_a_newer_shard_without_a_digest_is_refused(digits_registry: Path) -> None:
    configure(digits_registry, '[gates.default]\nvalidators = ["crc"]')
    path = save(digits_registry, options=CheckOptions(only=("crc",), fail_on=FailOn.NEVER))
    for each in (digits_registry / SHARD).parent.iterdir():
        age(each, -60)
    age(path, -30)
    assert judge(digits_registry, path).status == "pass"
    age(digits_registry / SHARD, 0)
    refused(digits_registry, path, f"is about another state of `{SHARD}`: expected blake3 ")


def test_a_report_of_several_targets_has_ours(digits_registry: Path) -> None:
    path = save(digits_registry)
    one = json.loads(path.read_text())
    other = {**one, "target": "other"}
    path.write_text(json.dumps({"format_version": 1, "status": "pass", "reports": [other, one]}))
    assert judge(digits_registry, path).status == "pass"


def test_a_report_is_read_as_it_was_written(digits_registry: Path) -> None:
    damage(digits_registry)
    (report,) = check(["digits"], registry=str(digits_registry), options=NEVER)
    from tfrecreg.core.check.report_format import parse_report

    far = Measure("drift.numbers.test", math.inf, "inf")
    document = replace(report, measures=(*report.measures, far)).to_json()
    assert document["measures"]["drift.numbers.test"] == "inf"
    written = json.dumps(document, allow_nan=False)
    again = parse_report(written.encode(), "report.json", "digits")
    assert again.measures[-1] == far
    assert json.loads(json.dumps(again.to_json())) == json.loads(written)
    # As former versions wrote it, which is no JSON.
    former = written.replace('"drift.numbers.test": "inf"', '"drift.numbers.test": Infinity')
    assert former != written
    assert parse_report(former.encode(), "report.json", "digits") == again
