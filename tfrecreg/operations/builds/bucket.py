"""Builds whose shards are in a store: their folder, the finished shards there, and publishing.

The folder in the store is named by the dataset and by the digest of the plan, so that nothing is
ever renamed or replaced there. Each shard is followed by its index and its receipt: a killed build
goes on, on any machine. The manifest comes last, and is put if absent: a folder that has one holds
a whole build, which was read back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from blake3 import blake3

from tfrecreg.documents import read_note, render_note
from tfrecreg.errors import ConflictError, StorageError
from tfrecreg.index import INDEX_LIMIT
from tfrecreg.manifest.file import render_manifest
from tfrecreg.manifest.model import MANIFEST_NAME, FileEntry, Manifest
from tfrecreg.operations.bucket_guard import bucket_of
from tfrecreg.operations.builds.plan import PlannedShard
from tfrecreg.operations.builds.shard import MadeShard
from tfrecreg.operations.builds.sink import BUILD, SinkOfPlan
from tfrecreg.operations.provenance import now
from tfrecreg.progress import Progress
from tfrecreg.registry.locations import render_location
from tfrecreg.registry.registry import Dataset
from tfrecreg.storage.daemon_threads import at_once
from tfrecreg.storage.interface import Storage, Store
from tfrecreg.storage.local import LocalStorage
from tfrecreg.storage.locations import LOCATION_NAME, store_at
from tfrecreg.storage.paths import locate, path_text
from tfrecreg.storage.two_places import TwoPlaces, is_shard, temporary_folder
from tfrecreg.storage.writer import LocalWriter
from tfrecreg.text import safe

RECEIPTS_SUFFIX = ".receipts"
"""Suffix of the folder of the receipts in the store, beside that of the build."""


def store_of(dataset: Dataset) -> Store | None:
    """The folder of a dataset's builds, by its key `data`; None for the registry.

    Raises:
        UsageError: the key is not the URL of a bucket, or a URL with a password.
    """
    root = bucket_of(dataset)
    return None if root is None else store_at(root).below(dataset.name)


def note_use(build: Store) -> None:
    """Note beside the folder of a build in a store that it is used today.

    A build may find all its shards there, so that nothing is added; `gc` of another clone would
    take the folder for an old one.
    """
    store_at(f"{build.root}{RECEIPTS_SUFFIX}").put_if_absent(f"used-{now()[:10]}", b"")


def bucket_sink(dataset: Dataset) -> SinkOfPlan:
    """The sink for builds of a dataset with the key `data`.

    Raises:
        UsageError: the key is not the URL of a bucket, or a URL with a password.
        StorageError: the store overwrites files, or cannot be written.
    """
    store = store_of(dataset)
    assert store is not None
    store.expect_condition()

    def opened(stage: Storage, plan: str) -> BucketSink:
        build = store.below(plan)
        note_use(build)
        return BucketSink(LocalStorage(stage.below(BUILD).root), build)

    return opened


@dataclass(frozen=True, slots=True)
class SentFolder:
    """A folder that shards are sent from. See :class:`tfrecreg.operations.builds.shard.WorkFolder`.

    A worker that does not see it makes them in a temporary folder.
    """

    folder: str
    """Path of the local folder. Text, because workers need not see it."""
    remote: Store
    """Rooted at the folder that the shards go to."""
    indexed: bool
    is_shared: ClassVar[bool] = False

    @contextmanager
    def making(self, shard: PlannedShard) -> Iterator[LocalStorage]:
        is_here = os.path.isdir(self.folder)  # noqa: PTH112 - False where it may not be looked at
        here = nullcontext(LocalStorage(self.folder)) if is_here else temporary_folder("build")
        with here as folder:
            local = _Unsynced(folder.root)
            try:
                yield local
                self.remote.upload(f"{local.root}/{shard.path}", shard.path)
            finally:
                local.remove(shard.path)
            if self.indexed:
                self.remote.upload(f"{local.root}/{shard.index}", shard.index)


class _Unsynced(LocalStorage):
    """Shards in it are on their way: they are not made durable."""

    __slots__ = ()

    def create(self, path: str, *, durable: bool = True) -> LocalWriter:
        return LocalStorage.create(self, path, durable=durable and not is_shard(path))


@dataclass(frozen=True, slots=True)
class BucketSink:
    """A store, with receipts there for the finished shards of a plan.

    See :class:`tfrecreg.operations.builds.sink.BuildSink` for the methods.
    """

    folder: LocalStorage
    """Rooted at the folder for all files but shards."""
    remote: Store
    """Rooted at the folder of the build in the store."""
    indexed: bool = True

    @property
    def work(self) -> SentFolder:
        # Made here, so that workers of this machine use it.
        Path(self.folder.root).mkdir(parents=True, exist_ok=True)
        return SentFolder(self.folder.root, self.remote, self.indexed)

    @property
    def files(self) -> TwoPlaces:
        return TwoPlaces(self.folder, self.remote)

    @property
    def _receipts(self) -> Store:
        # Beside the folder of the build: that holds the files of its manifest alone.
        return store_at(f"{self.remote.root}{RECEIPTS_SUFFIX}")

    def finished(self, shards: Sequence[PlannedShard]) -> dict[str, MadeShard]:
        """The shards that are there with their indexes, by path.

        The bytes of a shard are not compared here: all of them are read back at the end.
        """
        receipts, remote = self._receipts, self.remote
        noted, there = list(receipts.list()), list(remote.list())
        names = {entry.path for entry in noted}
        sizes = {entry.path: entry.size for entry in there}
        found: dict[str, MadeShard] = {}
        with (
            receipts.reading_ahead((_receipt(shard) for shard in shards), noted),
            remote.reading_ahead((shard.index for shard in shards), there),
        ):
            for shard in shards:
                # A killed run may have left them. Those in the store count.
                self.folder.remove(shard.path)
                self.folder.remove(shard.index)
                if _receipt(shard) in names and {shard.path, shard.index} <= sizes.keys():
                    made = self._finished(shard, sizes[shard.path])
                    if made is not None:
                        found[shard.path] = made
        return found

    def _finished(self, shard: PlannedShard, size: int) -> MadeShard | None:
        try:
            made = read_note(self._receipts.read(_receipt(shard)), MadeShard)
            if made.index is None or (made.entry.path, made.entry.bytes) != (shard.path, size):
                return None
            self._fetch(made.index)
        except (StorageError, ValueError):
            return None  # made again, it is the same or an error
        return made

    def finish(self, shard: PlannedShard, made: MadeShard) -> None:
        """Add the receipt; the shard and its index are in the store by now.

        Raises:
            StorageError: the store refused, or has another index.
        """
        assert made.index is not None
        self._fetch(made.index)
        self._receipts.put_if_absent(_receipt(shard), render_note(made))

    def _fetch(self, index: FileEntry) -> None:
        """Put a copy of an index in the store into the folder, unless it is there."""
        with suppress(StorageError):
            if blake3(self.folder.read(index.path, limit=INDEX_LIMIT)).hexdigest() == index.blake3:
                return
        data = self.remote.read(index.path, limit=INDEX_LIMIT)
        if blake3(data).hexdigest() != index.blake3:
            raise StorageError(
                f"`{path_text(locate(self.remote.root, index.path))}` differs from the "
                "bytes that were sent",
                hint="run the build again",
            )
        with self.folder.create(index.path) as writer:
            writer.write(data)

    def complete(self, manifest: Manifest, progress: Progress) -> None:
        """Complete the folder in the store, and say in the local one where it is.

        Raises:
            StorageError: the store refused, or has a file with other bytes.
            ConflictError: another build of the same plan was completed there.
        """
        remote = self.remote
        there: dict[str, int] = {}
        if self.indexed:  # they were sent, or read, as the shards were made: sizes are enough
            indexes = {entry.index for entry in manifest.shards}
            there = {entry.path: entry.size for entry in remote.list() if entry.path in indexes}
        left = (each.path for each in manifest.files if there.get(each.path) != each.bytes)
        for _ in at_once(lambda path: remote.upload(f"{self.folder.root}/{path}", path), left):
            pass
        data = render_manifest(manifest)
        if not remote.put_if_absent(MANIFEST_NAME, data) and remote.read(MANIFEST_NAME) != data:
            raise ConflictError(
                f"`{safe(remote.root, limit=1000)}` has another build of the same plan",
                hint="other versions of libraries made it: build with those, or name another "
                "folder with `data`",
            )
        with self.folder.create(LOCATION_NAME) as writer:
            writer.write(render_location(remote.root))
        progress.note(f"the shards are in {safe(remote.root, limit=1000)}")

    def forget(self, shards: Sequence[PlannedShard]) -> None:
        """Remove the receipts. Shards stay in the store, where nothing is replaced: made again,
        they have to be the same.
        """
        for shard in shards:
            self._receipts.remove(_receipt(shard))


def _receipt(shard: PlannedShard) -> str:
    """Path of a shard's receipt in the folder of receipts."""
    return f"{shard.path}.json"
