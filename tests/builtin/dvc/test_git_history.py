"""What git says of files and of tags, in real repositories."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_support import commit, git, start

from tfrecreg.core.registry import git as ours


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return start(tmp_path / "tree")


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_each_touch_of_a_file_is_told_the_newest_first(tree: Path) -> None:
    put(tree / "sub/r/a/1.0.0/m", "one")
    first = commit(tree)
    put(tree / "sub/r/a/1.0.0/m", "two")
    put(tree / "sub/r/a/1.0.0/with space\nand line", "x")
    second = commit(tree)
    (tree / "sub/r/a/1.0.0/m").unlink()
    third = commit(tree)
    put(tree / "elsewhere", "nothing to do with it")
    commit(tree)
    found = ours.touches(str(tree / "sub"), "r/a")
    assert [(each.commit, each.path, each.added, bool(each.blob)) for each in found] == [
        (third, "r/a/1.0.0/m", False, False),
        (second, "r/a/1.0.0/m", False, True),
        (second, "r/a/1.0.0/with space\nand line", True, True),
        (first, "r/a/1.0.0/m", True, True),
    ]
    assert found[-1].blob == ours.blob_id(b"one", found[-1].blob)


def test_a_merge_touched_what_no_branch_has(tree: Path) -> None:
    for name in ("both", "gone"):
        put(tree / f"r/{name}", "at first")
    commit(tree)
    for branch in ("one", "two"):
        git(tree, "switch", "--quiet", "--create", branch, "main")
        put(tree / f"r/{branch}", branch)
        put(tree / "r/both", branch)
        commit(tree)
    git(tree, "merge", "--quiet", "--no-commit", "--strategy=ours", "one")
    put(tree / "r/one", "one")
    put(tree / "r/both", "one and two")
    put(tree / "r/new", "new")
    (tree / "r/gone").unlink()
    merge = commit(tree)
    found = [each for each in ours.touches(str(tree), "r") if each.commit == merge]
    blob = found[0].blob
    assert [(each.path, each.blob, each.added) for each in found] == [
        ("r/both", ours.blob_id(b"one and two", blob), False),
        ("r/gone", "", False),
        ("r/new", ours.blob_id(b"new", blob), True),
    ]


def test_settings_of_the_user_change_nothing(tree: Path) -> None:
    put(tree / "r/m", "one")
    commit(tree)
    for name, value in (("color.ui", "always"), ("log.follow", "true"), ("core.quotePath", "true")):
        git(tree, "config", name, value)
    assert [each.path for each in ours.touches(str(tree), "r")] == ["r/m"]
