"""One side of a diff: its manifest, its indexes, and its records if they are on this machine."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from tfrecreg.core.records.index import ROW_BYTES, Index, read_index
from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.absence import bytes_hint
from tfrecreg.core.registry.data import Built, Resolved
from tfrecreg.core.registry.indexes import IndexPlace, find_index
from tfrecreg.core.registry.keeper import tracker
from tfrecreg.core.registry.manifest import FileEntry, Manifest
from tfrecreg.core.schema.definition import Schema
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.interface import Readable, Storage
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import TfrecregError


@dataclass(frozen=True)
class Side:
    """A build or a release in a diff. A shard's number is its position in the manifest."""

    name: str
    manifest: Manifest
    schema: Schema | None
    home: Storage | None
    """The storage of its registry; None for a build outside of a registry."""
    files: Readable | None
    kept: Mapping[str, str] | None = None
    """The build's files in DVC's cache, by their paths in the build; None before the search."""
    cache: LocalStorage | None = None
    """The folder of DVC's cache that holds these files. Workers must have access to it."""

    @property
    def bring_hint(self) -> str:
        if self.home is None:
            return f"`tfrecreg check {self.name}` lists the missing bytes"
        return bytes_hint(self.manifest)

    def index(self, shard: int) -> Index | None:
        listed = self._listed(shard)
        found = None if listed is None else find_index(self._places(listed), listed)
        return None if found is None or listed is None else read_index(found[1], listed.path)

    def may_have(self, shard: int) -> bool:
        """Whether this machine has a file that may be the shard's index, and that is large enough
        for the shard's records.

        The number of records in the manifest is trusted only after this check.
        """
        listed = self._listed(shard)
        if listed is None:
            return False
        found = (storage.stat(place) for storage, place in self._places(listed))
        least = self.manifest.shards[shard].records * ROW_BYTES
        return any(each is not None and least <= each.size for each in found)

    def index_digest(self, shard: int) -> str | None:
        listed = self._listed(shard)
        return None if listed is None else listed.blake3

    def _listed(self, shard: int) -> FileEntry | None:
        return self._entries.get(self.manifest.shards[shard].index)

    def _places(self, index: FileEntry) -> Iterator[IndexPlace]:
        if self.home is not None:
            yield self.home, layout.cached_index(index.blake3)
        if self.files is not None:
            yield self.files, index.path
        if index.path in self._kept:
            yield LocalStorage("/"), self._kept[index.path]

    def records(self, shard: int) -> Records | None:
        """The records of shard number `shard`; None if this machine lacks the shard's bytes."""
        entry = self.manifest.shards[shard]
        if self.files is not None and self.files.stat(entry.path) is not None:
            return Records(entry.path, storage=self.files, name=entry.path)
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
        """A copy of this side for a worker, with only the given shards, renumbered from 0."""
        entries = [self.manifest.shards[shard] for shard in shards]
        indexes = [self._entries[entry.index] for entry in entries if entry.index in self._entries]
        files = self.files
        gone = [each for each in entries if files is None or files.stat(each.path) is None]
        names = [name for each in gone for name in (each.path, each.index)]
        kept = {name: self._kept[name] for name in names if name in self._kept}
        folders = [f"/{posixpath.dirname(place)}" for place in kept.values()]
        return replace(
            self,
            manifest=replace(
                self.manifest,
                shards=entries,
                files=indexes,
                splits=[],
                labels={},
                features={},
                provenance=None,
            ),
            schema=None,
            kept=kept,
            cache=LocalStorage(posixpath.commonpath(folders)) if folders else None,
        )

    @cached_property
    def _entries(self) -> Mapping[str, FileEntry]:
        return {entry.path: entry for entry in self.manifest.files}

    @cached_property
    def _kept(self) -> Mapping[str, str]:
        if self.kept is not None:
            return self.kept
        release = self.manifest.release
        if self.home is None or release is None or release.dvc is None:
            return {}
        # Without the cached files a diff is incomplete, and says so.
        found = tracker().cached(self.home.root, release.dvc)
        return {path: place.lstrip("/") for path, place in found.items()}


def side_of(found: Built) -> Side:
    home = files = None
    if isinstance(found, Resolved):
        home = found.registry.storage
        files = home.below(found.folder) if found.folder is not None else None
    text, schema = found.schema, None
    if text is not None:
        with suppress(TfrecregError):
            schema = parse_schema(text, str(found.schema_path))
    return Side(
        name=found.name,
        manifest=found.manifest,
        schema=schema,
        home=home,
        files=files if home is not None else found.storage(to_check=True),
    )
