"""GitHub Actions: read as its runner reads a log, line by line."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hostile_support import NAMES, hostile_report

from tfrecreg.builtin.reports.formats import GithubFormat, workflow_commands
from tfrecreg.core.check.report_format import ReportContext
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.findings import Location

COMMAND = re.compile(r"::(?P<name>[a-z-]+)(?: (?P<properties>.*?))?::(?P<message>.*)")


def read(line: str) -> tuple[str, dict[str, str], str] | None:
    """A workflow command as the runner understands it: after the spaces, up to the next `::`."""
    found = COMMAND.fullmatch(line.lstrip())
    if found is None:
        return None
    properties = dict(each.split("=", 1) for each in (found["properties"] or "").split(","))
    return found["name"], {key: plain(value) for key, value in properties.items()}, plain(found[3])


def plain(text: str) -> str:
    for escape, character in (("%2C", ","), ("%3A", ":"), ("%0A", "\n"), ("%0D", "\r")):
        text = text.replace(escape, character)
    return text.replace("%25", "%")


@pytest.mark.parametrize("number", range(len(NAMES)))
def test_no_name_becomes_a_command(number: int) -> None:
    text = workflow_commands([hostile_report(NAMES[number])], ReportContext())
    assert text.endswith("\n")
    assert all(line.isprintable() for line in text[:-1].split("\n"))
    assert text.splitlines() == text[:-1].split("\n")
    commands = [read(line) for line in text.splitlines()]
    assert [command and command[0] for command in commands] == [
        *(None, "error", "warning", "notice", "notice", "error", None)
    ]
    for command in commands[1:-1]:
        assert command is not None
        assert set(command[1]) <= {"file", "title"}
        assert command[1]["title"].endswith(("digits", "is incomplete"))
    assert text.splitlines()[-1] == "tfrecreg: digits: error"


@pytest.mark.parametrize("name", NAMES)
def test_no_target_becomes_a_command(name: str) -> None:
    from tfrecreg.core.values.text import safe

    text = workflow_commands([hostile_report("a", target=safe(name))], ReportContext())
    last = text.splitlines()[-1]
    assert read(last) is None
    assert "##[" not in last


def test_an_annotation_has_the_file_the_places_and_the_hint() -> None:
    text = workflow_commands([hostile_report("a,b: 100%")], ReportContext(prefix="sub"))
    command = read(text.splitlines()[1])
    assert command is not None
    name, properties, message = command
    assert name == "error"
    assert properties == {
        "file": "sub/data/digits/a,b: 100%",
        "title": "CRC002 data-checksum: digits",
    }
    assert message.split("\n") == [
        "the class `a,b: 100%` is a,b: 100%",
        *["a,b: 100%, record 3, offset 99, key a,b: 100%: expected `a,b: 100%`, found a,b: 100% "
          "(TensorFlow stops here)"] * 2,
        "… and 28 more",
        "hint: mend a,b: 100%",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("folder", "places", "file"),
    [
        ("versions/d/1.1.0", ["registry/d/1.1.0/manifest.json"], "registry/d/1.1.0/manifest.json"),
        ("data/d", ["registry/d/1.0.0.yanks.json"], "registry/d/1.0.0.yanks.json"),
        (None, ["registry/d/1.0.0/schema.pbtxt"], "registry/d/1.0.0/schema.pbtxt"),
        ("data/d", ["here"], "data/d/here"),
        ("data/d", ["gone", "here", "more"], "data/d/here"),
        ("data/d", ["gone", "more"], "data/d/gone"),
        (None, ["registry/d/1.0.0/manifest.json", "tfrecreg.toml"], "tfrecreg.toml"),
        (None, ["s3://bucket/d"], "s3://bucket/d"),
    ],
)
@pytest.mark.parametrize("registry", ["", "some/registry"])
def test_an_annotation_names_a_file_of_the_repository(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    folder: str | None,
    places: list[str],
    file: str,
    registry: str,
) -> None:
    here = tmp_path / registry
    for path in ("data/d/here", "tfrecreg.toml"):
        (here / path).parent.mkdir(parents=True, exist_ok=True)
        (here / path).write_text("")
    monkeypatch.chdir(here)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    report = hostile_report("a", folder=folder)
    finding = replace(report.findings[0], locations=tuple(Location(shard=each) for each in places))
    text = workflow_commands([replace(report, findings=(finding,))], ReportContext())
    command = read(text.splitlines()[1])
    assert command is not None
    expected = file if "://" in file else "/".join(filter(None, (registry, file)))
    assert command[1]["file"] == expected


@pytest.fixture
def finish(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | Path], None]:
    def call(summary: str | Path) -> None:
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
        GithubFormat().finish([hostile_report("a")], ReportContext())

    return call


def test_the_summary_is_appended_where_the_runner_wants_it(
    tmp_path: Path, finish: Callable[[str | Path], None]
) -> None:
    file = tmp_path / "summary.md"
    file.write_text("before\n")
    finish(file)
    assert file.read_text().startswith("before\n- digits 2.0.0 (major after 1.0.0): a\n")
    finish("")
    file.write_bytes(b"x" * (1 << 20))  # it is full
    finish(file)
    assert file.stat().st_size == 1 << 20
    with pytest.raises(UsageError, match="which cannot be written: Is a directory"):
        finish(tmp_path)
