"""Repairs a build or release: compares files with the manifest, rebuilds, verifies, publishes."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from blake3 import blake3

from tfrecreg.builtin.repair.rebuild import RemadeShard, make_again
from tfrecreg.core.records.index import Index, read_index
from tfrecreg.core.records.writer import hashed_write
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.absence import absent_release, fetch_command
from tfrecreg.core.registry.data import Release, Resolved, resolve
from tfrecreg.core.registry.history import altered, copy_verified
from tfrecreg.core.registry.indexes import find_index, index_places
from tfrecreg.core.registry.keeper import tracker
from tfrecreg.core.registry.manifest import (
    LABELS_NAME,
    LEDGER_NAME,
    MANIFEST_NAME,
    SCHEMA_NAME,
    Manifest,
    ShardEntry,
    build_manifest,
    render_manifest,
)
from tfrecreg.core.registry.registry import Dataset, Registry
from tfrecreg.core.registry.schemas import schema_of_digest
from tfrecreg.core.registry.transaction import transaction
from tfrecreg.core.storage.interface import Readable, Storage
from tfrecreg.core.values.documents import canonical_json
from tfrecreg.core.values.errors import RefusedError, StorageError
from tfrecreg.core.values.progress import SILENT, Progress, working
from tfrecreg.core.values.reference import parse_reference
from tfrecreg.core.values.text import ShortRepr
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine


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

    Sound copies come from another folder of the registry or from DVC. If a file has no copy, its
    intact records are kept, and its other records are made from the raw data. New files are
    written to a new folder, and intact files are linked there. The new folder replaces the old
    folder only after all its bytes were read back and agree with the manifest.
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
                copied = _copy_sound(resolved, here, wrong - {MANIFEST_NAME}, stage, progress)
                wrong = wrong.difference(copied)
                command = fetch_command(dataset, manifest)
                backup = f"DVC: `{command}`" if command else "DVC or a backup"
                lost, restored = _indexes(resolved, manifest, wrong, here, stage, backup)
                made = make_again(
                    resolved,
                    manifest,
                    lost,
                    raw,
                    backup,
                    folder=here,
                    stage=stage,
                    engine=engine or LocalEngine(1),
                    progress=progress,
                )
                restored += _small_files(dataset, manifest, wrong, stage, backup)
                # The other files come from the old folder, with files that no manifest lists:
                # repair must not remove them.
                for entry in here.list():
                    if entry.kind != "dir" and stage.stat(entry.path) is None:
                        stage.link(entry.path, entry.path, origin=here)
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


def _copy_sound(
    resolved: Resolved, here: Readable, paths: Collection[str], stage: Storage, progress: Progress
) -> list[str]:
    """Copy files from the other folders of the registry, and from DVC. Each copy is hashed."""
    folders = [layout.build_folder(resolved.dataset.name)]
    if isinstance(resolved, Release):
        folders.append(layout.version_folder(resolved.dataset.name, resolved.version))
    places = [resolved.registry.storage.below(folder) for folder in folders]
    taken = []
    for path in sorted(paths):
        for place in places:
            if place.root != here.root:
                with suppress(StorageError, RefusedError):
                    copy_verified(place, stage, resolved.manifest.entries[path])
                    taken.append(path)
                    break
    left = sorted(set(paths) - set(taken))
    if left:
        taken += tracker().supply(resolved.dataset, resolved.manifest, left, stage, progress)
    return taken


def _indexes(
    resolved: Resolved,
    manifest: Manifest,
    wrong: Collection[str],
    here: Readable,
    stage: Storage,
    backup: str,
) -> tuple[list[tuple[ShardEntry, Index]], list[str]]:
    """The lost shards with their indexes, and the restored indexes of other shards.

    An index is in the folder `index/` of its shard, or in the folder where a release keeps it.
    """
    lost: list[tuple[ShardEntry, Index]] = []
    restored: list[str] = []
    files = {each.path: each for each in manifest.files}
    for shard in manifest.shards:
        if shard.path not in wrong and shard.index not in wrong:
            continue
        entry = files[shard.index]
        places = [(stage, entry.path), (here, entry.path)]
        places += index_places(resolved.registry, resolved.folder, entry)
        found = None
        with suppress(StorageError):  # an unreadable index counts as lost
            found = find_index(places, entry)
        if found is None:
            raise RefusedError(
                f"the index of `{shard.path}` is lost, so the contents of the shard are unknown; "
                "nothing was changed",
                hint=f"restore `{entry.path}` from {backup}; `tfrecreg build {manifest.dataset}` "
                "makes all files again",
            )
        if shard.path in wrong:
            lost.append((shard, read_index(found[1], shard.index)))
        else:
            hashed_write(stage, shard.index, found[1])
            restored.append(shard.index)
    return lost, restored


def _small_files(
    dataset: Dataset, manifest: Manifest, wrong: Collection[str], stage: Storage, backup: str
) -> list[str]:
    """Write the manifest and the files that can be made from it; returns their paths."""
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
            text = schema_of_digest(dataset, entry.blake3)
            data = text.encode("utf-8") if text is not None else None
        if data is None or blake3(data).hexdigest() != entry.blake3:
            raise RefusedError(
                f"`{entry.path}` is missing and cannot be rebuilt; nothing was changed",
                hint=f"restore it from {backup}, or run `tfrecreg build {manifest.dataset}`",
            )
        hashed_write(stage, entry.path, data)
        restored.append(entry.path)
    hashed_write(stage, MANIFEST_NAME, render_manifest(manifest))
    return [*restored, MANIFEST_NAME] if MANIFEST_NAME in wrong else restored
