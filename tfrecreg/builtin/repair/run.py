"""Repairs a build or release: compares files with the manifest, rebuilds, verifies, publishes.

A lost shard is rebuilt from its index, its sound records and the raw data.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from blake3 import blake3

from tfrecreg.core.build.request import BuildRequest, Prepared, prepare
from tfrecreg.core.build.shard import close_source, make_payload
from tfrecreg.core.build.sources.guarded import GuardedSource
from tfrecreg.core.build.sources.interface import Item, Skipped
from tfrecreg.core.build.state import remove_leftovers
from tfrecreg.core.example.decode import canonical
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.records.gzip_writer import Compression
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.records.index import Index, read_index
from tfrecreg.core.records.reader import scan
from tfrecreg.core.records.writer import ShardWriter, hashed_write
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.absence import absent_release, fetch_command
from tfrecreg.core.registry.data import Release, Resolved, resolve
from tfrecreg.core.registry.history import altered, copy_verified
from tfrecreg.core.registry.indexes import find_index, index_places
from tfrecreg.core.registry.keeper import tracker
from tfrecreg.core.registry.manifest import (
    BUILD_AGAIN,
    LABELS_NAME,
    LEDGER_NAME,
    MANIFEST_NAME,
    SCHEMA_NAME,
    FileEntry,
    Manifest,
    ShardEntry,
    build_manifest,
    is_adopted,
    is_python_data,
    render_manifest,
)
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.registry.schemas import schema_of_digest
from tfrecreg.core.registry.transaction import transaction
from tfrecreg.core.storage.interface import Readable, Storage
from tfrecreg.core.values.documents import canonical_json
from tfrecreg.core.values.errors import (
    PluginError,
    RefusedError,
    StorageError,
    TfrecregError,
    UntrustedPluginError,
    UsageError,
)
from tfrecreg.core.values.progress import SILENT, Progress, working
from tfrecreg.core.values.reference import parse_reference
from tfrecreg.core.values.text import ShortRepr
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class RemakeTask:
    """Everything that a worker needs to rebuild one shard. Picklable."""

    entry: ShardEntry
    """The shard's entry in the manifest."""
    index: Index
    items: Mapping[str, Item]
    """The items that the raw data still have, by key."""
    source: bytes | None
    """The pickled source; None if the raw data are not available."""
    compression: Compression
    folder: Readable
    """The folder of the damaged shard, which may be missing."""
    stage: Storage
    """The unfinished folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemadeShard:
    """A rebuilt shard."""

    entry: ShardEntry
    """The rebuilt shard."""
    index: FileEntry
    """The entry of the index."""
    taken: int
    """Number of records kept from the damaged shard."""
    first: str = ""
    """The key of the first record that is missing or differs, and the reason; else empty."""

    @property
    def made(self) -> int:
        """Number of records made from the raw data."""
        return self.entry.records - self.taken


def remake(task: RemakeTask) -> RemadeShard:
    """Rebuild the shard, record by record.

    The caller compares the result with the original's digest.
    """
    source: GuardedSource | None = None if task.source is None else pickle.loads(task.source)
    entry, index = task.entry, task.index
    members = {stream for _, stream in index.members}
    offsets = index.offsets()
    found = _intact(task)
    number, payload = next(found, (-1, b""))
    taken = 0
    first = ""
    with ShardWriter(
        task.stage, entry.path, compression=task.compression, index_path=entry.index
    ) as writer:
        for record in range(len(index)):
            if int(offsets[record]) in members:
                writer.end_member()
            key = index.key(record)
            digest = index.digests[record].tobytes()
            if record == number:
                writer.write(payload, digest=digest, key=key)
                taken += 1
                number, payload = next(found, (-1, b""))
                continue
            made = _made(task, source, key)
            if isinstance(made, str):
                first = first or f"`{key}`: {made}"
                continue
            new = record_digest(made)
            if new != digest:
                first = first or f"`{key}`: its item now gives a different record"
            writer.write(made, digest=new, key=key)
    written = writer.written
    assert written.index is not None
    return RemadeShard(
        entry=ShardEntry.of(entry.path, written, split=entry.split, index=entry.index),
        index=FileEntry.of(entry.index, written.index),
        taken=taken,
        first=first,
    )


def _made(task: RemakeTask, source: GuardedSource | None, key: str) -> bytes | str:
    """The record of an item, or the reason why it cannot be made."""
    if source is None:
        return "the raw data are not available"
    item = task.items.get(key)
    if item is None:
        return "the raw data no longer have this item"
    made = make_payload(source, item)
    if isinstance(made, Skipped):
        return f"the source now skips its item: {made.code} {made.detail}"
    return made


def _intact(task: RemakeTask) -> Iterator[tuple[int, bytes]]:
    """Number and payload of each intact record, in order."""
    index, entry = task.index, task.entry
    events = scan(
        task.folder,
        entry.path,
        declared=task.compression,
        known_offsets=index.offsets(),
        members=index.members,
    )
    following = 0
    try:
        for event in events:
            if not isinstance(event, RecordBatch) or not event.whole:
                continue
            for number, payload in enumerate(event.payloads(), event.first):
                # Records at another number are rebuilt, which costs only time.
                here = following <= number < len(index)
                if here and record_digest(canonical(payload)) == index.digests[number].tobytes():
                    following = number + 1
                    yield number, payload
    except StorageError:
        return  # the shard is missing or unreadable: the rest is rebuilt


@dataclass(frozen=True, slots=True)
class _Repair:
    """A repair in progress."""

    resolved: Resolved
    manifest: Manifest
    here: Readable
    """The folder to repair."""
    stage: Storage
    """The unfinished folder."""
    backup: str
    """Where the user may have intact files, for hints."""
    progress: Progress

    def copy_sound(self, paths: Collection[str]) -> list[str]:
        """Copy files from the other folders of the registry, and from DVC. Each copy is hashed."""
        resolved, stage = self.resolved, self.stage
        folders = [layout.build_folder(resolved.dataset.name)]
        if isinstance(resolved, Release):
            folders.append(layout.version_folder(resolved.dataset.name, resolved.version))
        places = [resolved.registry.storage.below(folder) for folder in folders]
        taken = []
        for path in sorted(paths):
            for place in places:
                if place.root != self.here.root:
                    with suppress(StorageError, RefusedError):
                        copy_verified(place, stage, resolved.manifest.entries[path])
                        taken.append(path)
                        break
        left = sorted(set(paths) - set(taken))
        if left:
            dataset, manifest = resolved.dataset, resolved.manifest
            taken += tracker().supply(dataset, manifest, left, stage, self.progress)
        return taken

    def indexes(self, wrong: Collection[str]) -> tuple[list[tuple[ShardEntry, Index]], list[str]]:
        """The lost shards with their indexes, and the restored indexes of other shards.

        An index is in the folder `index/` of its shard, or in the folder where a release keeps it.
        """
        lost: list[tuple[ShardEntry, Index]] = []
        restored: list[str] = []
        files = {each.path: each for each in self.manifest.files}
        for shard in self.manifest.shards:
            if shard.path not in wrong and shard.index not in wrong:
                continue
            entry = files[shard.index]
            places = [(self.stage, entry.path), (self.here, entry.path)]
            places += index_places(self.resolved.registry, self.resolved.folder, entry)
            found = None
            with suppress(StorageError):  # an unreadable index counts as lost
                found = find_index(places, entry)
            if found is None:
                raise RefusedError(
                    f"the index of `{shard.path}` is lost, so the contents of the shard are "
                    "unknown; nothing was changed",
                    hint=f"restore `{entry.path}` from {self.backup}; "
                    f"`tfrecreg build {self.manifest.dataset}` makes all files again",
                )
            if shard.path in wrong:
                lost.append((shard, read_index(found[1], shard.index)))
            else:
                hashed_write(self.stage, shard.index, found[1])
                restored.append(shard.index)
        return lost, restored

    def make_again(
        self, lost: Sequence[tuple[ShardEntry, Index]], raw: str | None, engine: Engine
    ) -> list[RemadeShard]:
        """Rebuild shards and their indexes in the stage, with the original bytes."""
        if not lost:
            return []
        opened = self._open_raw(raw)
        problem = opened if isinstance(opened, TfrecregError) else None
        source = None
        items: dict[tuple[str, str], Item] = {}
        if not isinstance(opened, TfrecregError):
            source = pickle.dumps(opened.source)
            wanted = {(entry.split, key) for entry, index in lost for key in set(index.keys())}
            for item in opened.source.items():
                if isinstance(item, Item) and (item.split, item.key) in wanted:
                    items[item.split, item.key] = item
        tasks = [
            RemakeTask(
                entry=entry,
                index=index,
                items={
                    key: items[entry.split, key]
                    for key in set(index.keys())
                    if (entry.split, key) in items
                },
                source=source,
                compression=self.manifest.compression,
                folder=self.here,
                stage=self.stage,
            )
            for entry, index in lost
        ]
        try:
            made = engine.map(
                remake,
                tasks,
                cost=lambda _, shard: (shard.entry.records, shard.entry.bytes),
                label=f"repairing {self.manifest.dataset}",
                total=sum(entry.records for entry, _ in lost),
                progress=self.progress,
            )
        finally:
            close_source()
        remove_leftovers(self.stage)
        then = self.manifest.entries
        wrong = [
            each
            for each in made
            if each.entry.blake3 != then[each.entry.path].blake3
            or each.index.blake3 != then[each.index.path].blake3
        ]
        if wrong:
            raise problem or self._refusal(wrong)
        return made

    def _refusal(self, wrong: Sequence[RemadeShard]) -> RefusedError:
        """The error for shards that were rebuilt with different bytes."""
        manifest, first = self.manifest, wrong[0]
        why = f"; its first wrong record is {first.first}" if first.first else ""
        made = f"{manifest.source.distribution} {manifest.source.version}"
        codecs = [f"{codec} {version}" for codec, version in sorted(manifest.codecs.items())]
        return RefusedError(
            f"`{self.resolved.name}` cannot be repaired, and nothing was changed: the rebuilt "
            f"`{first.entry.path}` has other bytes{why}",
            hint=f"it was made from {manifest.raw.files:,} raw files with "
            f"{', '.join((made, *codecs))}: restore these files and versions, or the shards from "
            f"{self.backup}",
        )

    def _open_raw(self, raw: str | None) -> Prepared | TfrecregError:
        """The source of a build with its raw data, or the error that says why these are not
        available. The caller raises the error only if it needs the raw data.
        """
        name, manifest = self.resolved.name, self.manifest
        if is_python_data(manifest) or is_adopted(manifest) or not manifest.source.name:
            return UsageError(
                f"no source can make the records of `{manifest.dataset}` again",
                hint=f"restore the files from {self.backup}, or save the undamaged records with "
                f"`tfrecreg salvage`; for the data of a program, {BUILD_AGAIN}",
            )
        options = dict(manifest.source.options)
        if manifest.parents:  # the versions that a reference such as `street@2.*` named then
            options["inputs"] = ",".join(each.reference for each in manifest.parents)
        request = BuildRequest(
            name=manifest.dataset,
            source=manifest.source.plugin,
            raw=raw,
            options=options,
            compression=manifest.compression,
        )
        try:
            return prepare(self.resolved.registry, request)
        except UntrustedPluginError:
            raise
        except UsageError as error:
            error.hint = (
                f"name the raw data: tfrecreg repair {name} --raw PATH; without them, `{name}` "
                f"cannot be repaired here, but only restored from {self.backup}"
            )
            return error
        except PluginError as error:
            return error

    def small_files(self, wrong: Collection[str]) -> list[str]:
        """Write the manifest and the files that can be made from it; returns their paths."""
        manifest = self.manifest
        indexes = {shard.index for shard in manifest.shards}
        restored = []
        for entry in manifest.files:
            if entry.path not in wrong or entry.path in indexes:
                continue
            data = {
                LABELS_NAME: canonical_json(manifest.labels) + b"\n",
                LEDGER_NAME: b"",  # if the build has no skips and no remarks
            }.get(entry.path)
            if entry.path == SCHEMA_NAME:
                text = schema_of_digest(self.resolved.dataset, entry.blake3)
                data = text.encode("utf-8") if text is not None else None
            if data is None or blake3(data).hexdigest() != entry.blake3:
                raise RefusedError(
                    f"`{entry.path}` is missing and cannot be rebuilt; nothing was changed",
                    hint=f"restore it from {self.backup}, or run "
                    f"`tfrecreg build {manifest.dataset}`",
                )
            hashed_write(self.stage, entry.path, data)
            restored.append(entry.path)
        hashed_write(self.stage, MANIFEST_NAME, render_manifest(manifest))
        return [*restored, MANIFEST_NAME] if MANIFEST_NAME in wrong else restored


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RepairResult(ShortRepr):
    """The result of a repair."""

    reference: str
    """``mnist`` or ``mnist@1.0.0``."""
    folder: str
    """Repaired folder, relative to the registry."""
    digest: str
    """Digest of the manifest. Every file in the folder now matches the manifest."""
    shards: tuple[RemadeShard, ...]
    files: tuple[str, ...]
    """Other rebuilt files."""
    copied: tuple[str, ...] = ()
    """Shards and other files that were copied from another place."""

    def to_json(self) -> dict[str, Any]:
        """The result as the command line prints it."""
        return {
            "reference": self.reference,
            "folder": self.folder,
            "digest": self.digest,
            "shards": [
                {
                    "path": shard.entry.path,
                    "taken": shard.taken,
                    "made": shard.made,
                    "bytes": shard.entry.bytes,
                    "blake3": shard.entry.blake3,
                }
                for shard in self.shards
            ],
            "files": self.files,
            "copied": self.copied,
        }


def repair(
    registry: Registry,
    reference: str,
    *,
    raw: str | None = None,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> RepairResult:
    """Rebuild missing and damaged files of a build or a release, byte for byte.

    Intact copies of a release's files come from another folder of the registry or from DVC. If a
    file has no copy, its intact records are kept, and its other records are made from the raw data.
    New files are written to a new folder, and intact files are linked there. Then all bytes of the
    new folder are read back and compared with the manifest. If they match, the new folder replaces
    the old folder.
    """
    dataset = registry.dataset(parse_reference(reference).name)
    with transaction(dataset, progress) as change:
        resolved = resolve(registry, reference)
        manifest = build_manifest(resolved.manifest)
        folder = _folder_of(resolved)
        here = registry.storage.below(folder)
        total = sum(each.records for each in manifest.shards)
        with working(progress, f"hashing {manifest.dataset}", total):
            wrong = {each.path for each in altered(manifest, here, progress)}
        made: list[RemadeShard] = []
        copied: list[str] = []
        restored: list[str] = []
        if wrong:
            with change.stage("repair") as stage:
                command = fetch_command(dataset, manifest)
                backup = f"DVC: `{command}`" if command else "DVC or a backup"
                work = _Repair(resolved, manifest, here, stage, backup, progress)
                copied = work.copy_sound(wrong - {MANIFEST_NAME})
                wrong = wrong.difference(copied)
                lost, restored = work.indexes(wrong)
                made = work.make_again(lost, raw, engine or LocalEngine(1))
                restored += work.small_files(wrong)
                change.carry_over(folder, stage, manifest)
                change.replace(folder, stage, manifest)
        return RepairResult(
            reference=resolved.name,
            folder=folder,
            digest=manifest.digest,
            shards=tuple(made),
            files=tuple(restored),
            copied=tuple(copied),
        )


def _folder_of(resolved: Resolved) -> str:
    """The local folder where the bytes of a build or release are, or should be."""
    if resolved.folder is not None:
        return resolved.folder
    assert isinstance(resolved, Release)  # a build has a folder
    if tracker().keeps(resolved.registry, resolved.manifest):
        return layout.version_folder(resolved.dataset.name, resolved.version)
    raise absent_release(resolved.dataset, resolved.version, resolved.manifest)
