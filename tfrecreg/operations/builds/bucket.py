"""Builds whose shards are in a store: where they go, what is finished there, and their end.

The folder in the store is named by the dataset and by the digest of the plan, so that nothing is
ever renamed or replaced there. Each shard is followed by its index and its receipt: a killed build
goes on, on any machine. The manifest comes last, and is put if absent: a folder that has one holds
a whole build, which was read back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tfrecreg.documents import read_note, render_note
from tfrecreg.errors import ConflictError, StorageError
from tfrecreg.index import INDEX_LIMIT
from tfrecreg.manifest.file import render_manifest
from tfrecreg.manifest.model import MANIFEST_NAME, Manifest
from tfrecreg.operations.bucket_guard import bucket_of
from tfrecreg.operations.builds.plan import PlannedShard
from tfrecreg.operations.builds.shard import MadeShard
from tfrecreg.operations.provenance import now
from tfrecreg.registry.locations import render_location
from tfrecreg.registry.registry import Dataset
from tfrecreg.storage.daemon_threads import at_once
from tfrecreg.storage.interface import Store
from tfrecreg.storage.locations import LOCATION_NAME, store_at
from tfrecreg.storage.two_places import TwoPlaces
from tfrecreg.text import safe

RECEIPTS_SUFFIX = ".receipts"
"""Suffix of the folder of the receipts in the store, beside that of the build."""


def store_of(dataset: Dataset) -> Store | None:
    """Where the builds of a dataset go, by its key `data`; None for the registry.

    Raises:
        UsageError: the key is not the URL of a bucket, or a URL with a password.
    """
    root = bucket_of(dataset)
    return None if root is None else store_at(root).below(dataset.name)


def note_use(build: Store) -> None:
    """Note beside the folder of a build in a store that it is used today.

    A build may find all its shards there, so that nothing is added; `gc` of another clone would
    take the folder for an old one.

    Raises:
        StorageError: the store refused.
    """
    store_at(f"{build.root}{RECEIPTS_SUFFIX}").put_if_absent(f"used-{now()[:10]}", b"")


@dataclass(frozen=True, slots=True)
class BucketJournal:
    """The finished shards of a plan, by their receipts in the store."""

    places: TwoPlaces

    @property
    def _receipts(self) -> Store:
        # Beside the folder of the build: that holds the files of its manifest alone.
        return store_at(f"{self.places.remote.root}{RECEIPTS_SUFFIX}")

    def finished(self, shards: Sequence[PlannedShard]) -> dict[str, MadeShard]:
        """The shards that are there with their indexes, by path.

        The bytes of a shard are not compared here: all of them are read back at the end.
        """
        receipts, remote = self._receipts, self.places.remote
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
                self.places.local.remove(shard.path)
                self.places.local.remove(shard.index)
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
            self.places.fetch(shard.index, made.index.blake3, INDEX_LIMIT)
        except (StorageError, ValueError):
            return None  # made again, it is the same or an error
        return made

    def finish(self, shard: PlannedShard, made: MadeShard) -> None:
        """Add the receipt; the shard and its index are in the store by now.

        Raises:
            StorageError: the store refused, or has another index.
        """
        assert made.index is not None
        self.places.fetch(shard.index, made.index.blake3, INDEX_LIMIT)
        self._receipts.put_if_absent(_receipt(shard), render_note(made))

    def forget(self, shards: Sequence[PlannedShard]) -> None:
        """Remove the receipts. Shards stay in the store, where nothing is replaced: made again,
        they have to be the same.

        Raises:
            StorageError: the store refused.
        """
        for shard in shards:
            self._receipts.remove(_receipt(shard))


def _receipt(shard: PlannedShard) -> str:
    """Where the receipt of a shard is, in their folder."""
    return f"{shard.path}.json"


def conclude_in_bucket(places: TwoPlaces, manifest: Manifest, *, indexed: bool) -> None:
    """Complete the folder in the store, and say in the local one where it is.

    Args:
        places: with all files of the build, read back.
        manifest: of the build.
        indexed: whether the indexes were put there, or read from there, as the shards were made.

    Raises:
        StorageError: the store refused, or has a file with other bytes.
        ConflictError: another build of the same plan was completed there.
    """
    remote = places.remote
    there: dict[str, int] = {}
    if indexed:  # a look at their sizes is enough
        indexes = {entry.index for entry in manifest.shards}
        there = {entry.path: entry.size for entry in remote.list() if entry.path in indexes}
    left = (each.path for each in manifest.files if there.get(each.path) != each.bytes)
    for _ in at_once(places.send, left):
        pass
    data = render_manifest(manifest)
    if not remote.put_if_absent(MANIFEST_NAME, data) and remote.read(MANIFEST_NAME) != data:
        raise ConflictError(
            f"`{safe(remote.root, limit=1000)}` has another build of the same plan",
            hint="other versions of libraries made it: build with those, or name another folder "
            "with `data`",
        )
    with places.local.create(LOCATION_NAME) as writer:
        writer.write(render_location(remote.root))
