"""What the system refuses late is told as it is, and leaves nothing in the way of the next try."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from registry_support import empty_registry
from system_support import Faulty, Refusing, installed
from tests_support import tree

from tfrecreg.core.registry.lock import dataset_lock
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import StorageError


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b").write_bytes(b"data")
    return LocalStorage(tmp_path)


def test_a_close_that_is_refused_drops_the_file(storage: LocalStorage, tmp_path: Path) -> None:
    before = tree(tmp_path)
    with installed(Refusing("close", ".tmp")):
        writer = storage.create("a/c")
        writer.write(b"more")
        with pytest.raises(StorageError, match=r"cannot write `.*/a/c`: Input/output error"):
            writer.close()
        aborted = storage.create("a/c")
        with pytest.raises(StorageError, match=r"cannot remove `.*: Input/output error"):
            aborted.abort()
    assert tree(tmp_path) == before


def test_a_file_that_cannot_be_looked_at_once_it_is_open_is_refused(storage: LocalStorage) -> None:
    with (
        installed(Faulty(errno.EIO, 2)),  # open, fstat
        pytest.raises(StorageError, match=r"cannot read `.*/a/b`: Input/output error"),
    ):
        storage.open("a/b")


def test_a_move_that_may_not_last_is_undone(storage: LocalStorage, tmp_path: Path) -> None:
    before = tree(tmp_path)
    (tmp_path / "c").mkdir()
    with (
        installed(Refusing("fsync", "/c")),
        pytest.raises(StorageError, match=r"cannot move `.*/a` to `.*/c/d`: Input/output error"),
    ):
        storage.rename_dir("a", "c/d")
    assert tree(tmp_path) == before
    assert storage.rename_dir("a", "c/d")


def test_a_lock_on_a_full_disk_says_that_it_is_full(tmp_path: Path) -> None:
    registry = empty_registry(tmp_path)
    with (
        installed(Faulty(errno.ENOSPC, 1)),
        pytest.raises(StorageError) as caught,
        dataset_lock(registry, "digits", int),
    ):
        pass
    assert caught.value.message == (
        f"the registry `{tmp_path}` cannot be written: No space left on device"
    )
