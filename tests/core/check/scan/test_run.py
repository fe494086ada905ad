"""One pass for all validators; what goes wrong in one of them, or in one shard, stays there."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from scan_support import ODD, Looking, Watched, files, shard, stream, target

from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.check.scan.run import ScanResult, run_scan
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.findings import MAX_LOCATIONS, Finding, Location, Measure, Severity
from tfrecreg.core.workers.local import LocalEngine

finding = partial(
    Finding,
    code=ODD.code,
    rule=ODD.rule,
    severity=ODD.severity,
    message="the number is odd",
    hint=ODD.hint,
    fingerprint="f",
    count=1,
)
JOBS = pytest.mark.parametrize("jobs", [1, 2])

pytestmark = pytest.mark.usefixtures("light_workers")


def scan(found: Target, *validators: Any, jobs: int = 1, **more: Any) -> ScanResult:
    return run_scan(found, validators, LocalEngine(jobs), **more)


def measures(result: ScanResult) -> dict[str, Any]:
    return {measure.name: measure.value for measure in result.measures}


def test_a_scan_counts_shards_records_and_bytes(tmp_path: Path) -> None:
    streams = [stream(3), stream(0), stream(5)]
    seen: list[tuple[str, int]] = []
    result = scan(
        files(tmp_path, *streams),
        Looking(),
        seen=lambda shard, end: seen.append((shard.name, end.records if end else -1)),
    )
    assert (result.shards, result.records) == (3, 8)
    assert result.file_bytes == sum(map(len, streams))
    assert result.payload_bytes == result.file_bytes - 16 * 8
    assert seen == [("0.tfrecord", 3), ("1.tfrecord", 0), ("2.tfrecord", 5)]
    assert measures(result) == {"looking.records": 8}
    assert result.complete


def test_one_job_and_two_give_the_same_result(tmp_path: Path) -> None:
    damaged = bytearray(stream(50))
    damaged[700] ^= 1
    streams = [stream(7), bytes(damaged), b"", stream(30)[:-3], b"not a record", stream(9)]
    storage = Watched(LocalStorage(tmp_path), {"5.tfrecord": 100})
    found = files(tmp_path, *streams, storage=storage)
    one, two = (
        scan(
            found, Looking("a"), Looking("b", "fault"), Looking("c"), Looking("d", "finish"), jobs=n
        )
        for n in (1, 2)
    )
    assert one == two
    assert one.crashes
    assert one.unreadable


WRONG = {
    "begin": "",
    "lambda": "",
    "make": "0.tfrecord",
    "batch": "0.tfrecord",
    "fault": "1.tfrecord",
    "close": "0.tfrecord",
    "part": "0.tfrecord",
    "trap": "0.tfrecord",
    "exit": "0.tfrecord",
    "finish": "",
    "late": "",
}


@pytest.mark.parametrize(
    ("wrong", "jobs"),
    [(wrong, 1) for wrong in WRONG]
    + [(wrong, 2) for wrong in ("lambda", "part", "trap", "exit", "batch")],
)
def test_a_validator_that_raises_costs_only_its_own_verdict(
    tmp_path: Path, wrong: str, jobs: int
) -> None:
    cut = stream(6)[:-1]
    found = files(tmp_path, stream(4), cut, stream(2))
    alone = scan(found, Looking("good"))
    result = scan(found, Looking("bad", wrong), Looking("good"), jobs=jobs)
    assert not result.complete
    assert result.findings == alone.findings
    assert measures(result) == {"good.records": 11}
    assert result.records == 11
    assert {crash.plugin_id.name for crash in result.crashes} == {"bad"}
    crash = result.crashes[0]
    assert crash.shard == WRONG[wrong]
    if wrong == "lambda":
        assert crash.reason.startswith("TypeError: the result of `begin` cannot be pickled: ")
    elif wrong == "part":
        assert crash.reason.startswith("its part cannot be pickled: ")
    elif wrong == "trap":
        assert crash.reason.startswith("ValueError: it is a trap (engines_support.py, line ")
    elif wrong == "exit":
        assert crash.reason.startswith("SystemExit: 0 (scan_support.py, line ")
    else:
        expected = r"ZeroDivisionError: a bug, \x1b[31mred (scan_support.py, line "
        assert crash.reason.startswith(expected)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("a string", "ValidationError: Expected `object`, got `str`"),
        (finding(severity="grave"), "ValidationError: Invalid enum value 'grave'"),
        (finding(count="many"), "ValidationError: Expected `int`"),
        (finding(message=None), "ValidationError: Expected `str`"),
        (
            Measure("saying.what", [1], "x"),
            "TypeError: the measure `saying.what` is [1], expected a number",
        ),
        (finding(locations=("here",)), "ValidationError: Expected `object`"),
    ],
)
def test_a_validator_that_says_nonsense_has_crashed(tmp_path: Path, said: Any, reason: str) -> None:
    result = scan(files(tmp_path, stream(1)), Looking("saying", said=[said]), Looking())
    (crash,) = result.crashes
    assert crash.plugin_id.name == "saying"
    assert crash.reason.startswith(reason)
    assert result.findings == []
    assert measures(result) == {"looking.records": 1}


def test_locations_are_put_in_order_and_cut_whoever_made_them(tmp_path: Path) -> None:
    places = tuple(Location(shard="s", record=number) for number in reversed(range(100)))
    result = scan(
        files(tmp_path, stream(1)), Looking("saying", said=[finding(locations=places, count=100)])
    )
    (found,) = result.findings
    assert [each.record for each in found.locations] == list(range(MAX_LOCATIONS))
    assert found.count == 100


def test_findings_come_the_worst_first_and_then_by_fingerprint(tmp_path: Path) -> None:
    said = [
        finding(severity=severity, fingerprint=name)
        for severity, name in (
            (Severity.INFO, "a"),
            (Severity.ERROR, "c"),
            (Severity.WARNING, "b"),
            (Severity.ERROR, "a"),
        )
    ]
    result = scan(files(tmp_path, stream(1)), Looking("saying", said=said))
    assert [(each.severity.value, each.fingerprint) for each in result.findings] == [
        ("error", "a"),
        ("error", "c"),
        ("warning", "b"),
        ("info", "a"),
    ]


@pytest.mark.medium
@JOBS
def test_a_shard_that_cannot_be_read_makes_the_scan_incomplete(tmp_path: Path, jobs: int) -> None:
    storage = Watched(LocalStorage(tmp_path), {"1.tfrecord": -1, "3.tfrecord": 300})
    found = files(tmp_path, *(stream(10) for _ in range(5)), storage=storage)
    result = scan(found, Looking(), jobs=jobs)
    assert not result.complete
    assert [(each.shard, each.reason) for each in result.unreadable] == [
        ("1.tfrecord", "cannot read `1.tfrecord`: Permission denied"),
        ("3.tfrecord", "cannot read `3.tfrecord`: Input/output error"),
    ]
    # The others were scanned, and what was found in them is said.
    assert (result.shards, result.records) == (5, 30)
    assert measures(result) == {"looking.records": 30}
    assert {each.shard for each in result.findings[0].locations} == {
        "0.tfrecord",
        "2.tfrecord",
        "4.tfrecord",
    }
    assert result.crashes == []


def test_what_is_no_file_in_a_shards_place_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "good").write_bytes(stream(2))
    storage = LocalStorage(tmp_path)
    names = ("folder", "fifo", "nowhere", "good", "missing")
    result = scan(target(*(shard(storage, name) for name in names)), Looking())
    assert [each.shard for each in result.unreadable] == ["folder", "fifo", "nowhere", "missing"]
    assert result.records == 2


@pytest.mark.medium
@JOBS
def test_what_validators_print_does_not_reach_stdout(
    tmp_path: Path, jobs: int, capfd: pytest.CaptureFixture[str]
) -> None:
    scan(files(tmp_path, stream(1), stream(1)), Looking(), jobs=jobs)
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err.count("looking at") == 2
    assert "beginning" in captured.err
