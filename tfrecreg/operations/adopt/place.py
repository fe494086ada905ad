"""Putting the shards where the build has them, in workers: copied, linked, or only hashed."""

from __future__ import annotations

from dataclasses import dataclass

from tfrecreg.errors import UsageError
from tfrecreg.operations.adopt.plan import PlannedFile
from tfrecreg.operations.adopt.request import How
from tfrecreg.records import Hashed
from tfrecreg.records.hashing import FileHasher
from tfrecreg.storage import Storage
from tfrecreg.storage.interface import Writer
from tfrecreg.text import safe

__all__ = ["PlaceTask", "hash_both", "place_shard"]

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class PlaceTask:
    """All that a worker needs to put one shard into its place. Picklable."""

    file: PlannedFile
    how: How
    folder: Storage
    """Rooted at the folder of the build in the making."""
    blake3: str
    """Of the file as it was examined."""


def place_shard(task: PlaceTask) -> Hashed:
    """Bring the shard, and see that it is what was examined.

    Raises:
        UsageError: the file was changed meanwhile.
        StorageError: the file system refused.
    """
    shard = task.file.shard
    if task.how == "copy":
        with task.folder.create(task.file.path) as writer:
            found = _hash(shard.storage, shard.path, writer)
    elif task.how == "link":
        task.folder.link(shard.path, task.file.path, origin=shard.storage)
        found = hash_both(task.folder, task.file.path)
    else:
        found = hash_both(shard.storage, shard.path)
    if found.blake3 != task.blake3:
        raise UsageError(
            f"`{safe(shard.name, limit=1000)}` changed while it was adopted: blake3 was "
            f"{task.blake3[:16]}…, now it is {found.blake3[:16]}…",
            hint="adopt it when nothing writes to it any more",
        )
    return found


def hash_both(storage: Storage, path: str) -> Hashed:
    """Bytes, blake3 and sha256 of a file, in bounded memory.

    Raises:
        StorageError: the file system refused.
    """
    return _hash(storage, path, None)


def _hash(storage: Storage, path: str, copy: Writer | None) -> Hashed:
    """Hash a file, and write it again where that is wanted."""
    hasher = FileHasher()
    position = 0
    try:
        with storage.open(path) as reader:
            while chunk := reader.read_at(position, _CHUNK):
                hasher.update(chunk)
                if copy is not None:
                    copy.write(chunk)
                position += len(chunk)
    finally:
        hasher.close()
    return Hashed(position, *hasher.hexdigests())
