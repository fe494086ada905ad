"""A storage of a URL, over fsspec's file system in memory."""

from __future__ import annotations

from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from tfrecreg.core.storage.remote import RemoteStorage
from tfrecreg.core.values.errors import StorageError, UsageError


@pytest.fixture
def storage(memory: Any) -> RemoteStorage:
    memory.pipe({"/b/a/x": b"0123456789", "/b/a/y/z": b"", "/b/k": b"k", "/b/a-b": b"-"})
    return RemoteStorage("memory://b/")


def test_files_and_folders_are_found(storage: RemoteStorage) -> None:
    found = storage.stat("a/x")
    assert found is not None
    assert (found.kind, found.size) == ("file", 10)
    assert found.mtime_ns > 0
    folder = storage.stat("a")
    assert folder is not None
    assert folder.kind == "dir"
    assert storage.stat("a/nothing") is None
    assert storage.may_refuse()


def test_a_folder_is_listed_in_the_order_of_its_bytes(storage: RemoteStorage) -> None:
    files = [entry.path for entry in storage.list() if entry.kind == "file"]
    assert files == ["a-b", "a/x", "a/y/z", "k"]
    assert [entry.path for entry in storage.list("a", recursive=False)] == ["a/x", "a/y"]
    assert list(storage.list("nothing")) == []
    assert [entry.path for entry in storage.glob("a*/*")] == ["a/x"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*", ["a-b", "k"]),
        ("?", ["k"]),
        ("[!k]*", ["a-b"]),
        ("a/*", ["a/x"]),
        ("*/y/z", ["a/y/z"]),
        ("a/y/[z]", ["a/y/z"]),
        ("**", ["a-b", "a/x", "a/y/z", "k"]),
        ("**/z", ["a/y/z"]),
        ("a/**/x", ["a/x"]),
        ("**/y/**", ["a/y/z"]),
        ("k/*", []),
        ("no/*", []),
    ],
)
def test_a_glob_matches_names(storage: RemoteStorage, pattern: str, expected: list[str]) -> None:
    assert [entry.path for entry in storage.glob(pattern)] == expected


def test_a_folder_that_cannot_be_listed_is_not_left_out(
    storage: RemoteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[OSError] = []
    ls = MemoryFileSystem.ls

    def failing(self: MemoryFileSystem, path: str, **options: Any) -> Any:
        if path.endswith("/a/y") and errors:
            raise errors.pop()
        return ls(self, path, **options)

    monkeypatch.setattr(MemoryFileSystem, "ls", failing)
    for list_files in (storage.list, lambda: storage.glob("a/*/*"), lambda: storage.glob("**/z")):
        errors.append(OSError("busy"))
        assert "a/y/z" in [entry.path for entry in list_files()]
        errors.append(PermissionError())
        with pytest.raises(StorageError, match="cannot list `memory://b/a/y`: permission denied"):
            list(list_files())


def test_a_file_is_read(storage: RemoteStorage) -> None:
    assert storage.read("a/x") == b"0123456789"
    with storage.open("a/x") as reader:
        assert reader.size == 10
        assert reader.read_at(3, 4) == b"3456"
        assert reader.read_at(8, 100) == b"89"
        assert reader.read_at(10, 1) == b""
    with pytest.raises(StorageError, match="has 10 bytes, but at most 9 bytes are read at once"):
        storage.read("a/x", limit=9)


@pytest.mark.parametrize("path", ["../x", "/x", "a//x", "a/./x"])
def test_no_path_leads_out_of_it(storage: RemoteStorage, path: str) -> None:
    with pytest.raises(UsageError, match="is not a path below `memory://b`"):
        storage.stat(path)


def test_names_that_are_no_paths_are_not_listed(memory: Any) -> None:
    memory.pipe({"/b/x": b"x", "/b/a//y": b"", "/b/../z": b""})
    assert [e.path for e in RemoteStorage("memory://b").list() if e.kind == "file"] == ["x"]
