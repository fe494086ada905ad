from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tfrecreg.core.registry import git


def run(folder: Path, *arguments: str) -> str:
    names = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    command = ["git", "-C", str(folder), *names, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "tree"
    folder.mkdir()
    run(folder, "init", "--quiet")
    return folder


def test_the_work_tree_is_found_from_any_folder_in_it(tree: Path) -> None:
    deep = tree / "some/where"
    deep.mkdir(parents=True)
    assert git.work_tree(str(tree)) == tree
    assert git.work_tree(str(deep)) == tree
    assert git.work_tree(str(tree.parent)) is None


def test_a_linked_work_tree_is_one(tree: Path) -> None:
    run(tree, "commit", "--allow-empty", "--message", "begin")
    run(tree, "worktree", "add", "--quiet", "../linked")
    linked = tree.parent / "linked"
    assert (linked / ".git").is_file()
    assert git.work_tree(str(linked)) == linked
    assert git.head_commit(str(linked)) == run(tree, "rev-parse", "HEAD")


def test_the_commit_is_that_which_is_checked_out(tree: Path) -> None:
    assert git.head_commit(str(tree)) == ""  # before the first one
    run(tree, "commit", "--allow-empty", "--message", "begin")
    commit = git.head_commit(str(tree))
    assert len(commit) == 40
    assert commit == run(tree, "rev-parse", "HEAD")
    assert git.head_commit(str(tree.parent)) == ""


def test_without_the_command_there_is_no_commit(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tree, "commit", "--allow-empty", "--message", "begin")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git.head_commit(str(tree)) == ""
