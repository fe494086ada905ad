"""Two branches of a git repository: releases of other datasets merge, the same number conflicts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from git_support import commit, git, start
from publish_support import write_raw

from tfrecreg.builtin.releases.audit import audit_releases
from tfrecreg.builtin.releases.release import ReleaseResult, publish
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import open_registry


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A registry in git, without DVC, with a release of `one` and of `two`."""
    return begun(tmp_path, with_dvc=False)


def begun(folder: Path, *, with_dvc: bool) -> Path:
    root = start(folder / "registry-root")
    init(root, with_dvc=with_dvc)
    commit(root, "a registry")
    for process, name in enumerate(("one", "two")):
        released(root, name, 10 * process)
        commit(root, f"Release {name}@1.0.0")
    return root


def released(root: Path, name: str, first: int) -> ReleaseResult:
    """A release of three images, the first of which has that number."""
    raw = root.parent / f"raw-{name}"
    shutil.rmtree(raw, ignore_errors=True)
    write_raw(raw, range(first, first + 3))
    request = BuildRequest(name=name, source="mnist", raw=str(raw))
    return publish(open_registry(root), request, None)[1]


def on_branch(root: Path, branch: str, name: str, first: int) -> None:
    git(root, "switch", "--quiet", "--create", branch, "main")
    assert str(released(root, name, first).version) == "2.0.0"
    commit(root, f"Release {name}@2.0.0")


def merge(root: Path, branch: str) -> subprocess.CompletedProcess[str]:
    command = ["git", "-C", str(root), "merge", "--no-edit", branch]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def releases(root: Path) -> dict[str, list[str]]:
    registry = open_registry(root)
    return {
        name: [str(v) for v in registry.dataset(name).versions] for name in registry.dataset_names()
    }


def test_releases_of_different_datasets_merge_without_a_conflict(root: Path) -> None:
    on_branch(root, "a", "one", 5)
    on_branch(root, "b", "two", 15)
    done = merge(root, "a")
    assert done.returncode == 0, done.stdout
    assert releases(root) == {"one": ["1.0.0", "2.0.0"], "two": ["1.0.0", "2.0.0"]}
    assert audit_releases(open_registry(root)).findings == ()


def test_datasets_that_are_new_on_both_branches_merge_without_a_conflict(root: Path) -> None:
    for branch, name, process in (("a", "three", 4), ("b", "four", 5)):
        git(root, "switch", "--quiet", "--create", branch, "main")
        released(root, name, 10 * process)
        commit(root, f"Release {name}@1.0.0")
    done = merge(root, "a")
    assert done.returncode == 0, done.stdout
    assert list(releases(root)) == ["four", "one", "three", "two"]
    config = open_registry(root).config
    assert git(root, "diff", "--name-only", "main", "a").split() == [
        "datasets/three.toml",
        "registry/three/1.0.0/manifest.json",
        "registry/three/1.0.0/schema.pbtxt",
        "schemas/three.pbtxt",
    ]
    assert {name: each.raw for name, each in config.datasets.items()} == {
        name: str(root.parent / f"raw-{name}") for name in ("one", "two", "three", "four")
    }
    assert audit_releases(open_registry(root)).findings == ()


def test_what_both_say_otherwise_of_one_dataset_is_a_conflict_with_marks(root: Path) -> None:
    path = root / "datasets/one.toml"
    for branch, shards in (("a", 2), ("b", 3)):
        git(root, "switch", "--quiet", "--create", branch, "main")
        path.write_text(path.read_text() + f"shards = {shards}\n")
        commit(root, "other shards")
    done = merge(root, "a")
    assert done.returncode == 1
    assert "CONFLICT (content): Merge conflict in datasets/one.toml" in done.stdout
    text = path.read_text()
    assert "<<<<<<< HEAD\nshards = 3\n=======\nshards = 2\n>>>>>>> a\n" in text


@pytest.mark.medium
def test_the_same_number_of_both_conflicts_and_the_loser_takes_the_next(root: Path) -> None:
    on_branch(root, "a", "one", 25)
    shutil.rmtree(root / "versions/one/2.0.0")  # branch b is another person's, on another machine
    on_branch(root, "b", "one", 35)
    ((code, found),) = [
        (each.code, each.message) for each in audit_releases(open_registry(root), base="a").findings
    ]
    assert code == "REG006"
    assert "`one@2.0.0` is a different release on a" in found
    done = merge(root, "a")
    assert done.returncode == 1
    assert "CONFLICT (add/add): Merge conflict in registry/one/2.0.0/manifest.json" in done.stdout
    assert "UU" not in git(root, "status", "--porcelain")
    # What docs/releases.md says: theirs keeps the number, ours takes the next one.
    git(root, "checkout", "--theirs", "--", "registry/one/2.0.0")
    commit(root, "Merge a, which has 2.0.0")
    assert audit_releases(open_registry(root)).findings == ()
    again = released(root, "one", 35)
    assert str(again.version) == "3.0.0"
    commit(root, "Release one@3.0.0, which was 2.0.0 here")
    assert releases(root)["one"] == ["1.0.0", "2.0.0", "3.0.0"]
    assert audit_releases(open_registry(root)).findings == ()
    assert audit_releases(open_registry(root), base="a").findings == ()


@pytest.mark.slow
def test_pointers_of_dvc_to_different_datasets_merge_without_a_conflict(tmp_path: Path) -> None:
    root = begun(tmp_path, with_dvc=True)
    on_branch(root, "a", "one", 5)
    on_branch(root, "b", "two", 15)
    assert git(root, "diff", "--name-only", "main", "a").split() == [
        "data/one.dvc",
        "registry/one/2.0.0/manifest.json",
        "registry/one/2.0.0/schema.pbtxt",
    ]
    done = merge(root, "a")
    assert done.returncode == 0, done.stdout
    assert releases(root) == {"one": ["1.0.0", "2.0.0"], "two": ["1.0.0", "2.0.0"]}
    assert audit_releases(open_registry(root)).findings == ()
