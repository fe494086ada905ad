"""The report of a check, whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tfrecreg.builtin.validators.plugin import tfrecreg_validators
from tfrecreg.core.check.reports.model import Report, SkippedValidator
from tfrecreg.core.terminal.render import findings
from tfrecreg.core.terminal.render.findings import print_report
from tfrecreg.core.values.findings import Finding, Location, Measure, Severity, TensorflowOutcome

DAMAGE = Finding(
    code="CRC002",
    rule="data-checksum",
    severity=Severity.ERROR,
    message="The checksum of a record's data does not match",
    hint="restore the shard",
    fingerprint="CRC002:mnist:train::mnist-train.tfrecord-00000-of-00002",
    count=7,
    locations=tuple(
        Location(
            split="train",
            shard="mnist-train.tfrecord-00000-of-00002",
            record=number,
            offset=443 * number,
            length=427,
            key=f"{number:05}",
            detail="data checksum should be 0x0000000a, found 0x0000000b",
        )
        for number in range(7)
    ),
)
RARE = Finding(
    code="SCH002",
    rule="missing-feature",
    severity=Severity.WARNING,
    message="caption: expected in at least 0.9 of the examples",
    hint="mend the raw data",
    fingerprint="SCH002:mnist:train:caption:",
    count=1,
    locations=(Location(split="train", feature="caption", detail="in 3 of 10 examples"),),
)
SET = Finding(
    code="SHD006",
    rule="inconsistent-names",
    severity=Severity.ERROR,
    message="the names disagree",
    hint="name one set",
    fingerprint="SHD006::::train",
    count=1,
)
REPORT = Report(
    target="mnist@1.0.0",
    status="fail",
    shards=2,
    records=2399,
    bytes=1_500_000,
    payload_bytes=1_400_000,
    findings=(DAMAGE, SET, RARE),
    waived=(replace(RARE, fingerprint="SCH002:mnist:test:caption:"),),
    measures=(
        Measure("inflation.bytes", 1_500_000, "1.5 MB in shards"),
        Measure("inflation.raw_stored", 600_000, ""),
        Measure("inflation.raw_decoded", 2_700_000, ""),
        Measure(
            "inflation.features",
            {"image/encoded": 900, "image/format": 60, **{f"f{n}": 8 for n in range(5)}},
            "",
        ),
    ),
    validators=("crc", "inflation", "manifest"),
    skipped=(SkippedValidator("schema", "no schema: name one with --schema"),),
)


IN_A_PIPE = """\
mnist@1.0.0: 2 shards, 2,399 records, 1.5 MB
size: 1.5 MB in shards: 2.50 × the raw files, 0.56 × the unpacked data
bytes per feature: image/encoded 900 B (90 % of the record bytes), image/format 60 B (6 %), f0 8 B (1 %), f1 8 B (1 %), f2 8 B (1 %), f3 8 B (1 %), 1 smaller feature 8 B (1 %)
not run: schema (no schema: name one with --schema)
error CRC002 data-checksum: The checksum of a record's data does not match
    mnist-train.tfrecord-00000-of-00002, record 0, offset 0, key 00000: data checksum should be 0x0000000a, found 0x0000000b
    mnist-train.tfrecord-00000-of-00002, record 1, offset 443, key 00001: data checksum should be 0x0000000a, found 0x0000000b
    mnist-train.tfrecord-00000-of-00002, record 2, offset 886, key 00002: data checksum should be 0x0000000a, found 0x0000000b
    mnist-train.tfrecord-00000-of-00002, record 3, offset 1329, key 00003: data checksum should be 0x0000000a, found 0x0000000b
    mnist-train.tfrecord-00000-of-00002, record 4, offset 1772, key 00004: data checksum should be 0x0000000a, found 0x0000000b
    … and 2 more
    hint: restore the shard
error SHD006 inconsistent-names: the names disagree (train)
    hint: name one set
warning SCH002 missing-feature: caption: expected in at least 0.9 of the examples
    split train, caption: in 3 of 10 examples
    hint: mend the raw data
waived: SCH002 SCH002:mnist:test:caption:
fail: 2 errors, 1 warning (crc, inflation, manifest)
"""  # noqa: E501 - a pipe's lines are as long as they are


def test_a_report_in_a_pipe(pipe) -> None:
    assert pipe(lambda console: print_report(console, REPORT)) == IN_A_PIPE


def test_a_report_on_a_terminal(terminal) -> None:
    report = replace(REPORT, findings=(replace(DAMAGE, count=1, locations=DAMAGE.locations[:1]),))
    assert (
        terminal(lambda console: print_report(console, report), 72)
        == """\
