"""Shards on their way to a bucket, made by workers that see the folder of the build or do not."""

from __future__ import annotations

import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

from tfrecreg.errors import StorageError
from tfrecreg.manifest.model import FileEntry, ShardEntry
from tfrecreg.operations.builds.bucket import BucketSink, SentFolder
from tfrecreg.operations.builds.plan import PlannedShard
from tfrecreg.operations.builds.shard import MadeShard, WorkFolder
from tfrecreg.storage.local import LocalStorage
from tfrecreg.storage.remote import RemoteStorage

PATH, INDEX = "d-train.tfrecord-00000-of-00001", "index/d-train.tfrecord-00000-of-00001.index"
SHARD = PlannedShard("train", 0, PATH, INDEX, ())
MADE = MadeShard(
    entry=ShardEntry(
        path=PATH,
        split="train",
        records=0,
        payload_bytes=0,
        stream_blake3="",
        index=INDEX,
        bytes=5,
        blake3="",
        sha256="",
    ),
    index=FileEntry(path=INDEX, bytes=5, blake3=blake3(b"index").hexdigest(), sha256=""),
    features={},
)


@pytest.fixture
def sink(memory: Any, tmp_path: Path) -> BucketSink:
    del memory
    return BucketSink(LocalStorage(tmp_path / "build"), RemoteStorage("memory://lake/d/plan"))


def unseen(sink: BucketSink, tmp_path: Path) -> SentFolder:
    """The folder of the sink, in a worker on another machine."""
    folder = SentFolder(str(tmp_path / "unseen"), sink.remote, indexed=True)
    there: SentFolder = pickle.loads(pickle.dumps(folder))
    return there


def make(work: WorkFolder) -> Path:
    """Make a shard and its index as a worker does, and return the folder."""
    with work.making(SHARD) as folder:
        for path, data in ((PATH, b"shard"), (INDEX, b"index")):
            with folder.create(path) as writer:
                writer.write(data)
        return Path(folder.root)


def test_a_worker_that_does_not_see_the_folder_sends_all(
    sink: BucketSink, memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert make(unseen(sink, tmp_path)).parent == tmp_path
    assert list(tmp_path.iterdir()) == []
    assert memory.cat_file(f"/lake/d/plan/{PATH}") == b"shard"
    assert memory.cat_file(f"/lake/d/plan/{INDEX}") == b"index"
    sink.finish(SHARD, MADE)
    assert (tmp_path / "build" / INDEX).read_bytes() == b"index"
    assert not (tmp_path / "build" / PATH).exists()
    assert sink.finished([SHARD]) == {PATH: MADE}


def test_a_worker_of_this_machine_uses_the_folder(
    sink: BucketSink, memory: Any, tmp_path: Path
) -> None:
    assert make(sink.work) == tmp_path / "build"
    assert not (tmp_path / "build" / PATH).exists()
    assert (tmp_path / "build" / INDEX).read_bytes() == b"index"
    memory.store.clear()
    sink.finish(SHARD, MADE)  # the index is here: nothing is asked for
    assert [path.rpartition("/")[2] for path in memory.store] == [f"{PATH}.json"]


def test_publishing_indexes_shards_that_come_without(
    sink: BucketSink, memory: Any, tmp_path: Path
) -> None:
    make(BucketSink(sink.folder, sink.remote, indexed=False).work)
    assert list(memory.store) == [f"/lake/d/plan/{PATH}"]


def test_a_shard_that_failed_leaves_nothing(sink: BucketSink, memory: Any, tmp_path: Path) -> None:
    with suppress(KeyboardInterrupt), sink.work.making(SHARD) as folder:
        with folder.create(PATH) as writer:
            writer.write(b"shard")
        raise KeyboardInterrupt
    assert not memory.store
    assert not list((tmp_path / "build").iterdir())


def test_a_shard_that_cannot_be_sent_leaves_nothing(
    sink: BucketSink, memory: Any, tmp_path: Path
) -> None:
    memory.pipe_file(f"/lake/d/plan/{PATH}", b"other")
    with pytest.raises(StorageError, match="exists with other bytes"):
        make(sink.work)
    assert not (tmp_path / "build" / PATH).exists()


def test_another_index_than_the_one_that_was_sent_is_an_error(
    sink: BucketSink, memory: Any, tmp_path: Path
) -> None:
    memory.pipe_file(f"/lake/d/plan/{INDEX}", b"other")
    with pytest.raises(StorageError, match="differs from the bytes that were sent"):
        sink.finish(SHARD, MADE)
    assert not (tmp_path / "build").exists()


def test_no_room_for_a_temporary_folder_is_an_error(
    sink: BucketSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(StorageError, match="no folder can be made in") as raised:
        make(unseen(sink, tmp_path))
    assert raised.value.hint == "TMPDIR names another folder"
