"""Files that are added to a store, and errors of stores, over file systems of fsspec."""

from __future__ import annotations

from typing import Any

import fsspec
import pytest
from fsspec.asyn import AsyncFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from tfrecreg.core.storage.remote import RemoteStorage
from tfrecreg.core.values.errors import StorageError


class Older(MemoryFileSystem):  # type: ignore[misc]
    """A library that does not know the condition."""

    protocol = "careless"
    store: dict[str, Any] = {}  # noqa: RUF012 - as fsspec has it

    def pipe_file(self, path: str, value: bytes) -> None:
        MemoryFileSystem.pipe_file(self, path, value)


class Circular(AsyncFileSystem):  # type: ignore[misc]
    """A library whose errors are their own cause."""

    protocol = "circular"

    async def _info(self, path: str, **_: object) -> object:
        error = PermissionError(path)
        raise error from error


fsspec.register_implementation("careless", Older, clobber=True)
fsspec.register_implementation("circular", Circular, clobber=True)


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


def test_an_error_that_is_its_own_cause_is_told() -> None:
    with pytest.raises(StorageError, match="cannot look at `circular://b/x`: permission denied"):
        RemoteStorage("circular://b").stat("x")
