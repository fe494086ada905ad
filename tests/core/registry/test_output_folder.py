"""The folder of an export is free before, and whole or missing after."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.lock import free_folder, new_folder
from tfrecreg.core.registry.registry import Registry, open_registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import UsageError


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    init(tmp_path / "reg", with_dvc=False)
    return open_registry(tmp_path / "reg")


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def fill(stage: LocalStorage) -> None:
    with stage.create("a/b") as writer:
        writer.write(b"whole")


def interrupted(path: Path) -> None:
    with new_folder(path) as stage:
        fill(stage)
        raise KeyboardInterrupt


def overtaken(path: Path) -> None:
    with new_folder(path) as stage:
        fill(stage)
        path.mkdir(exist_ok=True)
        (path / "theirs").write_bytes(b"quick")


@pytest.mark.parametrize("given", ["new", "deep/er/new", "empty", "link", "dangling", "reg/own"])
def test_a_free_folder_appears_whole(registry: Registry, tmp_path: Path, given: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    (tmp_path / "dangling").symlink_to(tmp_path / "made")
    before = set(names(tmp_path))
    path = free_folder(tmp_path / given, registry)
    with new_folder(path) as stage:
        fill(stage)
        assert not (tmp_path / given / "a").exists()
    assert (tmp_path / given / "a/b").read_bytes() == b"whole"
    assert set(names(tmp_path)) - before <= {"new", "deep", "made"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "is not empty"),
        ("a\0b", "does not name a folder"),
        ("full", "is not empty"),
        ("hidden", "is not empty"),
        ("file", "is not a folder"),
        ("loop", "loop"),
        ("/", "is not empty"),
        ("reg", "is not empty"),
        ("reg/data/digits", "is in `data/` of the registry"),
        ("reg/registry", "is in `registry/` of the registry"),
        ("reg/versions/x/1.0.0", "is in `versions/` of the registry"),
        ("into-data/x", "is in `data/` of the registry"),
        ("/usr", "is not empty"),
    ],
)
def test_any_other_folder_is_refused(registry, tmp_path, monkeypatch, given, message) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("full/x", "hidden/.x"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "file").write_bytes(b"mine")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "into-data").symlink_to(tmp_path / "reg/data")
    with pytest.raises(UsageError, match=re.escape(message)):
        free_folder(given, registry)
    assert (tmp_path / "file").read_bytes() == b"mine"


def test_the_current_folder_is_refused(registry, tmp_path, monkeypatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(UsageError, match=r"(?m)^`.` is the current folder$"):
        free_folder(".", registry)


def test_an_empty_mount_point_is_refused(registry: Registry) -> None:
    if not Path("/proc/mounts").exists():
        pytest.skip("this system does not list what is mounted")
    mounts = [Path(line.split()[1]) for line in Path("/proc/mounts").read_text().splitlines()]
    empty = [path for path in mounts if path.is_dir() and os.access(path, os.R_OK)]
    empty = [path for path in empty if not any(path.iterdir())]
    if not empty:
        pytest.skip("no empty file system is mounted here")
    with pytest.raises(UsageError, match=r"(?m)is a mount point$"):
        free_folder(empty[0], registry)


@pytest.mark.parametrize("given", ["deep/er/new", "empty"])
def test_an_interrupted_command_leaves_nothing(registry, tmp_path, given) -> None:
    (tmp_path / "empty").mkdir()
    before = sorted(tmp_path.rglob("*"))
    path = free_folder(tmp_path / given, registry)
    with pytest.raises(KeyboardInterrupt):
        interrupted(path)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("given", ["new", "empty"])
def test_whoever_was_quicker_keeps_their_files(registry, tmp_path, given) -> None:
    (tmp_path / "empty").mkdir()
    path = free_folder(tmp_path / given, registry)
    with pytest.raises(UsageError, match=r"(?m)was written to by another process$"):
        overtaken(path)
    assert names(path) == ["theirs"]
    assert not list(tmp_path.glob(".tfrecreg-export*"))
