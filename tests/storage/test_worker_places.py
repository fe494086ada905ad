"""The places of a build in a bucket, in workers that do not see its folder."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

from tfrecreg.errors import StorageError
from tfrecreg.storage.local import LocalStorage
from tfrecreg.storage.remote import RemoteStorage
from tfrecreg.storage.two_places import TwoPlaces, WorkerPlaces

SHARD, INDEX = "d-train.tfrecord-00000-of-00001", "index/d-train.tfrecord-00000-of-00001.index"


@pytest.fixture
def places(memory: Any, tmp_path: Path) -> TwoPlaces:
    del memory
    return TwoPlaces(LocalStorage(tmp_path / "build"), RemoteStorage("memory://lake/d/plan"))


def written(places: TwoPlaces) -> None:
    """A shard and its index, as a worker leaves them."""
    for path, data in ((SHARD, b"shard"), (INDEX, b"index")):
        with places.create(path) as writer:
            writer.write(data)
    places.send(INDEX)


def test_a_worker_that_does_not_see_the_folder_sends_all(
    places: TwoPlaces, memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    there = pickle.loads(pickle.dumps(WorkerPlaces(str(tmp_path / "unseen"), places.remote)))
    with there.opened() as opened:
        written(opened)
        assert Path(opened.local.root).parent == tmp_path
    assert list(tmp_path.iterdir()) == []
    assert memory.cat_file(f"/lake/d/plan/{SHARD}") == b"shard"
    assert memory.cat_file(f"/lake/d/plan/{INDEX}") == b"index"
    places.fetch(INDEX, blake3(b"index").hexdigest(), 100)
    assert (tmp_path / "build" / INDEX).read_bytes() == b"index"
    assert not (tmp_path / "build" / SHARD).exists()


def test_a_worker_of_this_machine_uses_the_folder(
    places: TwoPlaces, memory: Any, tmp_path: Path
) -> None:
    with places.for_workers().opened() as opened:
        assert opened == places
        written(opened)
    assert (tmp_path / "build" / INDEX).read_bytes() == b"index"
    memory.store.clear()
    places.fetch(INDEX, blake3(b"index").hexdigest(), 100)  # it is here: nothing is asked for


def test_another_index_than_the_one_that_was_sent_is_an_error(
    places: TwoPlaces, memory: Any, tmp_path: Path
) -> None:
    memory.pipe_file(f"/lake/d/plan/{INDEX}", b"other")
    with pytest.raises(StorageError, match="has other bytes than those that were sent"):
        places.fetch(INDEX, blake3(b"index").hexdigest(), 100)
    assert not (tmp_path / "build").exists()


def test_no_room_for_a_temporary_folder_is_an_error(
    places: TwoPlaces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with (
        pytest.raises(StorageError, match="no folder can be made in") as raised,
        WorkerPlaces(str(tmp_path / "unseen"), places.remote).opened(),
    ):
        pass
    assert raised.value.hint == "TMPDIR names another folder"
