"""What a build would do, whole, and the consoles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tfrecreg.builtin.dvc.garbage import Unneeded
from tfrecreg.builtin.dvc.printed import print_gc
from tfrecreg.cli.build import print_preview
from tfrecreg.cli.demo.digits import write_digits
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.build.run import preview
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.terminal.output import write_json
from tfrecreg.core.values.shards import ShardPolicy


def test_a_dry_run(pipe, tmp_path: Path) -> None:
    init(tmp_path, with_dvc=False)
    write_digits(LocalStorage(tmp_path / "raw"), train=40, test=10, seed=1)
    policy = ShardPolicy(shards=2)
    request = BuildRequest(name="m", source="mnist", raw=str(tmp_path / "raw"), policy=policy)
    found = preview(open_registry(tmp_path), request)
    lines = pipe(lambda console: print_preview(console, found)).splitlines()
    assert lines[0].startswith("would build m from 4 raw files, ")
    assert lines[0].endswith(" kB; nothing was written")
    assert lines[1] == ""
    assert lines[2] == "  split  items  shards  at most about"
    assert [line.split()[:3] for line in lines[3:5]] == [["train", "40", "2"], ["test", "10", "2"]]
    assert {line.split()[-1] for line in lines[3:5]} == {"kB"}
    assert lines[5:] == [""]


@pytest.mark.parametrize(
    ("applied", "told"),
    [
        (True, "removed 2 things, 3.0 kB"),
        (False, "nothing was removed yet; `tfrecreg gc --apply` removes 2 things, 3.0 kB"),
    ],
)
def test_gc_says_whether_it_removed_anything(pipe, applied: bool, told: str) -> None:
    doomed = [
        Unneeded(kind="stage", path=f"data/.{name}", bytes=size, why="a killed command")
        for name, size in (("a", 1000), ("b", 2000))
    ]
    lines = pipe(lambda console: print_gc(console, doomed, applied=applied)).splitlines()
    assert [line.split()[-1] for line in lines[:-1]] == ["path", "data/.a", "data/.b"]
    assert lines[-1] == told


def test_json_is_ascii_and_one_document(capsys) -> None:
    write_json({"name": "\u202e\x1bé"})
    shown = capsys.readouterr().out
    assert shown.isascii()
    assert json.loads(shown) == {"name": "\u202e\x1bé"}
