"""Report formats of another distribution are like others: values of `--format`, records, errors."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from plugin_support import install, with_site
from sources_support import tfrecreg
from tests_support import flip

PLUGIN = '''
from tfrecreg.api import (
    Finding, ReportFormat, ReportFormatRecord, Severity, UsageError, Validator, Visitor,
    hookimpl, location_lines, safe_message,
)

class Lines(ReportFormat):
    """A line for each target, and for each finding."""

    def render(self, reports, context):
        print("printed")
        lines = []
        for report in reports:
            lines.append(f"{report.target} {report.status}")
            lines += map(safe_message, report.errors)
            for finding in report.findings:
                summary = context.codes[finding.code].summary
                shard = finding.locations[0].shard
                lines.append(f"{finding.code} {summary}: {context.path(report, shard)}")
                lines += location_lines(finding, 1)
        return "".join(f"{line}\\n" for line in lines)

    def finish(self, reports, context):
        context.note(f"{len(reports)} told by {context.version}")

class Counter(Validator):
    name = "counter"

    def __init__(self):
        self.records = 0

    def applies(self, target):
        return None

    def begin(self, target, options):
        return Counting

    def finish(self, target, parts):
        self.records = sum(part for _, part in parts)
        return ()

class Odd(Counter):
    def finish(self, target, parts):
        yield Finding("ODD001", "odd", Severity.ERROR, "odd", "even it out", "ODD001:x", 1)

class Counting(Visitor):
    def __init__(self, shard):
        self.records = 0

    def batch(self, batch):
        self.records += len(batch)

    def close(self, end):
        return self.records

class Counts(ReportFormat):
    """Shows what it has seen of the records itself."""

    counter = Counter

    def __init__(self):
        self.counters = {}

    def look(self, target):
        self.counters[target.name] = self.counter()
        return [self.counters[target.name]]

    def render(self, reports, context):
        seen = {name: counter.records for name, counter in self.counters.items()}
        errors = [error for report in reports for error in report.errors]
        return f"{seen} {errors}\\n"

class Odds(Counts):
    counter = Odd

class Raises(ReportFormat):
    def render(self, reports, context):
        raise ZeroDivisionError("nothing")

class Number(ReportFormat):
    def render(self, reports, context):
        return 7

class Blind(Lines):
    def look(self, target):
        return ["no validator"]

class Refuses(Lines):
    def finish(self, reports, context):
        raise UsageError("no lines today", hint="come tomorrow")

class Stray:
    render = len

@hookimpl
def tfrecreg_report_formats():
    for kind in (Lines, Counts, Odds, Raises, Number, Blind, Refuses, Stray):
        load = lambda kind=kind: kind
        yield ReportFormatRecord(name=kind.__name__.lower(), summary="for tests", load=load)
'''


@pytest.fixture
def site(tmp_path: Path) -> dict[str, str]:
    """An environment with a distribution that brings formats: a module and its entry point."""
    install(tmp_path / "site", "liners", PLUGIN)
    return with_site(tmp_path / "site")


def check(registry: Path, site: dict[str, str], *more: str) -> tuple[int, str, str]:
    arguments = ("check", "digits", "--only", "crc", *more)
    done = tfrecreg("-C", registry, *arguments, env=site)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.medium
def test_it_is_given_the_reports_their_paths_and_their_codes(
    digits_registry: Path, site: dict[str, str]
) -> None:
    assert check(digits_registry, site, "--format", "lines")[:2] == (0, "digits pass\n")
    shard = min((digits_registry / "data/digits").glob("digits-train.tfrecord-*"))
    flip(shard, 20)
    code, out, err = check(digits_registry, site, "--format", "liners:lines")
    assert code == 1
    first, second, third = out.splitlines()
    assert first == "digits fail"
    assert second.startswith("CRC002 ")
    assert second.endswith(os.path.relpath(shard))
    assert third.startswith(f"{shard.name}, record 0")
    assert "printed\n" in err  # stdout is the document
    assert "1 told by " in err


@pytest.mark.medium
def test_a_gate_and_a_refusal_are_told_in_it_too(
    digits_registry: Path, tmp_path: Path, site: dict[str, str]
) -> None:
    report, out = tmp_path / "report.json", tmp_path / "out"
    told = ("--fail-on", "never", "--json", "--output", report)
    assert tfrecreg("-C", digits_registry, "check", "digits", *told).returncode == 0
    gate = ("-C", digits_registry, "gate", "digits", "--report", report, "--format", "lines")
    done = tfrecreg(*gate, "--output", out, env=site)
    assert (done.returncode, done.stdout, out.read_text()) == (0, "", "digits pass\n")
    assert done.stderr.count("told by") == 1  # not of the report before the work
    report.write_text("{}")
    done = tfrecreg(*gate, "--output", out, env=site)
    assert done.returncode == 2
    assert out.read_text().startswith("digits error\n")
    assert "is not a check report" in out.read_text()


@pytest.mark.medium
def test_it_may_look_at_the_records_in_the_same_pass(
    digits_registry: Path, tmp_path: Path, site: dict[str, str]
) -> None:
    assert check(digits_registry, site, "--format", "counts", "--jobs", "2")[:2] == (
        0,
        "{'digits': 260} []\n",
    )
    out = tmp_path / "out"
    code, said, _ = check(digits_registry, site, "--format", "counts", "--output", str(out))
    assert (code, out.read_text()) == (0, "{'digits': 260} []\n")
    assert said.startswith("digits: pass, 0 findings\nwrote ")


@pytest.mark.medium
def test_what_it_looks_with_finds_nothing(digits_registry: Path, site: dict[str, str]) -> None:
    code, out, _ = check(digits_registry, site, "--format", "odds")
    assert code == 3
    assert "the report format `odds` of `liners` 1.0 failed" in out


@pytest.mark.medium
@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("raises", 3, "`raises` of `liners` 1.0 failed in `render`: ZeroDivisionError: nothing"),
        ("number", 3, "`number` of `liners` 1.0 answered `render` with an object of type"),
        ("blind", 3, "`blind` of `liners` 1.0 answered `look` with an object of type `str`"),
        ("refuses", 2, "no lines today"),
    ],
)
def test_its_faults_are_named(
    name: str, code: int, said: str, digits_registry: Path, site: dict[str, str]
) -> None:
    found, _, err = check(digits_registry, site, "--format", name)
    assert found == code
    assert said in " ".join(err.split())
    assert "Traceback" not in err


@pytest.mark.medium
def test_a_name_of_the_core_or_of_two_is_nobodys(
    digits_registry: Path, tmp_path: Path, site: dict[str, str]
) -> None:
    taken = PLUGIN.replace("kind.__name__.lower()", "'json'")
    install(tmp_path / "site", "jsons", taken)
    install(tmp_path / "site", "others", PLUGIN)
    shown = tfrecreg("plugins", "list", env=site).stdout
    assert "broken: jsons of jsons 1.0: `tfrecreg_report_formats` yielded the name `json`" in shown
    code, _, err = check(digits_registry, site, "--format", "lines")
    assert code == 2
    said = " ".join(err.split())
    assert "choose one: `--format liners:lines` or `--format others:lines`" in said
    assert check(digits_registry, site, "--format", "others:lines")[0] == 0
