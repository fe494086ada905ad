"""One of the two that are compared: its manifest, its indexes, and its records where they are."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tfrecreg.core.records.index import ROW_BYTES, Index, read_index
from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.registry.keeper import tracker
from tfrecreg.core.registry.lookup import Resolved
from tfrecreg.core.registry.manifest import FileEntry, Manifest, ShardEntry
from tfrecreg.core.registry.registry import Registry, RegistryLike
from tfrecreg.core.registry.shardset.find import Built, FolderBuild, TargetLike, find, named_targets
from tfrecreg.core.registry.shardset.indexes import IndexPlace, find_index, index_places
from tfrecreg.core.schema.definition import Schema
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import TfrecregError, UsageError
from tfrecreg.core.values.text import safe


@dataclass(frozen=True)
class Side:
    """A build or a release, as a diff sees it. Shards are named by their number in the manifest."""

    name: str
    """Reference as a user writes it."""
    registry: Registry | None
    """None for a build behind a URL."""
    manifest: Manifest
    folder: str | None
    """Folder of its bytes, relative to the registry; None if they are missing."""
    schema_text: str | None
    schema_path: str
    remote: Readable | None = None
    """Readable of the folder of a build behind a URL, or of one whose shards are in a store."""
    kept: Mapping[str, str] | None = None
    """Files in DVC's cache: path in the build to path from the root of the file system; None where
    they were not looked up."""
    cache: LocalStorage | None = None
    """The folder that holds these files, which a worker has to see."""

    @property
    def bring_hint(self) -> str:
        """The command that fetches its bytes and indexes."""
        release = self.manifest.release
        if release is None or self.registry is None:
            return f"`tfrecreg check {self.name}` lists the missing bytes"
        if release.dvc is not None or self.remote is not None:
            return f"`tfrecreg pull {self.name}` fetches them"
        return (
            f"DVC does not have them: copy `versions/{self.manifest.dataset}/{release.version}` "
            "back from another machine or a backup"
        )

    def index(self, shard: int) -> Index | None:
        """The index of a shard, None where it is not on this machine."""
        listed = self._listed(shard)
        found = None if listed is None else find_index(self._places(listed), listed)
        return None if found is None or listed is None else read_index(found[1], listed.path)

    def may_have(self, shard: int) -> bool:
        """Whether a file that may be the shard's index is here, and as large as its records need.

        The number of records in a manifest is not trusted before.
        """
        listed = self._listed(shard)
        if listed is None:
            return False
        found = (storage.stat(place) for storage, place in self._places(listed))
        least = self.manifest.shards[shard].records * ROW_BYTES
        return any(each is not None and least <= each.size for each in found)

    def index_digest(self, shard: int) -> str | None:
        """blake3 of the shard's index as the manifest lists it."""
        listed = self._listed(shard)
        return None if listed is None else listed.blake3

    def _listed(self, shard: int) -> FileEntry | None:
        """The index of a shard as the manifest lists it."""
        return self._files.get(self.manifest.shards[shard].index)

    def _places(self, index: FileEntry) -> Iterator[IndexPlace]:
        """Possible places of an index: the registry, the URL, DVC's cache."""
        if self.registry is not None:
            yield from index_places(self.registry, self.folder, index)
        if self.remote is not None:
            yield self.remote, index.path
        elif index.path in self._kept:
            yield LocalStorage("/"), self._kept[index.path]

    def records(self, shard: int) -> Records | None:
        """The records of a shard by number, None where its bytes are not on this machine."""
        entry = self.manifest.shards[shard]
        storage = self._storage
        if storage is not None and storage.stat(entry.path) is not None:
            return Records(entry.path, storage=storage, name=entry.path)
        kept = self._kept
        if entry.path not in kept:
            return None
        return Records(
            kept[entry.path],
            index=kept.get(entry.index),
            storage=LocalStorage("/"),
            name=f"{entry.path} of {self.name}",
        )

    def only(self, shards: Sequence[int]) -> Side:
        """The side with some of its shards, numbered from 0, as a worker reads them."""
        entries = [self.manifest.shards[shard] for shard in shards]
        indexes = [self._files[entry.index] for entry in entries if entry.index in self._files]
        kept = self._kept_of(entries)
        folders = [f"/{posixpath.dirname(place)}" for place in kept.values()]
        return replace(
            self,
            registry=None if self.registry is None else Registry(self.registry.storage),
            manifest=replace(
                self.manifest,
                shards=entries,
                files=indexes,
                splits=[],
                labels={},
                features={},
                provenance=None,
            ),
            schema_text=None,
            kept=kept,
            cache=LocalStorage(posixpath.commonpath(folders)) if folders else None,
        )

    def _kept_of(self, entries: Sequence[ShardEntry]) -> Mapping[str, str]:
        """The files in DVC's cache of those shards that are nowhere else."""
        release, storage = self.manifest.release, self._storage
        if release is None or release.dvc is None:
            return {}
        gone = [each for each in entries if storage is None or storage.stat(each.path) is None]
        names = [name for each in gone for name in (each.path, each.index)]
        return {name: self._kept[name] for name in names if name in self._kept}

    @cached_property
    def schema(self) -> Schema | None:
        """Its schema, None where it has none that parses."""
        if self.schema_text is None:
            return None
        try:
            return parse_schema(self.schema_text, self.schema_path)
        except TfrecregError:
            return None

    @cached_property
    def _storage(self) -> Readable | None:
        """The storage of its shards, if they are not in DVC's cache."""
        if self.remote is not None or self.registry is None or self.folder is None:
            return self.remote
        return self.registry.storage.below(self.folder)

    @cached_property
    def _files(self) -> Mapping[str, FileEntry]:
        return {entry.path: entry for entry in self.manifest.files}

    @cached_property
    def _kept(self) -> Mapping[str, str]:
        if self.kept is not None:
            return self.kept
        release = self.manifest.release
        if self.registry is None or release is None or release.dvc is None:
            return {}
        # Without its bytes a diff is incomplete, and says so.
        found = tracker().cached(self.registry.storage.root, release.dvc)
        return {path: place.lstrip("/") for path, place in found.items()}


def find_side(argument: TargetLike | FolderBuild, registry: RegistryLike | None) -> Built:
    """What is compared: a build or a release, by its reference, or by the path or URL of a
    folder.
    """
    if isinstance(argument, FolderBuild):
        return argument
    (named,) = named_targets(argument)
    found = find(named, registry)
    if isinstance(found, str):
        raise UsageError(
            f"`{safe(found, limit=1000)}` is not a folder with a manifest, which a diff needs",
            hint="`tfrecreg digest` compares files without one",
        )
    return found


def side_of(found: Built) -> Side:
    """A build or a release as a side."""
    is_remote = not isinstance(found, Resolved)
    return Side(
        name=found.name,
        registry=found.registry,
        manifest=found.manifest,
        folder=found.folder,
        schema_text=found.schema,
        schema_path=found.schema_path,
        remote=found.storage(to_check=True) if is_remote else None,
    )
