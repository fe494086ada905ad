"""Which files of a build are what its manifest names, and what is known of the others."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tfrecreg.errors import ManifestError, StorageError
from tfrecreg.index import Index, read_index
from tfrecreg.manifest import (
    MANIFEST_NAME,
    FileEntry,
    Manifest,
    ShardEntry,
    seal,
)
from tfrecreg.progress import Progress
from tfrecreg.registry import Registry, indexes
from tfrecreg.registry.verify import altered, below
from tfrecreg.storage import Storage

__all__ = ["State", "build_manifest", "find_index", "look_over"]


@dataclass(frozen=True, slots=True)
class State:
    """What lies in the folder of a build or a release."""

    shards: tuple[ShardEntry, ...]
    """Those that are missing or not what the manifest names."""
    files: tuple[FileEntry, ...]
    """The same of all other files."""
    manifest: bool
    """Whether the manifest that lies with them is another one, or none."""

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.shards and not self.files and not self.manifest


def build_manifest(manifest: Manifest) -> Manifest:
    """The manifest that lies with the bytes: a release's is that of its build and more.

    Raises:
        ManifestError: it is not the one that the release names.
    """
    if manifest.release is None:
        return manifest
    found = seal(replace(manifest, release=None, provenance=None))
    if found.digest != manifest.release.build:
        raise ManifestError(
            f"the release `{manifest.dataset}@{manifest.release.version}` does not say what was "
            "built: its digest of the build's manifest is another one",
            hint="restore its manifest from git",
        )
    return found


def look_over(storage: Storage, manifest: Manifest, progress: Progress) -> State:
    """Hash every file that the manifest lists.

    Args:
        storage: rooted at the folder.
        manifest: the one that belongs there, see :func:`build_manifest`.
        progress: told of each shard.
    """
    progress.start(f"hashing {manifest.dataset}", sum(each.records for each in manifest.shards))
    try:
        wrong = {each.path for each in altered(manifest, below(storage), progress)}
    finally:
        progress.stop()
    return State(
        tuple(entry for entry in manifest.shards if entry.path in wrong),
        tuple(entry for entry in manifest.files if entry.path in wrong),
        MANIFEST_NAME in wrong,
    )


def find_index(
    registry: Registry, folder: str, manifest: Manifest, shard: ShardEntry
) -> Index | None:
    """The index of a shard, as the manifest names it: beside it, or as it was kept when the build
    was released. None where it is lost.

    Args:
        registry: the registry.
        folder: of the build or the release's bytes, in it.
        manifest: that lists both.
        shard: the shard.
    """
    entry = next((each for each in manifest.files if each.path == shard.index), None)
    if entry is None:
        return None
    try:
        found = indexes.find_index(registry, folder, entry)
    except StorageError:
        return None  # one that cannot be read is as good as none
    return None if found is None else read_index(found[1], found[0])
