"""Files that are added to a store, over fsspec's file system in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from storage_support import Careless

from tfrecreg.errors import StorageError
from tfrecreg.storage.remote import RemoteStorage


class Older(MemoryFileSystem):  # type: ignore[misc]
    """A library that does not know the condition."""

    protocol = "older"
    store: dict[str, Any] = {}  # noqa: RUF012 - as fsspec has it

    def pipe_file(self, path: str, value: bytes) -> None:
        MemoryFileSystem.pipe_file(self, path, value)


fsspec.register_implementation("older", Older, clobber=True)


@pytest.fixture
def storage(memory: Any) -> RemoteStorage:
    del memory
    return RemoteStorage("memory://b")


def test_the_first_one_wins(storage: RemoteStorage) -> None:
    assert storage.put_if_absent("a/x", b"one")
    assert not storage.put_if_absent("a/x", b"two")
    assert storage.read("a/x") == b"one"
    storage.remove("a/x")
    storage.remove("a/x")
    assert storage.stat("a/x") is None


def test_a_file_is_added_and_never_replaced(storage: RemoteStorage, tmp_path: Path) -> None:
    source = tmp_path / "x"
    source.write_bytes(b"0123456789")
    for _ in range(2):  # the second time it is there
        storage.upload(str(source), "a/x")
        assert storage.read("a/x") == b"0123456789"
    for other in (b"012345678", b"01234567890", b"1123456789"):
        source.write_bytes(other)
        with pytest.raises(StorageError, match="`memory://b/a/x` exists with other bytes"):
            storage.upload(str(source), "a/x")
    assert storage.read("a/x") == b"0123456789"


def test_a_store_that_knows_the_condition_is_left_as_it_was(
    storage: RemoteStorage, memory: Any
) -> None:
    storage.expect_condition()
    assert not memory.store


@pytest.mark.parametrize("protocol", ["careless", "older"])
def test_a_store_that_ignores_the_condition_is_refused(protocol: str) -> None:
    with pytest.raises(StorageError) as raised:
        RemoteStorage(f"{protocol}://b").expect_condition()
    assert "is in a store that overwrites files although it was asked not to" in str(raised.value)
    assert raised.value.hint.startswith("S3, Google Cloud Storage and MinIO support conditional")
    assert not Careless.store
