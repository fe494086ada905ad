"""Files that a command and its workers exchange, in a folder and in a store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tfrecreg.core.storage.remote import RemoteStorage
from tfrecreg.core.values.errors import StorageError, UsageError
from tfrecreg.core.workers.exchange import Exchange, new_exchange


@pytest.fixture(params=["folder", "store"])
def make(request: pytest.FixtureRequest, memory: Any, tmp_path: Path) -> Callable[[], Exchange]:
    """Makes an empty exchange."""
    parent = str(tmp_path) if request.param == "folder" else "memory://bucket/tasks"
    return lambda: new_exchange(parent, "test")


def test_files_come_and_go(make: Callable[[], Exchange]) -> None:
    exchange = make()
    assert (exchange.has("a.work"), exchange.get("a.work")) == (False, None)
    exchange.put("a.work", b"work")
    exchange.put("empty", b"")
    there = Exchange(exchange.place)  # as in a worker
    assert there.is_there()
    assert (there.has("a.work"), there.get("a.work"), there.get("empty")) == (True, b"work", b"")
    there.put("a.outcome", b"outcome")
    assert exchange.get("a.outcome") == b"outcome"
    exchange.drop("a.work")
    exchange.drop("a.work")
    assert there.get("a.work") is None
    assert exchange.pause > 0


def test_exchanges_are_apart_and_end_alone(
    make: Callable[[], Exchange], memory: Any, tmp_path: Path
) -> None:
    one, other = make(), make()
    for exchange in (one, other):
        exchange.put("1", exchange.place.encode())
    one.end()
    assert one.get("1") is None
    assert other.get("1") == other.place.encode()
    other.end()
    assert list(tmp_path.iterdir()) == []
    assert memory.find("/bucket") == []


def test_a_folder_that_a_worker_does_not_see(tmp_path: Path) -> None:
    assert not Exchange(str(tmp_path / "gone")).is_there()


def test_a_url_with_a_password_is_refused() -> None:
    with pytest.raises(UsageError, match="holds a password or token"):
        new_exchange("s3://key:secret@bucket/tasks", "test")


def test_what_cannot_be_removed_stays(
    make: Callable[[], Exchange], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a command is not the place to fail."""

    def refuse(*_: object) -> None:
        raise StorageError("cannot remove it", hint="none")

    def deny(*_: object, **__: object) -> None:
        raise PermissionError("denied")

    exchange = make()
    exchange.put("1", b"1")
    with monkeypatch.context() as denied:
        denied.setattr(RemoteStorage, "remove", refuse)
        denied.setattr("os.unlink", deny)
        exchange.end()
    assert exchange.get("1") == b"1"
    exchange.end()
    assert exchange.get("1") is None
