"""Moving and replacing folders: with the kernel's atomic renames, and without them."""

from __future__ import annotations

import ctypes
import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from storage_support import put

from tfrecreg.core.storage import renames as renames_module
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.renames import exclusive_if_free, held_shared
from tfrecreg.core.values.errors import MissingFileError, StorageError


class Kill(BaseException):
    """Stands for SIGKILL: nothing that handles errors sees it."""


@pytest.fixture(params=["atomic", "plain"])
def storage(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> LocalStorage:
    """A storage with the kernel's atomic renames, and one on a system that has none."""
    if request.param == "plain":
        monkeypatch.setattr(renames_module, "_system_call", lambda: None)
    elif renames_module._system_call() is None:
        pytest.skip("this system has no renameat2")
    return LocalStorage(tmp_path)


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalStorage:
    monkeypatch.setattr(renames_module, "_system_call", lambda: None)
    return LocalStorage(tmp_path)


def tree(storage: LocalStorage) -> dict[str, bytes]:
    return {e.path: storage.read(e.path) for e in storage.list() if e.kind == "file"}


def break_rename(
    monkeypatch: pytest.MonkeyPatch, number: int, error: Callable[[], BaseException]
) -> None:
    """Let the rename of this number (from 1) fail, and those before and after it work."""
    rename, calls = os.rename, []

    def counted(source: str, target: str) -> None:
        calls.append(source)
        if len(calls) == number:
            raise error()
        rename(source, target)

    monkeypatch.setattr(renames_module.os, "rename", counted)


class TestRenameDir:
    def test_moves_to_a_free_name(self, storage: LocalStorage) -> None:
        put(storage, "stage/a/b", b"1")
        assert storage.rename_dir("stage/a", "registry/mnist/1.0.0") is True
        assert tree(storage) == {"registry/mnist/1.0.0/b": b"1"}

    @pytest.mark.parametrize("taken", ["folder", "empty folder", "file", "dangling link"])
    def test_taken_name_stays_as_it_is(self, storage: LocalStorage, taken: str) -> None:
        put(storage, "stage/b", b"1")
        target = Path(storage.root) / "target"
        if taken == "folder":
            put(storage, "target/b", b"2")
        elif taken == "empty folder":
            target.mkdir()
        elif taken == "file":
            target.write_bytes(b"2")
        else:
            target.symlink_to("nothing")
        before = [(entry.path, entry.kind, entry.inode) for entry in storage.list()]
        assert storage.rename_dir("stage", "target") is False
        assert [(entry.path, entry.kind, entry.inode) for entry in storage.list()] == before

    def test_of_many_at_once_one_wins(self, storage: LocalStorage) -> None:
        for number in range(8):
            put(storage, f"stage/{number}/b", b"%d" % number)
        won: list[int] = []
        barrier = threading.Barrier(8)

        def attempt(number: int) -> None:
            barrier.wait()
            if storage.rename_dir(f"stage/{number}", "release/1.0.0"):
                won.append(number)

        threads = [threading.Thread(target=attempt, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert storage.read("release/1.0.0/b") == b"%d" % won[0]
        assert len(tree(storage)) == 8

    def test_name_taken_between_test_and_rename_stays_as_it_is(
        self, plain: LocalStorage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(plain, "stage/b", b"1")
        put(plain, "target/b", b"2")
        monkeypatch.setattr(renames_module.os.path, "lexists", lambda path: False)
        assert plain.rename_dir("stage", "target") is False
        monkeypatch.undo()
        assert tree(plain) == {"stage/b": b"1", "target/b": b"2"}

    def test_source_must_be_a_folder(self, storage: LocalStorage) -> None:
        put(storage, "file")
        (Path(storage.root) / "link").symlink_to(".")
        with pytest.raises(MissingFileError, match=r"(?m)^`.*/nothing` does not exist$"):
            storage.rename_dir("nothing", "target")
        for name in ("file", "link"):
            with pytest.raises(StorageError) as caught:
                storage.rename_dir(name, "target")
            path = f"{storage.root}/{name}"
            assert caught.value.message == (
                f"cannot move `{path}` to `{storage.root}/target`: `{path}` is not a folder"
            )

    def test_another_file_system_is_refused(self, storage: LocalStorage, elsewhere: Path) -> None:
        outer = LocalStorage("/")
        put(storage, "a/b")
        target = f"{elsewhere}/a".lstrip("/")
        with pytest.raises(StorageError, match=r"(?m)Invalid cross-device link$"):
            outer.rename_dir(f"{storage.root}/a".lstrip("/"), target)
        assert tree(storage) == {"a/b": b"data"}


class TestReplaceDir:
    def test_exchanges_the_two(self, storage: LocalStorage) -> None:
        put(storage, "stage/new", b"1")
        put(storage, "data/mnist/old", b"2")
        storage.replace_dir("stage", "data/mnist")
        assert tree(storage) == {"data/mnist/new": b"1", "stage/old": b"2"}

    def test_without_a_target_it_is_a_rename(self, storage: LocalStorage) -> None:
        put(storage, "stage/new", b"1")
        storage.replace_dir("stage", "data/mnist")
        assert tree(storage) == {"data/mnist/new": b"1"}
        assert storage.stat("stage") is None

    def test_whatever_the_target_is_it_is_kept_under_source(
        self, storage: LocalStorage, tmp_path: Path
    ) -> None:
        put(storage, "stage/new", b"1")
        put(storage, "elsewhere/old", b"2")
        (tmp_path / "target").symlink_to("elsewhere")
        storage.replace_dir("stage", "target")
        assert (tmp_path / "stage").readlink() == Path("elsewhere")
        assert tree(storage) == {"elsewhere/old": b"2", "target/new": b"1"}

    def test_source_must_be_a_folder(self, storage: LocalStorage) -> None:
        put(storage, "target/old")
        put(storage, "file")
        with pytest.raises(MissingFileError, match=r"(?m)^`.*/nothing` does not exist$"):
            storage.replace_dir("nothing", "target")
        with pytest.raises(StorageError) as caught:
            storage.replace_dir("file", "target")
        root = storage.root
        assert caught.value.message == (
            f"cannot put `{root}/file` in the place of `{root}/target`: "
            f"`{root}/file` is not a folder"
        )
        assert tree(storage) == {"file": b"data", "target/old": b"data"}

    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_killed_between_plain_renames_loses_nothing_and_can_be_completed(
        self, plain: LocalStorage, monkeypatch: pytest.MonkeyPatch, number: int
    ) -> None:
        put(plain, "stage/new", b"1")
        put(plain, "data/old", b"2")
        with monkeypatch.context() as patch:
            break_rename(patch, number, Kill)
            with pytest.raises(Kill):
                plain.replace_dir("stage", "data")
        assert (
            tree(plain)
            == (
                {"stage/new": b"1", "data/old": b"2"},
                {"stage/new": b"1", "stage.old/old": b"2"},
                {"data/new": b"1", "stage.old/old": b"2"},
            )[number - 1]
        )
        plain.replace_dir("stage", "data")
        assert tree(plain) == {"data/new": b"1", "stage/old": b"2"}

    @pytest.mark.parametrize("number", [1, 2])
    def test_killed_completion_can_be_completed(
        self, plain: LocalStorage, monkeypatch: pytest.MonkeyPatch, number: int
    ) -> None:
        put(plain, "stage/new", b"1")
        put(plain, "stage.old/old", b"2")
        with monkeypatch.context() as patch:
            break_rename(patch, number, Kill)
            with pytest.raises(Kill):
                plain.replace_dir("stage", "data")
        plain.replace_dir("stage", "data")
        assert tree(plain) == {"data/new": b"1", "stage/old": b"2"}

    def test_kernel_with_exchange_completes_what_one_without_began(
        self, storage: LocalStorage
    ) -> None:
        put(storage, "data/new", b"1")
        put(storage, "stage.old/old", b"2")
        storage.replace_dir("stage", "data")
        assert tree(storage) == {"data/new": b"1", "stage/old": b"2"}

    @pytest.mark.parametrize("number", [1, 2])
    def test_refused_plain_rename_is_undone(
        self, plain: LocalStorage, monkeypatch: pytest.MonkeyPatch, number: int
    ) -> None:
        put(plain, "stage/new", b"1")
        put(plain, "data/old", b"2")
        break_rename(monkeypatch, number, lambda: OSError(28, os.strerror(28)))
        with pytest.raises(StorageError, match=r"(?m)^cannot put .*: No space left on device$"):
            plain.replace_dir("stage", "data")
        assert tree(plain) == {"stage/new": b"1", "data/old": b"2"}

    def test_leftover_that_says_nothing_is_in_the_way(self, storage: LocalStorage) -> None:
        for path in ("stage/new", "data/old", "stage.old/older"):
            put(storage, path)
        before = tree(storage)
        with pytest.raises(StorageError) as caught:
            storage.replace_dir("stage", "data")
        assert caught.value.message == (
            f"`{storage.root}/stage.old` is in the way: it holds the old content of a folder "
            "that was being replaced, but nothing shows which folder"
        )
        assert tree(storage) == before

    def test_reader_sees_the_old_or_the_new_and_never_none(self, tmp_path: Path) -> None:
        if renames_module._system_call() is None:
            pytest.skip("this system has no renameat2")
        storage = LocalStorage(tmp_path)
        put(storage, "stage/file", b"0")
        put(storage, "data/file", b"1")
        begun, done = threading.Event(), threading.Event()

        def swap() -> None:
            begun.wait(10)  # in memory, a hundred swaps may take less than the start of a thread
            for _ in range(100):
                storage.replace_dir("stage", "data")
            done.set()

        thread = threading.Thread(target=swap)
        thread.start()
        seen = set()
        while not done.is_set():
            seen.add(storage.read("data/file"))
            begun.set()
        thread.join()
        assert seen <= {b"0", b"1"}
        assert seen


def test_file_systems_that_refuse_the_flags_get_plain_renames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def refuse(*arguments: object) -> int:
        ctypes.set_errno(errno.EINVAL)
        return -1

    monkeypatch.setattr(renames_module, "_system_call", lambda: refuse)
    storage = LocalStorage(tmp_path)
    put(storage, "stage/new", b"1")
    put(storage, "data/old", b"2")
    assert storage.rename_dir("stage", "data") is False
    storage.replace_dir("stage", "data")
    assert tree(storage) == {"data/new": b"1", "stage/old": b"2"}
    assert storage.rename_dir("stage", "free") is True


def test_a_shared_lock_lasts_as_long_as_its_descriptor(tmp_path: Path) -> None:
    for handle in (held_shared(str(tmp_path / "lock")), None):
        with exclusive_if_free(str(tmp_path / "lock")) as is_free:
            assert is_free is (handle is None)
        if handle is not None:
            os.close(handle)
