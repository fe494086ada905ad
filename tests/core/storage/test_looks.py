"""A store is asked once about each file while a dataset is opened."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from tfrecreg.core.storage.paths import looks_remembered
from tfrecreg.core.storage.remote.file_systems import at_once
from tfrecreg.core.storage.remote.remote import RemoteStorage
from tfrecreg.core.values.errors import StorageError


@pytest.fixture
def storage(memory: Any) -> RemoteStorage:
    memory.pipe({"/b/a/x": b"0123456789", "/b/a/y": b"y", "/b/k": b"k"})
    return RemoteStorage("memory://b")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that the store was asked about."""
    found: list[str] = []
    ask = RemoteStorage._info

    def noted(self: RemoteStorage, path: str) -> Any:
        found.append(f"{self.root}/{path}")
        return ask(self, path)

    monkeypatch.setattr(RemoteStorage, "_info", noted)
    return found


def test_it_is_asked_each_time(storage: RemoteStorage, asked: list[str]) -> None:
    assert storage.stat("a/x") == storage.stat("a/x")
    assert storage.read("a/x") == b"0123456789"
    assert asked == 3 * ["memory://b/a/x"]


def test_it_is_asked_once_in_a_block(storage: RemoteStorage, asked: list[str]) -> None:
    with looks_remembered():
        for _ in range(2):
            found, below = storage.stat("a/x"), storage.below("a").stat("x")
            assert found is not None
            assert below == replace(found, path="x")
            assert storage.stat("nothing") is None
            with looks_remembered():
                assert storage.below("a").read("x") == b"0123456789"
    assert asked == ["memory://b/a/x", "memory://b/nothing"]
    assert storage.stat("nothing") is None
    assert asked[2:] == ["memory://b/nothing"]


def test_threads_share_what_is_known(storage: RemoteStorage, asked: list[str]) -> None:
    with looks_remembered():
        first = storage.stat("a/x")
        assert [*at_once(storage.stat, 20 * ["a/x"])] == 20 * [first]
    assert asked == ["memory://b/a/x"]


def test_a_listing_of_other_stores_than_s3_may_say_something_else(
    storage: RemoteStorage, asked: list[str]
) -> None:
    with looks_remembered():
        listed = {entry.path: entry for entry in storage.list()}
        assert storage.stat("a/x") == listed["a/x"]
    assert asked == ["memory://b/a/x"]


def test_a_change_is_seen_all_the_same(storage: RemoteStorage, memory: Any) -> None:
    with looks_remembered():
        reader = storage.open("a/x")
        memory.pipe("/b/a/x", b"other bytes")
        with pytest.raises(StorageError, match="was changed while it was read"):
            reader.expect_unchanged()  # type: ignore[attr-defined]


def test_blocks_of_two_threads_know_nothing_of_each_other(
    storage: RemoteStorage, asked: list[str]
) -> None:
    with looks_remembered():
        storage.stat("k")
        other = threading.Thread(target=storage.stat, args=("k",))
        other.start()
        other.join()
    assert asked == 2 * ["memory://b/k"]


def test_a_store_that_cannot_list_names_by_their_beginning_does_nothing(
    storage: RemoteStorage, asked: list[str]
) -> None:
    with looks_remembered():
        assert not storage.look_ahead("a/")
        assert storage.stat("a/x") is not None
    assert asked == ["memory://b/a/x"]
