"""Files that are added to a store, over fsspec's file system in memory."""

from __future__ import annotations

from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from tfrecreg.core.storage.remote import RemoteStorage
from tfrecreg.core.values.errors import StorageError


class Older(MemoryFileSystem):  # type: ignore[misc]
    """A library that does not know the condition."""

    protocol = "careless"
    store: dict[str, Any] = {}  # noqa: RUF012 - as fsspec has it

    def pipe_file(self, path: str, value: bytes) -> None:
        MemoryFileSystem.pipe_file(self, path, value)


fsspec.register_implementation("careless", Older, clobber=True)


@pytest.fixture
def storage(memory: Any) -> RemoteStorage:
    del memory
    return RemoteStorage("memory://b")


def test_the_first_one_wins(storage: RemoteStorage) -> None:
    assert storage.put_if_absent("a/x", b"one")
    assert not storage.put_if_absent("a/x", b"two")
    assert storage.read("a/x") == b"one"


def test_a_library_that_does_not_know_the_condition_is_refused() -> None:
    with pytest.raises(StorageError) as raised:
        RemoteStorage("careless://b").put_if_absent("x", b"1")
    assert "its store has no conditional writes" in str(raised.value)
    assert not Older.store
