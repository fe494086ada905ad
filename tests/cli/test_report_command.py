"""A run that comes to no verdict has a report, too: no file is left from an earlier run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from html import unescape
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from tfrecreg._version import JSON_VERSION

FORMATS = ("text", "json", "junit", "sarif", "github", "markdown")
OLD = "an earlier run passed\n"

REFUSED = {
    "no such target": ("check", "dgits"),
    "no such validator": ("check", "digits", "--only", "cRc"),
    "no such choice": ("check", "digits", "--fail-on", "always"),
    "no such option": ("check", "digits", "--fial-on", "error"),
    "no such dataset": ("audit", "dgits"),
    "no report": ("gate", "digits", "--report", "none.json"),
    "a missing option": ("gate", "digits"),
}

FIRST = "tfrecreg: digits, a build that is not released (the first): 80 records\n"


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_run_leaves_its_own_report(cli, built, case) -> None:
    command, *rest = REFUSED[case]
    for form in FORMATS:
        Path("report").write_text(OLD)
        done = cli(command, "--output", "report", "--format", form, *rest)
        assert done.code == 2
        assert done.err.startswith("error: ")
        assert done.out == ""
        told = Path("report").read_text("utf-8")
        assert OLD not in told
        message = done.err.splitlines()[0].removeprefix("error: ")
        plain = unescape(told.replace("\\", ""))
        assert message.split("`")[0] in plain, form
        if form in ("json", "sarif"):
            json.loads(told)
        if form == "junit":
            assert int(fromstring(told).attrib["errors"]) >= 1
        if form == "github":
            assert told.startswith("::error title=")


def test_the_report_of_an_unknown_format_is_the_error(cli, built) -> None:
    Path("report").write_text(OLD)
    done = cli("check", "digits", "--format", "sarfi", "--output", "report")
    assert done.code == 2
    assert "no report format named `sarfi`" in Path("report").read_text("utf-8")


def test_the_json_of_a_refused_run_is_a_report_with_the_error(cli, built) -> None:
    done = cli("check", "dgits", "--json", "--output", "report.json")
    assert (done.code, done.out) == (2, "")
    report = json.loads(Path("report.json").read_text("utf-8"))
    assert (report["format_version"], report["target"]) == (JSON_VERSION, "dgits")
    assert (report["status"], report["findings"], report["validators"]) == ("error", [], [])
    message, hint = "no dataset `dgits`; did you mean `digits`?", "available: `digits`"
    assert report["error"] == {"message": message, "hint": hint, "exit_code": 2}
    assert report["errors"] == [f"{message}; hint: {hint}"]
    done = cli("gate", "digits", "--report", "report.json")
    assert done.code == 2
    assert "`report.json` is about `dgits`, not about `digits`" in done.err


@pytest.mark.parametrize(
    "asked", [("--json",), ("--format", "json"), ("--format=json",)], ids=" ".join
)
def test_json_is_one_document_whatever_happens(cli, built, asked) -> None:
    for command, *rest in REFUSED.values():
        done = cli(command, *asked, *rest)
        assert done.code == 2
        assert done.json["format_version"] == JSON_VERSION
        assert done.json["status"] == "error"
        assert done.json["error"]["exit_code"] == 2
        assert done.err.startswith("error: ")


@pytest.mark.parametrize("arguments", [("list", "--json", "--nope"), ("lsit", "--json")])
def test_other_commands_speak_json_of_arguments_that_do_not_parse(cli, registry, arguments) -> None:
    done = cli(*arguments)
    assert (done.code, done.json["error"]["exit_code"]) == (2, 2)


def test_github_is_told_of_a_refused_run_on_stdout(cli, built, monkeypatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(built / "summary.md"))
    done = cli("check", "dgits", "--format", "github")
    assert done.code == 2
    assert done.out.splitlines() == [
        "::error title=incomplete%3A dgits::no dataset `dgits`; did you mean `digits`?; "
        "hint: available: `digits`",
        "tfrecreg: dgits: error",
    ]
    assert "dgits" in Path("summary.md").read_text("utf-8")
    done = cli("check", "digits", "--format", "github", "--output", "report")
    assert done.code == 0


def test_a_killed_run_leaves_no_report_of_an_earlier_one(built) -> None:
    Path("report").write_text(OLD)
    Path("saved").write_text(OLD)
    program = (
        "import os, signal, sys\n"
        "from tfrecreg.core.check import run\n"
        "from tfrecreg.cli.main import main\n"
        "run.check = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\n"
        "main(sys.argv[1:])\n"
    )
    arguments = ["check", "digits", "--output", "report", "--save-json", "saved"]
    done = subprocess.run([sys.executable, "-c", program, *arguments], check=False)
    assert done.returncode == -signal.SIGKILL
    assert Path("report").read_text() == Path("saved").read_text() == ""


def test_the_report_that_is_judged_is_not_written_over(cli, built) -> None:
    done = cli("check", "digits", "--fail-on", "never", "--json", "--output", "report.json")
    assert done.code == 0
    before = Path("report.json").read_bytes()
    done = cli("gate", "digits", "--report", "report.json", "--output", "./report.json")
    assert done.code == 2
    assert done.err == "error: `--report` and `--output` name the same file\n"
    assert Path("report.json").read_bytes() == before


def test_one_dataset_that_is_not_built_hides_no_report(cli, built) -> None:
    Path("datasets/absent.toml").write_text('source = "mnist"\nraw = "raw"\n')
    for named in ((), ("absent", "digits")):
        done = cli("check", *named, "--format", "json", "--output", "report.json")
        assert (done.code, done.out, done.err) == (3, "", "")
        found = json.loads(Path("report.json").read_text("utf-8"))
        assert found["format_version"] == JSON_VERSION
        assert found["status"] == "error"
        assert {each["target"]: each["status"] for each in found["reports"]} == {
            "absent": "error",
            "digits": "pass",
        }
    done = cli("check")
    assert done.code == 3
    assert "incomplete: `absent` is not built; hint: tfrecreg build absent\n" in done.out
    done = cli("check", "--ignore-missing")
    assert (done.code, done.err) == (0, "not checked: `absent` is not built\n")


# A schema that is gone, on the way from the build to the release.


@pytest.fixture
def gone(cli, built) -> Path:
    schema = Path("schemas/digits.pbtxt")
    schema.write_text(schema.read_text().replace("max: 255", "max: 9"))
    assert cli("build", "digits").code == 0
    schema.unlink()
    return schema


def test_neither_gate_nor_release_takes_a_build_whose_schema_is_gone(cli, gone) -> None:
    measure = ("--fail-on", "never", "--format", "json", "--output", "report.json")
    assert cli("check", "digits", *measure).code == 3
    report = json.loads(Path("report.json").read_text("utf-8"))
    # As one that was written where nobody minded.
    report |= {"status": "pass", "errors": []}
    Path("report.json").write_text(json.dumps(report))
    for command in (("gate", "digits", "--report", "report.json"), ("release", "digits")):
        done = cli(*command)
        assert done.code == 2
        assert done.err.splitlines() == [
            "error: `digits` has no schema: there is no `schemas/digits.pbtxt`",
            "hint: `tfrecreg schema infer digits --output schemas/digits.pbtxt` drafts one",
        ]


def test_the_json_is_saved_beside_any_format(cli, built) -> None:
    done = cli("check", "digits", "--format", "github", "--save-json", "saved.json")
    assert (done.code, done.out) == (0, FIRST + "tfrecreg: digits: pass\n")
    saved = json.loads(Path("saved.json").read_text())
    assert saved.pop("changes") == [FIRST.removeprefix("tfrecreg: ").rstrip()]
    assert saved == cli("check", "digits", "--json").json
    Path("saved.json").write_text(OLD)
    done = cli("check", "dgits", "--save-json", "saved.json")
    assert (done.code, done.out) == (2, "")
    document = json.loads(Path("saved.json").read_text())
    assert (document["status"], document["error"]["exit_code"]) == ("error", 2)
    done = cli("check", "digits", "--fial-on", "error", "--save-json", "saved.json")
    assert json.loads(Path("saved.json").read_text())["error"]["message"].startswith("No such")
    done = cli("check", "digits", "--output", "a", "--save-json", "./a")
    assert done.code == 2
    assert done.err == "error: `--output` and `--save-json` name the same file\n"
