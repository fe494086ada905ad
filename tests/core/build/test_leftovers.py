"""Temporary files of a killed writer do not stay in a stage."""

from __future__ import annotations

from pathlib import Path

from tfrecreg.core.build.state import remove_leftovers
from tfrecreg.core.storage.local import LocalStorage


def test_temporary_files_are_removed_and_others_stay(tmp_path: Path) -> None:
    stage = LocalStorage(tmp_path)
    for path in ("a.tfrecord", "index/a.idx", "notes.tmp"):
        with stage.create(path) as writer:
            writer.write(b"whole")
    writers = [stage.create("b.tfrecord"), stage.create("index/b.idx")]
    for writer in writers:
        writer.write(b"half")
    assert len(list(stage.list())) > 5
    remove_leftovers(stage)
    assert sorted(each.path for each in stage.list() if each.kind == "file") == [
        "a.tfrecord",
        "index/a.idx",
        "notes.tmp",
    ]
    for writer in writers:
        writer.abort()
