"""`check --cached`: what was found before is found again, and nobody is told that all was read."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from check_support import framed
from tests_support import Watcher, flip, tree

from tfrecreg.builtin.releases.release import ReleaseRequest, release
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.run import check
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import int64_feature
from tfrecreg.core.plugins.code_digest import code_of, digest_of_packages
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.config import FailOn
from tfrecreg.core.values.errors import RefusedError


@pytest.fixture
def root(digits_registry: Path) -> Path:
    """Shards that are older than two seconds."""
    for path in (digits_registry / "data/digits").rglob("*"):
        age(path)
    return digits_registry


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This user's caches."""
    folder = tmp_path / "user-cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def age(path: Path) -> None:
    os.utime(path, (1e9, 1e9))


def checked(target: str, root: Path | None = None, **options: Any) -> Report:
    (report,) = check([target], registry=root, options=CheckOptions(cached=True, **options))
    return report


def document(report: Report) -> dict[str, Any]:
    found = report.to_json()
    found["summary"].pop("cached", None)
    return found


def shard(root: Path) -> Path:
    return root / "data/digits/digits-train.tfrecord-00000-of-00002"


def test_the_second_check_of_a_build_reads_no_shard_and_says_the_same(root: Path) -> None:
    (plain,) = check(["digits"], registry=root)
    first, second = checked("digits", root), checked("digits", root)
    assert (plain.cached, first.cached, second.cached) == (None, 0, 4)
    assert document(first) == document(second) == document(plain)
    assert second.to_json()["summary"]["cached"] == 4
    assert "cached" not in plain.to_json()["summary"]
    assert {"crc", "inflation", "manifest", "schema", "source"} <= set(second.validators)


def test_findings_of_every_validator_come_back(root: Path) -> None:
    schema = root / "schemas/digits.pbtxt"
    text = schema.read_text().replace("max: 255", "max: 3")
    assert text != schema.read_text()
    (root / "strict.pbtxt").write_text(text)
    flip(shard(root), 300)
    age(shard(root))
    strict = {"schema": str(root / "strict.pbtxt")}
    first, second = checked("digits", root, **strict), checked("digits", root, **strict)
    assert (first.cached, second.cached) == (0, 4)
    assert document(first) == document(second)
    assert {finding.code for finding in second.findings} >= {"CRC002", "SCH006"}
    assert second.exit_code == 1


def test_another_schema_is_another_check(root: Path) -> None:
    checked("digits", root)
    schema = root / "schemas/digits.pbtxt"
    (root / "other.pbtxt").write_text(schema.read_text() + "# a remark\n")
    assert checked("digits", root, schema=str(root / "other.pbtxt")).cached == 0
    assert checked("digits", root, only=("crc", "manifest")).cached == 4


def test_files_beside_the_shards_are_looked_at_every_time(root: Path) -> None:
    assert checked("digits", root).status == "pass"
    (root / "data/digits/ledger.jsonl").write_bytes(b"{}\n")
    (root / "data/digits/new").write_bytes(b"x")
    report = checked("digits", root)
    assert report.cached == 4
    assert {finding.code for finding in report.findings} >= {"SHD002", "SHD005"}


def test_an_index_that_changed_makes_its_shard_read_again(root: Path) -> None:
    checked("digits", root)
    flip(root / f"data/digits/index/{shard(root).name}.index", 20)
    report = checked("digits", root)
    assert report.cached == 3
    assert [finding.code for finding in report.findings] == ["SHD002"]


def test_a_shard_that_is_gone_is_missed(root: Path) -> None:
    checked("digits", root)
    shard(root).unlink()
    report = checked("digits", root)
    assert report.cached == 3
    assert "SHD001" in {finding.code for finding in report.findings}


def test_with_raw_data_every_shard_is_read_and_that_is_said(root: Path) -> None:
    watcher = Watcher()
    options = CheckOptions(cached=True, raw=str(root / "raw"))
    for _ in range(2):
        (report,) = check(["digits"], registry=root, options=options, progress=watcher)
        assert report.cached == 0
    assert (
        watcher.notes == ["every shard was read, because results of `source` cannot be cached"] * 2
    )


@pytest.mark.parametrize("how", ["check", "release"])
def test_a_full_check_forgets_what_is_remembered(root: Path, how: str) -> None:
    assert checked("digits", root).status == "pass"
    rot(shard(root))
    assert checked("digits", root).status == "pass"
    if how == "check":
        assert check(["digits"], registry=root)[0].status == "fail"
    else:
        with pytest.raises(RefusedError, match="the gate failed"):
            release(open_registry(root), ReleaseRequest(name="digits", version="1.0.1"))
    again = checked("digits", root)
    assert (again.status, again.cached) == ("fail", 0)


def rot(path: Path) -> None:
    """A bit flips on the disk: neither time nor inode tell."""
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    with path.open("r+b") as file:
        file.write(data)
    age(path)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    folder = tmp_path / "shards"
    folder.mkdir()
    for number in range(3):
        path = folder / f"x-{number:05d}-of-00003.tfrecord"
        path.write_bytes(framed(*(encode({"n": int64_feature(n)}) for n in range(number + 1))))
        age(path)
    return folder


def test_bare_files_are_remembered_for_this_user(
    bare: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(bare.parent)
    first, second = checked(str(bare)), checked(str(bare))
    assert (first.cached, second.cached) == (0, 3)
    assert document(first) == document(second)
    assert len(tree(home / "tfrecreg/checks")) == 3
    assert tree(bare).keys() == {path.name for path in bare.iterdir()}


def test_a_cache_that_cannot_be_written_costs_nothing_but_a_note(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(bare.parent)
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    watcher = Watcher()
    options = CheckOptions(cached=True)
    (report,) = check([str(bare)], options=options, progress=watcher)
    assert (report.status, report.cached) == ("pass", 0)
    (note,) = watcher.notes
    assert note.startswith("the result could not be cached: ")


LENGTHS = """
    from tfrecreg.api import Code, RecordValidator, Severity, ValidatorRecord, hookimpl

    LNG = Code("LNG001", "too-long", Severity.WARNING, "it is too long", "make it short", "Page")

    class Lengths(RecordValidator):
        name = "lengths"
        codes = (LNG,)
        features = ("n",)

        def look(self, example):
            return {look}

    def load():
        return Lengths

    @hookimpl
    def tfrecreg_validators():
        yield ValidatorRecord("lengths", "finds what is too long", [LNG], load)
"""


def test_what_other_code_of_a_validator_found_is_not_found_again(
    bare: Path, home: Path, monkeypatch: pytest.MonkeyPatch, install_plugin: Any
) -> None:
    del home
    monkeypatch.chdir(bare.parent)
    install_plugin(text=dedent(LENGTHS).replace("{look}", "None"))
    reports = [checked(str(bare), only=("lengths",)) for _ in range(2)]
    assert [(each.status, each.cached) for each in reports] == [("pass", 0), ("pass", 3)]
    module = Path(sys.modules["fake_stranger"].__file__ or "")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module.write_text(module.read_text().replace("return None", "return 'four'"))
    for cache in (plugins, code_of, digest_of_packages):  # as in a new process
        cache.cache_clear()
    del sys.modules["fake_stranger"]
    again = checked(str(bare), only=("lengths",), fail_on=FailOn.WARNING)
    assert (again.status, again.cached) == ("fail", 0)
    assert [finding.code for finding in again.findings] == ["LNG001"]
