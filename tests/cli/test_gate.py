"""`tfrecreg gate` and the formats of `check`: exit codes, files and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest
from tests_support import flip

MEASURE = ("--fail-on", "never", "--format", "json", "--output", "report.json")
SHARD = "digits-train.tfrecord-00001-of-00002"


@pytest.fixture
def damaged(cli, built) -> Path:
    flip(built / "data/digits" / SHARD, 30)
    done = cli("check", "digits", *MEASURE)
    assert (done.code, done.out, done.err) == (0, "", "")
    return built


def test_a_check_measures_and_the_gate_judges(cli, built) -> None:
    assert cli("check", "digits", *MEASURE).code == 0
    done = cli("gate", "digits", "--report", "report.json")
    assert done.code == 0
    assert done.out.splitlines()[0].startswith("digits: 4 shards, 80 records, ")
    assert done.out.splitlines()[-1].startswith("pass: 0 errors")
    assert cli("gate", "digits", "--report", "report.json", "--json").json["judged"] is True


def test_what_fails_is_exit_1_in_every_format(cli, damaged, monkeypatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(damaged / "summary.md"))
    call = ("gate", "digits", "--report", "report.json")
    for form in ("text", "json", "junit", "sarif", "github", "markdown"):
        done = cli(*call, "--format", form)
        assert (done.code, done.err) == (1, "")
        assert "CRC002" in done.out
        assert SHARD in done.out
        saved = cli(*call, "--format", form, "--output", "saved")
        assert (saved.code, saved.out, saved.err) == (1, "", "")
        assert Path("saved").read_text("utf-8") == done.out
    assert (damaged / "summary.md").read_text("utf-8") == 2 * cli(*call, "--format", "markdown").out


def test_a_check_has_the_same_formats(cli, damaged) -> None:
    done = cli("check", "digits", "--format", "sarif")
    assert done.code == 1
    (run,) = json.loads(done.out)["runs"]
    assert [each["ruleId"] for each in run["results"]] == ["CRC002"]
    done = cli("check", f"data/digits/{SHARD}", "--format", "junit")
    assert done.code == 1
    assert fromstring(done.out).attrib["failures"] == "1"
    done = cli("check", f"data/digits/{SHARD}", "--format", "github")
    assert done.out.partition("\n")[2].startswith(f"::error file=data/digits/{SHARD},title=CRC002 ")


def test_an_expired_waiver_is_exit_1_and_says_so(cli, damaged) -> None:
    with Path("tfrecreg.toml").open("a", encoding="utf-8") as file:
        file.write(
            '\n[[waivers]]\ncode = "CRC002"\nowner = "ada"\nreason = "known"\n'
            "expires = 2021-01-31\n"
        )
    for done in (cli("gate", "digits", "--report", "report.json"), cli("check", "digits")):
        assert done.code == 1
        assert "error REG009 expired-waiver: The waiver of `CRC002` by ada expired on" in done.out
        assert "(waived by ada until 2021-01-31)" in done.out
        assert "expired on 2021-01-31: its findings count again" in done.err


@pytest.mark.medium
def test_every_format_names_what_was_waived_by_whom_and_until_when(cli, damaged) -> None:
    with Path("tfrecreg.toml").open("a", encoding="utf-8") as file:
        file.write(
            '\n[[waivers]]\nfingerprint = "CRC*:digits:*"\nowner = "ada"\nreason = "known"\n'
            "expires = 2099-01-31\n"
        )
    for form in ("text", "json", "junit", "sarif", "github", "markdown", "html"):
        for call in (("gate", "digits", "--report", "report.json"), ("check", "digits")):
            done = cli(*call, "--format", form)
            assert done.code == 0
            for word in ("CRC002", "ada", "2099-01-31", "known"):
                assert word in done.out, form
    _, github, verdict = cli("check", "--format", "github").out.splitlines()
    assert github.startswith(
        f"::notice file=data/digits/{SHARD},title=waived CRC002 data-checksum%3A digits::waived by "
        "ada until 2099-01-31: known%0A"
    )
    assert verdict == "tfrecreg: digits: pass"
    assert (
        "waived: CRC002 CRC002:digits:train::digits-train.tfrecord-00001-of-00002 by ada until "
        "2099-01-31: known"
    ) in " ".join(cli("check", "digits").out.split())


def test_metrics_and_plots_are_written_beside_the_report(cli, built) -> None:
    done = cli("check", "digits", *MEASURE, "--metrics", "m.json", "--plots", "some/plots")
    assert done.code == 0, done.err
    numbers = json.loads(Path("m.json").read_text())
    assert (numbers["shards"], numbers["records"]) == (4, 80)
    assert numbers["splits"] == {"test": 20, "train": 60}
    assert Path("some/plots/splits.csv").read_text() == "split,records\ntest,20\ntrain,60\n"
    features = Path("some/plots/features.csv").read_text().splitlines()
    assert features[0] == "feature,bytes"
    assert features[1].startswith("image/encoded,")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ("check", "digits", "--json", "--format", "junit"),
            "`--json` and `--format junit` exclude each other",
        ),
        (
            ("check", "digits", f"data/digits/{SHARD}", "--metrics", "m.json"),
            "`--metrics` needs exactly one target, found 2",
        ),
        (("gate", "digits"), "Missing option '--report'"),
        (
            ("gate", "digits", "--report", "none.json"),
            "the report `none.json` cannot be read: No such file or directory",
        ),
    ],
)
def test_misuse_is_exit_2_and_one_line(arguments, complaint, cli, built) -> None:
    done = cli(*arguments)
    assert done.code == 2
    assert f"error: {complaint}" in done.err
    assert done.out == "" or "--json" in arguments


def test_an_incomplete_check_is_exit_3_whatever_fails(cli, built) -> None:
    shard = built / "data/digits" / SHARD
    shard.unlink()
    shard.mkdir()
    assert cli("check", "digits", *MEASURE).code == 3
    for form in ("text", "junit", "sarif", "github", "markdown"):
        assert cli("check", "digits", "--format", form).code == 3


def test_gate_limits_that_changed_are_exit_2_with_the_commands_to_run(cli, built) -> None:
    assert cli("check", "digits", *MEASURE).code == 0
    with Path("tfrecreg.toml").open("a", encoding="utf-8") as file:
        file.write("\n[gates.default]\nlimits.inflation = { ratio = 3.0 }\n")
    done = cli("gate", "digits", "--report", "report.json")
    assert done.code == 2
    assert "was measured under other limits of `inflation`" in done.err
    assert (
        "hint: `tfrecreg check digits --fail-on never --format json --output report.json` makes a "
        "new one; in a pipeline: `tfrecreg pipeline`, then `dvc repro`"
    ) in done.err
