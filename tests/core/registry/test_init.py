"""`init` makes missing files, and leaves existing files unchanged."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from git_support import git
from tests_support import tree

from tfrecreg.builtin.dvc import dvc
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.config import Config
from tfrecreg.core.values.errors import FailureError, StorageError, UsageError

FILES = {
    "tfrecreg.toml",
    "data/.gitignore",
    "versions/.gitignore",
    "versions/.dvcignore",
    ".tfrecreg/.gitignore",
    ".tfrecreg/.dvcignore",
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path.resolve() / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_a_new_folder_gets_what_a_registry_needs(here: Path) -> None:
    made = init("new/registry", with_dvc=False)
    assert made.root == str(here / "new/registry")
    assert set(made.made) == FILES == set(tree(here / "new/registry"))
    assert (made.dvc, made.commands) == ("absent", ())
    opened = open_registry("new/registry")
    assert opened.config == Config(home=made.root)
    assert opened.dataset_names() == []


def test_what_is_there_is_kept_to_the_byte(here: Path) -> None:
    theirs = {
        "tfrecreg.toml": b"# mine\n",
        "data/.gitignore": b"/raw\n",
        "data/raw/a.png": b"\x89PNG",
        "versions/.gitignore": b"",
        ".gitignore": b"*.pyc\n",
        "schemas/mnist.pbtxt": b"feature {}",
    }
    for name, data in theirs.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_bytes(data)
    made = init(with_dvc=False)
    found = tree(here)
    assert {name: found[name] for name in theirs} == theirs
    assert set(made.made) == FILES - set(theirs)
    assert set(found) == set(theirs) | FILES
    again = init(with_dvc=False)
    assert (again.made, again.commands) == ((), ())
    assert tree(here) == found


def test_a_link_in_the_place_of_a_file_is_not_written_through(here: Path) -> None:
    (here / "elsewhere.toml").write_text("# theirs")
    (here / "tfrecreg.toml").symlink_to("elsewhere.toml")
    assert "tfrecreg.toml" not in init(with_dvc=False).made
    assert (here / "elsewhere.toml").read_text() == "# theirs"


def test_builds_and_state_are_ignored_and_pointers_are_not(here: Path) -> None:
    git(here, "init", "--quiet")
    init(with_dvc=False)
    for name in (
        "data/mnist/manifest.json",
        "data/mnist.dvc",
        "versions/mnist/1.0.0/manifest.json",
        ".tfrecreg/stage/x",
        "registry/mnist/1.0.0/manifest.json",
    ):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text("")
    shown = git(here, "status", "--porcelain", "--untracked-files=all")
    assert [line[3:] for line in shown.splitlines()] == [
        "data/.gitignore",
        "data/mnist.dvc",
        "registry/mnist/1.0.0/manifest.json",
        "tfrecreg.toml",
    ]


@pytest.mark.parametrize("inside", [".", "sub/folder"])
def test_with_dvc_in_git_it_becomes_a_dvc_repository(here: Path, inside: str) -> None:
    pytest.importorskip("dvc")
    git(here, "init", "--quiet")
    made = init(inside)
    assert made.dvc == "made"
    root = here / inside
    assert dvc.initialised(str(root))
    subprocess.run(made.commands[0], shell=True, check=True, cwd=here)
    left = git(here, "status", "--porcelain", "--untracked-files=all").splitlines()
    assert left
    assert all(line.startswith("A ") for line in left)
    again = init(inside)
    assert (again.made, again.dvc, again.commands) == ((), "there", ())


def test_an_existing_dvc_repository_is_left_alone(here: Path) -> None:
    pytest.importorskip("dvc")
    dvc.initialise(str(here))
    with (here / ".dvc/config").open("a") as config:
        config.write("# mine\n")
    before = tree(here / ".dvc")
    assert init().dvc == "there"
    assert tree(here / ".dvc") == before


def test_what_dvc_refuses_leaves_the_registry_and_can_be_repeated(here: Path) -> None:
    pytest.importorskip("dvc")
    (here / ".dvc").mkdir()  # DVC takes it for a repository, without a configuration it is none
    with pytest.raises(FailureError, match="DVC refused"):
        init()
    assert not (here / "tfrecreg.toml").exists()
    (here / ".dvc").rmdir()
    assert init().dvc == "made"
    assert set(tree(here, ignore=(".dvc",))) >= FILES


@pytest.mark.parametrize("folder", ["sub", "data/sub", "new/deep/sub"])
def test_a_registry_in_a_registry_is_refused(here: Path, folder: str) -> None:
    init(with_dvc=False)
    before = tree(here)
    with pytest.raises(UsageError) as caught:
        init(folder, with_dvc=False)
    assert caught.value.message == f"`{here}/{folder}` is inside the registry `{here}`"
    assert tree(here) == before
    (here / folder).mkdir(parents=True)
    (here / folder / "tfrecreg.toml").touch()
    assert "data/.gitignore" in init(folder, with_dvc=False).made
    assert init("demo", with_dvc=False, nested=True).made


@pytest.mark.parametrize("target", ["file", "file/below", "file/far/below"])
def test_a_file_in_the_way_is_named(here: Path, target: str) -> None:
    (here / "file").write_text("kept")
    with pytest.raises(UsageError) as caught:
        init(target, with_dvc=False)
    assert caught.value.message.startswith(f"`{here}/{target}` cannot be made: ")
    assert (here / "file").read_text() == "kept"
    with pytest.raises(UsageError, match="`s3://bucket/x` is a URL"):
        init("s3://bucket/x", with_dvc=False)
    assert set(tree(here)) == {"file"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root is refused nothing by permissions")
def test_a_folder_that_may_not_be_written_is_told_in_one_line(here: Path) -> None:
    closed = here / "closed"
    closed.mkdir(mode=0o500)
    for folder in (closed, closed / "new"):
        with pytest.raises(StorageError, match="Permission denied"):
            init(folder, with_dvc=False)