mnist@1.0.0: 2 shards, 2,399 records, 1.5 MB
size: 1.5 MB in shards: 2.50 × the raw files, 0.56 × the unpacked data
bytes per feature: image/encoded 900 B (90 % of the record bytes),
  image/format 60 B (6 %), f0 8 B (1 %), f1 8 B (1 %), f2 8 B (1 %), f3
  8 B (1 %), 1 smaller feature 8 B (1 %)
not run: schema (no schema: name one with --schema)
error CRC002 data-checksum: The checksum of a record's data does not
  match
    mnist-train.tfrecord-00000-of-00002, record 0, offset 0, key 00000:
      data checksum should be 0x0000000a, found 0x0000000b
    hint: restore the shard
waived: SCH002 SCH002:mnist:test:caption:
fail: 1 error, 0 warnings (crc, inflation, manifest)
"""
    )


def test_a_clean_report_is_three_lines(pipe) -> None:
    report = replace(REPORT, status="pass", findings=(), waived=(), skipped=(), measures=())
    assert (
        pipe(lambda console: print_report(console, report))
        == """\
mnist@1.0.0: 2 shards, 2,399 records, 1.5 MB
pass: 0 errors, 0 warnings (crc, inflation, manifest)
"""
    )


def test_an_incomplete_check_says_why_and_is_never_called_a_pass(pipe) -> None:
    report = replace(
        REPORT,
        status="error",
        findings=(),
        waived=(),
        skipped=(),
        measures=(),
        validators=(),
        errors=("`a` was not read: permission denied",),
    )
    assert (
        pipe(lambda console: print_report(console, report))
        == """\
mnist@1.0.0: 2 shards, 2,399 records, 1.5 MB
incomplete: `a` was not read: permission denied
incomplete: 0 errors, 0 warnings (nothing)
"""
    )


@pytest.mark.parametrize(("status", "colour"), [("pass", "32"), ("fail", "31"), ("error", "31")])
def test_the_verdict_has_its_colour(terminal, status: str, colour: str) -> None:
    report = replace(REPORT, status=status, findings=())
    shown = terminal(lambda console: print_report(console, report), 100, colour=True)
    assert f"\x1b[1;{colour}m" in shown.splitlines()[-1]


def test_what_tensorflow_does_stands_behind_the_detail(pipe) -> None:
    where = replace(DAMAGE.locations[0], tensorflow=TensorflowOutcome.STOPS)
    report = replace(REPORT, findings=(replace(DAMAGE, count=1, locations=(where,)),))
    shown = pipe(lambda console: print_report(console, report))
    assert "should be 0x0000000a, found 0x0000000b (TensorFlow stops here)\n" in shown
    assert where.to_json()["tensorflow"] == "stops here"


def test_names_from_data_cannot_steer_the_terminal(pipe) -> None:
    place = Location(shard="\x1b[2Jx", record=1, key="[red]\u202e", detail="\x07 :skull:")
    report = replace(REPORT, findings=(replace(DAMAGE, locations=(place,), count=1),))
    shown = pipe(lambda console: print_report(console, report))
    assert "    \\x1b[2Jx, record 1, key [red]\\u202e: \\x07 :skull:\n" in shown
    assert "\x1b" not in shown


def test_what_bare_files_hold_and_what_lies_beside_them_has_a_line(pipe) -> None:
    measures = (
        Measure("manifest.kinds", {"example": 9, "event": 1}, "9 Examples, 1 event"),
        Measure("manifest.unnamed", 4, "4 of the 5 shards of `x`"),
    )
    report = replace(REPORT, measures=measures)
    lines = pipe(lambda console: print_report(console, report)).splitlines()
    assert "payloads: 9 Examples, 1 event" in lines
    assert "beside them, not named: 4 of the 5 shards of `x`" in lines
    assert report.to_json()["summary"]["kinds"] == {"example": 9, "event": 1}


def test_measures_of_plugins_have_a_line_and_are_escaped(pipe) -> None:
    measures = (
        Measure("texts.count", 3, "3 \x1b texts"),
        Measure("images.decoded", 1, "1 decoded"),
    )
    report = replace(REPORT, measures=measures)
    lines = pipe(lambda console: print_report(console, report)).splitlines()
    assert r"texts.count: 3 \x1b texts" in lines
    assert not [each for each in lines if "decoded" in each]


def test_all_bundled_validators_are_known_as_such() -> None:
    assert {record.name for record in tfrecreg_validators()} == findings._BUNDLED
