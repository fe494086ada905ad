"""What a gate expects of answers: findings with their rows, waivers, reports, errors."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from check_support import framed
from tests_support import flip

from tfrecreg.builtin.dvc.pipeline import stages_of
from tfrecreg.builtin.releases.audit import loosened
from tfrecreg.cli.main import main
from tfrecreg.core.check.gate import gate
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.run import check
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.config import FailOn, parse_config
from tfrecreg.core.values.errors import ConfigError, UsageError
from tfrecreg.core.values.findings import Finding
from tfrecreg.core.values.text import json_data

pytest.importorskip("duckdb", reason="the extra `query` is not installed")

ROWS = "[gates.default.expect.small]\nquery = \"SELECT * FROM records WHERE split = 'test'\"\n"
FAULTY = '[gates.default.expect.x]\nquery = "{}"\n'

Checked = Callable[..., Report]


@pytest.fixture
def checked(tmp_path: Path) -> Checked:
    """A check of a few records under a gate."""
    registry = tmp_path / "registry"
    registry.mkdir()
    path = tmp_path / "cats-train.tfrecord"
    path.write_bytes(
        framed(
            *(
                encode(
                    {
                        "label": bytes_feature(label),
                        "n": int64_feature(number),
                        "share": float_feature(number / 4),
                    }
                )
                for number, label in enumerate((b"cat", b"dog", b"cat", b"\x1b[31m"))
            )
        )
    )

    def run(config: str, **options: object) -> Report:
        (registry / "tfrecreg.toml").write_text(config)
        given = CheckOptions(**{"only": ("questions",), **options})
        (report,) = check([str(path)], registry=str(registry), options=given)
        return report

    return run


def expecting(keys: str, query: str) -> str:
    return f"[gates.default.expect.x]\nquery = '''{query}'''\n{keys}\n"


def found(report: Report) -> list[str]:
    assert report.errors == ()
    return [each.message for each in report.findings]


@pytest.mark.medium
def test_rows_that_should_not_be_are_located(digits_registry: Path) -> None:
    (digits_registry / "tfrecreg.toml").write_text(
        "[gates.digits.expect.no-ones]\n"
        "query = \"SELECT split, shard, record, key, label FROM records WHERE label = '1'\"\n"
        'severity = "warning"\nmessage = "no digit is a one"\n'
    )
    (report,) = check(["digits"], registry=str(digits_registry))
    (finding,) = (each for each in report.findings if each.code == "QRY001")
    assert report.status == "pass"
    assert (finding.severity.value, finding.fingerprint) == ("warning", "QRY001:digits:::no-ones")
    ones = finding.count
    assert finding.message == f"`no-ones`: no digit is a one; expected no row, found {ones}"
    index = {each["key"] for each in keys_of(digits_registry)}
    assert 20 <= ones <= 260
    assert len(finding.locations) == 20
    assert {each.key for each in finding.locations} <= index
    first = finding.locations[0]
    assert (first.split, first.shard, first.detail) == (
        "test",
        "digits-test.tfrecord-00000-of-00002",
        "label `1`",
    )


def keys_of(root: Path) -> list[dict[str, str]]:
    from tfrecreg.builtin.query.ask import ask

    with ask("digits", registry=str(root)) as questions:
        return questions.answer("SELECT key FROM records").rows()


@pytest.mark.parametrize(
    ("keys", "query", "told"),
    [
        ("equals = 4", "SELECT count(*) FROM records", None),
        ("equals = 4", "SELECT sum(n) - 2 FROM records", None),
        ("equals = 5", "SELECT count(*) FROM records", "expected 5, found 4"),
        ("equals = 4.0", "SELECT count(*) FROM records", None),
        ("equals = 1", "SELECT true", "expected 1, found true"),
        ("equals = true", "SELECT true", None),
        ("equals = 'cat'", "SELECT min(label) FROM records WHERE n < 3", None),
        ("equals = 'dog'", "SELECT label FROM records WHERE n = 0", "expected `dog`, found `cat`"),
        ("equals = 0.1", "SELECT 0.1", None),
        ("equals = 1", "SELECT NULL", "expected 1, found null"),
        ("at_least = 3", "SELECT max(n) FROM records", None),
        ("at_least = 3.5", "SELECT max(n) FROM records", "expected at least 3.5, found 3"),
        ("at_most = 2", "SELECT max(n) FROM records", "expected at most 2, found 3"),
        ("at_least = 1\nat_most = 2", "SELECT 3", "expected 1 to 2, found 3"),
        ("at_least = 0", "SELECT 'nan'::DOUBLE", "expected at least 0, found nan"),
        (
            "at_least = 0",
            "SELECT label FROM records WHERE n = 0",
            "expected at least 0, found `cat`",
        ),
        ("at_least = 0", "SELECT n FROM records WHERE false", "expected at least 0, found no row"),
        (
            "at_least = 2",
            "SELECT label, count(*) FROM records WHERE n < 3 GROUP BY label",
            "expected at least 2, which 1 of 2 rows break",
        ),
        ("", "SELECT n FROM records WHERE n > 5", None),
        ("", "SELECT n FROM records WHERE n > 2", "expected no row, found 1"),
    ],
)
def test_what_holds(checked: Checked, keys: str, query: str, told: str | None) -> None:
    assert found(checked(expecting(keys, query))) == ([f"`x`: {told}"] if told else [])


@pytest.mark.medium
def test_a_row_shows_its_columns_and_only_true_places(checked: Checked) -> None:
    def places(keys: str, query: str) -> list[dict[str, str | int]]:
        (finding,) = checked(expecting(keys, query)).findings
        return [each.to_json() for each in finding.locations]

    (shard,) = {each["shard"] for each in places("", "SELECT shard, record FROM records")}
    assert places(
        "", "SELECT 'a' AS shard, 3 AS record, true AS split, label FROM records LIMIT 1"
    ) == [{"detail": "shard `a`, record 3, split true, label `cat`"}]
    assert places("", 'SELECT shard, record, "offset", label FROM records WHERE n = 3') == [
        {"shard": shard, "record": 3, "offset": 201, "detail": "label `\\x1b[31m`"}
    ]
    assert places("equals = 1", "SELECT label, n FROM records WHERE n < 3") == [
        {"detail": "found 0, label `cat`"},
        {"detail": "found 2, label `cat`"},
    ]
    many = ", ".join(f"{number} AS c{number}" for number in range(9))
    (place,) = places("", f"SELECT {many}")
    assert place["detail"] == ", ".join(f"c{number} {number}" for number in range(8)) + ", …"
    assert places("equals = 1", "SELECT 2") == []


def test_a_waiver_covers_an_expectation(checked: Checked) -> None:
    report = checked(
        expecting("", "SELECT n FROM records") + "[[waivers]]\nfingerprint = 'QRY001:*:x'\n"
        "owner = 'ada'\nreason = 'known'\nexpires = 2999-01-01\n"
    )
    assert (report.status, report.findings) == ("pass", ())
    assert [each.code for each in report.waived] == ["QRY001"]


def test_gates_share_expectations_by_name() -> None:
    config = parse_config(
        expecting("at_least = 3", "SELECT 1") + "[gates.cats.expect.x]\nat_least = 1\n"
        "[gates.cats.expect.y]\nquery = 'SELECT 2'\n"
    )
    assert config.gate("cats").expect == {
        "x": {"query": "SELECT 1", "at_least": 1},
        "y": {"query": "SELECT 2"},
    }


def test_damage_is_left_out_and_said(checked: Checked, tmp_path: Path) -> None:
    flip(tmp_path / "cats-train.tfrecord", 20)
    report = checked(expecting("equals = 3", "SELECT count(*) FROM records"))
    assert found(report) == []
    (said,) = (each.text for each in report.measures if each.name == "questions.lacks")
    assert said.startswith("1 damaged place is left out of ")


def test_a_check_without_expectations_does_not_ask(checked: Checked) -> None:
    assert "questions" not in checked("", only=()).validators
    assert "questions" in checked(expecting("", "SELECT 1 WHERE false"), only=()).validators
    named = "gates.default.validators = ['crc']\n" + expecting("", "SELECT 1 WHERE false")
    assert checked(named, only=()).validators == ("crc", "questions")
    assert checked(named, only=("crc",)).validators == ("crc",)
    assert checked(named, only=(), skip=("questions",)).validators == ("crc",)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (FAULTY.format("SELEC 1"), "cannot be asked: syntax error at or near"),
        (FAULTY.format("DROP TABLE records"), "cannot be asked: expected one SELECT"),
        (FAULTY.format("SELECT 1; SELECT 2"), "cannot be asked: expected one SELECT"),
        (FAULTY.format(" "), "has an empty `query`"),
        ("[gates.default.expect.x]\nequals = 1\n", "`expect.x.query` is missing"),
        (FAULTY.format("SELECT 1") + "equal = 1\n", "`expect.x.equal` is not known; did you mean"),
        (FAULTY.format("SELECT 1") + "equals = [1]\n", "`expect.x.equals` should be a number"),
        (FAULTY.format("SELECT 1") + "at_least = true\n", "should be a number, found `true`"),
        (FAULTY.format("SELECT 1") + "at_least = nan\n", "should be a number, found `nan`"),
        (FAULTY.format("SELECT 1") + "equals = 1\nat_most = 1\n", "has `equals` and a limit"),
        (
            FAULTY.format("SELECT 1") + "at_least = 2\nat_most = 1\n",
            "`at_least` above its `at_most`",
        ),
        (
            FAULTY.format("SELECT 1") + "severity = 'bad'\n",
            "should be `error`, `warning` or `info`",
        ),
        (
            "[gates.default.expect.'a b']\nquery = 'SELECT 1'\n",
            "should have a name of letters, digits, `-` and `_`",
        ),
    ],
)
def test_a_faulty_expectation_ends_the_check_before_it_reads(
    checked: Checked, config: str, told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        checked(config)
    assert caught.value.exit_code == 2
    assert told in caught.value.message
    assert caught.value.message.startswith("`tfrecreg.toml`: `expect.")
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT labell FROM records", 'Referenced column "labell" not found'),
        ("SELECT * FROM findings", "Table with name findings does not exist"),
        ("SELECT * FROM '/etc/passwd'", "/etc/passwd"),
        ("SELECT label::INT FROM records", "Could not convert string"),
    ],
)
def test_what_shows_in_the_answer_makes_the_check_incomplete(
    checked: Checked, query: str, told: str
) -> None:
    report = checked(expecting("", query), only=("questions", "crc"))
    assert (report.status, report.findings) == ("error", ())
    (error,) = report.errors
    assert error.startswith(
        "the validator `questions` failed: `tfrecreg.toml`: `expect.x` cannot be "
    )
    assert told in error


def test_what_is_no_tfrecord_is_not_asked(checked: Checked, tmp_path: Path) -> None:
    (tmp_path / "cats-train.tfrecord").write_bytes(b"PK\x03\x04" + bytes(40))
    report = checked(expecting("equals = 0", "SELECT count(*) FROM records"))
    assert report.status == "error"
    assert "is not a TFRecord" in report.errors[0]


def test_at_the_command_line(
    tmp_path: Path, digits_original: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path(shutil.copytree(digits_original, tmp_path / "r"))
    config = root / "tfrecreg.toml"
    config.write_text(expecting("equals = 7", "SELECT count(DISTINCT label) FROM records"))
    run = ["-C", str(root), "check", "digits", "--only", "questions"]
    assert main(run) == 1
    assert "error QRY001 expectation-broken: `x`: expected 7, found 10" in capsys.readouterr().out
    config.write_text(FAULTY.format("SELEC"))
    assert main(run) == 2
    error = capsys.readouterr().err.splitlines()[0]
    assert error.startswith("error: `tfrecreg.toml`: `expect.x` cannot be asked: syntax error")
    config.write_text("")
    assert main(run) == 2
    assert "the gate asks no question" in capsys.readouterr().err


class TestGate:
    def test_a_report_has_to_answer_the_questions_of_today(self, digits_registry: Path) -> None:
        config = digits_registry / "tfrecreg.toml"

        def saved() -> Path:
            never = CheckOptions(fail_on=FailOn.NEVER)
            (report,) = check(["digits"], registry=str(digits_registry), options=never)
            path = digits_registry / "report.json"
            path.write_text(json.dumps({**report.to_json()}), "utf-8")
            return path

        def judged(path: Path) -> Report:
            return gate(open_registry(digits_registry), "digits", path, today=date(2026, 5, 1))

        config.write_text("")
        path = saved()
        config.write_text(ROWS)
        with pytest.raises(
            UsageError, match="lacks `questions`, which the gate of `digits` requires"
        ):
            judged(path)
        path = saved()
        report = judged(path)
        (finding,) = qry(report.findings)
        assert (report.status, finding.count) == ("fail", 60)
        config.write_text(ROWS.replace("'test'", "'dev'"))
        with pytest.raises(UsageError, match="was measured under other limits of `questions`"):
            judged(path)

    def test_a_pipeline_checks_again_when_the_questions_change(self, digits_registry: Path) -> None:
        (digits_registry / "tfrecreg.toml").write_text(ROWS)
        params = stages_of(open_registry(digits_registry), "digits")["check-digits"]["params"]
        assert "gates.default.expect" in str(params)

    def test_a_weaker_gate_is_told(self) -> None:
        strict = parse_config(ROWS)
        weaker = parse_config(ROWS.replace("'test'", "'dev'"))
        for after, told in ((weaker, "was changed"), (parse_config(""), "was removed")):
            assert [each.message for each in loosened(strict, after)] == [
                f"`gates.default.expect.small`: {told}"
            ]
        assert loosened(parse_config(""), strict) == []

    def test_a_release_is_held_against_it(
        self, digits_registry: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (digits_registry / "tfrecreg.toml").write_text(ROWS)
        shutil.rmtree(digits_registry / "registry/digits")
        assert main(["-C", str(digits_registry), "release", "digits"]) == 1
        assert "QRY001" in "".join(capsys.readouterr())
        assert not open_registry(digits_registry).dataset("digits").versions


def qry(findings: tuple[Finding, ...]) -> list[Finding]:
    return [each for each in findings if each.code == "QRY001"]


@pytest.mark.medium
@pytest.mark.parametrize("severity", ["warning", "info", "error"])
def test_a_report_keeps_the_severity_that_its_question_has(
    digits_registry: Path, severity: str
) -> None:
    query = "SELECT split, shard, record FROM records"
    (digits_registry / "tfrecreg.toml").write_text(
        f'[gates.digits.expect.none]\nquery = "{query}"\nseverity = "{severity}"\n'
    )
    (report,) = check(
        ["digits"], registry=str(digits_registry), options=CheckOptions(fail_on="never")
    )
    path, registry = digits_registry / "report.json", open_registry(str(digits_registry))
    path.write_text(json.dumps(json_data(report)))
    judged = gate(registry, "digits", path)
    assert judged.status == ("fail" if severity == "error" else "pass")
    (finding,) = (each for each in judged.findings if each.code == "QRY001")
    assert (finding.severity.value, finding.count) == (severity, report.records)
    # A lower one than the question has was edited in.
    lowered = {"warning": "info", "info": "warning", "error": "warning"}[severity]
    document = json.loads(path.read_text())
    for each in document["findings"]:
        if each["code"] == "QRY001":
            each["severity"] = lowered
            document["summary"]["severities"][severity] -= 1
            document["summary"]["severities"][lowered] += 1
    path.write_text(json.dumps(document))
    if severity == "info":
        assert gate(registry, "digits", path).status == "pass"
    else:
        with pytest.raises(UsageError):
            gate(registry, "digits", path)
