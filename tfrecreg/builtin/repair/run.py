"""The operation: compare files with the manifest, rebuild, verify, publish."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from blake3 import blake3

from tfrecreg.builtin.repair.rebuild import (
    Lost,
    RawData,
    RemadeShard,
    make_again,
    open_raw,
    rebuild_refusal,
)
from tfrecreg.core.records.index import Index, read_index
from tfrecreg.core.records.writer import hashed_write
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.absence import absent_release, fetch_command
from tfrecreg.core.registry.history import altered, below, copy_verified
from tfrecreg.core.registry.keeper import tracker
from tfrecreg.core.registry.lookup import Release, Resolved, resolve
from tfrecreg.core.registry.manifest import (
    LABELS_NAME,
    LEDGER_NAME,
    MANIFEST_NAME,
    SCHEMA_NAME,
    FileEntry,
    Manifest,
    ShardEntry,
    build_manifest,
    render_manifest,
)
from tfrecreg.core.registry.registry import Dataset, Registry
from tfrecreg.core.registry.schemas import schema_of_digest
from tfrecreg.core.registry.shardset.indexes import find_index, index_places
from tfrecreg.core.registry.transaction import Transaction, transaction
from tfrecreg.core.storage.interface import Readable, Storage
from tfrecreg.core.values.documents import canonical_json
from tfrecreg.core.values.errors import RefusedError, StorageError
from tfrecreg.core.values.progress import SILENT, Progress, working
from tfrecreg.core.values.reference import parse_reference
from tfrecreg.core.values.text import ShortRepr, safe
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine


def take(
    resolved: Resolved, here: Readable, paths: Collection[str], stage: Storage, progress: Progress
) -> list[str]:
    """Copy files from other copies on this machine, and DVC. Each is hashed."""
    taken = []
    for path in sorted(paths):
        for place in _places(resolved, here):
            try:
                copy_verified(place, stage, resolved.manifest.entries[path])
            except (StorageError, RefusedError):
                continue
            taken.append(path)
            break
    left = sorted(set(paths) - set(taken))
    if left:
        taken += tracker().supply(resolved.dataset, resolved.manifest, left, stage, progress)
    return taken


def _places(resolved: Resolved, here: Readable) -> Iterator[Readable]:
    storage = resolved.registry.storage
    folders = [layout.build_folder(resolved.dataset.name)]
    if isinstance(resolved, Release):
        folders.append(layout.version_folder(resolved.dataset.name, resolved.version))
    places = (storage.below(folder) for folder in folders)
    return (each for each in places if each.root != here.root)


@dataclass(frozen=True, slots=True)
class State:
    """Content of the folder of a build or a release."""

    shards: tuple[ShardEntry, ...]
    """Shards that are missing or differ from the manifest."""
    files: tuple[FileEntry, ...]
    """The same of all other files."""
    manifest: bool
    """Whether the manifest beside them is missing or another one."""
    refusal: StorageError | None = None
    """The first error from reading a file that is there."""

    @property
    def paths(self) -> list[str]:
        """The shards and files that are wrong."""
        return [*(each.path for each in self.shards), *(each.path for each in self.files)]

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.shards and not self.files and not self.manifest


def look_over(storage: Readable, manifest: Manifest, progress: Progress) -> State:
    """Hash every file that the manifest lists."""
    with working(
        progress, f"hashing {manifest.dataset}", sum(each.records for each in manifest.shards)
    ):
        found = list(altered(manifest, below(storage), progress))
    wrong = {each.path for each in found}
    return State(
        tuple(entry for entry in manifest.shards if entry.path in wrong),
        tuple(entry for entry in manifest.files if entry.path in wrong),
        MANIFEST_NAME in wrong,
        next((each.refusal for each in found if each.refusal is not None), None),
    )


def _index_of(
    registry: Registry,
    folder: str | None,
    manifest: Manifest,
    shard: ShardEntry,
    places: Sequence[Readable],
) -> Index | None:
    """The index of a shard, as the manifest names it: beside it, or as it was kept when the build
    was released. None where it is lost.
    """
    entry = next((each for each in manifest.files if each.path == shard.index), None)
    if entry is None:
        return None
    elsewhere = [(place, entry.path) for place in places]
    with suppress(StorageError):  # one that cannot be read is as good as none
        found = find_index([*elsewhere, *index_places(registry, folder, entry)], entry)
        return None if found is None else read_index(found[1], found[0])
    return None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RepairResult(ShortRepr):
    """What a repair did."""

    reference: str
    """``mnist`` or ``mnist@1.0.0``."""
    folder: str
    """Repaired folder, relative to the registry."""
    digest: str
    """Digest of the manifest, which every file in the folder now matches."""
    shards: tuple[RemadeShard, ...]
    """Rebuilt shards."""
    files: tuple[str, ...]
    """Other files that were."""
    copied: tuple[str, ...] = ()
    """Shards and other files that were found sound in another place."""

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

    Sound files come from the other places that have them: another folder of the registry, or DVC.
    Of the rest, intact records are kept, and the others are made from the raw data. A folder is
    made beside the old one, of links to the files that are sound and of the new ones; when every
    byte of it was read back and agrees with the manifest, the folders are exchanged. Before that
    nothing is changed.
    """
    dataset = registry.dataset(parse_reference(reference).name)
    with transaction(dataset, progress) as change:
        resolved = resolve(registry, reference)
        manifest = build_manifest(resolved.manifest)
        work = _Repair(resolved, manifest, raw, engine or LocalEngine(1), progress)
        folder = _folder_of(resolved)
        work.repair_folder(change, folder)
        return RepairResult(
            reference=resolved.name,
            folder=folder,
            digest=manifest.digest,
            shards=tuple(work.made),
            files=tuple(work.files),
            copied=tuple(work.copied),
        )


def _folder_of(resolved: Resolved) -> str:
    """The folder with the bytes of a build or release on this machine, or where they should be."""
    if resolved.folder is not None:
        return resolved.folder
    assert isinstance(resolved, Release)  # a build has a folder
    if tracker().keeps(resolved.registry, resolved.manifest):
        return layout.version_folder(resolved.dataset.name, resolved.version)
    raise absent_release(resolved.dataset, resolved.version, resolved.manifest)


class _Repair:
    """The state of a repair."""

    def __init__(
        self,
        resolved: Resolved,
        manifest: Manifest,
        raw: str | None,
        engine: Engine,
        progress: Progress,
    ) -> None:
        self._resolved = resolved
        self._manifest = manifest
        self._raw = raw
        self._engine = engine
        self._progress = progress
        self.made: list[RemadeShard] = []
        self.files: list[str] = []
        self.copied: list[str] = []

    def repair_folder(self, change: Transaction, folder: str) -> None:
        """Repair a folder: one is made beside it, and they change places."""
        here = self._resolved.registry.storage.below(folder)
        state = look_over(here, self._manifest, self._progress)
        if state.sound:
            return
        with change.stage("repair") as stage:
            self._fill(state, here, stage)
            _link_rest(here, stage)
            change.replace(folder, stage, self._manifest)

    def _fill(self, state: State, here: Readable, stage: Storage) -> None:
        """Put all files into the stage that are missing or damaged in a place."""
        resolved, manifest, registry = self._resolved, self._manifest, self._resolved.registry
        taken = take(resolved, here, state.paths, stage, self._progress)
        rest = State(
            tuple(entry for entry in state.shards if entry.path not in taken),
            tuple(entry for entry in state.files if entry.path not in taken),
            state.manifest,
        )
        lost, links = _sort_out(registry, resolved.folder, manifest, rest, (stage, here))
        backup = "DVC or a backup"
        if command := fetch_command(resolved.dataset, manifest):
            backup = f"DVC: `{command}`"
        data = open_raw(registry, manifest, self._raw, resolved.name, backup)
        made = make_again(
            lost,
            manifest,
            data,
            folder=here,
            stage=stage,
            engine=self._engine,
            progress=self._progress,
        )
        _require_same(resolved.name, manifest, made, data)
        self.made += made
        self.copied += taken
        self.files += _restore(resolved.dataset, manifest, rest, stage, links, backup)


def _sort_out(
    registry: Registry,
    folder: str | None,
    manifest: Manifest,
    state: State,
    places: Sequence[Readable],
) -> tuple[list[Lost], dict[str, str]]:
    """The shards to rebuild, and the indexes that only need to be linked from their copies."""
    damaged = {entry.path for entry in state.shards}
    files = {entry.path: entry for entry in state.files}
    lost: list[Lost] = []
    links: dict[str, str] = {}
    for shard in manifest.shards:
        entry = files.get(shard.index)
        if shard.path not in damaged and entry is None:
            continue
        kept = None if entry is None else layout.cached_index(entry.blake3)
        index = _index_of(registry, folder, manifest, shard, places)
        if shard.path not in damaged and kept is not None and index is not None:
            links[shard.index] = kept
        else:
            lost.append(Lost(shard, index))
    return lost, links


def _require_same(
    name: str, manifest: Manifest, made: Sequence[RemadeShard], data: RawData
) -> None:
    shards = {entry.path: entry for entry in manifest.shards}
    indexes = {entry.path: entry.blake3 for entry in manifest.files}
    wrong = []
    for shard in made:
        entry = shards[shard.entry.path]
        if (shard.entry.blake3, shard.index.blake3) != (entry.blake3, indexes.get(entry.index)):
            wrong.append(shard)
    if not wrong:
        return
    if data.problem is not None:
        raise data.problem
    raise rebuild_refusal(name, manifest, wrong, data)


def _restore(
    dataset: Dataset,
    manifest: Manifest,
    state: State,
    stage: Storage,
    links: dict[str, str],
    backup: str,
) -> list[str]:
    """Write the files that follow from the manifest, and link the files kept elsewhere."""
    restored = []
    for target, source in links.items():
        stage.link(source, target, origin=dataset.registry.storage)
        restored.append(target)
    indexes = {shard.index for shard in manifest.shards}
    for entry in state.files:
        if entry.path not in indexes:
            hashed_write(stage, entry.path, _content(dataset, manifest, entry, backup))
            restored.append(entry.path)
    hashed_write(stage, MANIFEST_NAME, render_manifest(manifest))
    if state.manifest:
        restored.append(MANIFEST_NAME)
    return restored


def _content(dataset: Dataset, manifest: Manifest, entry: FileEntry, backup: str) -> bytes:
    """The bytes of a small file, which are known from elsewhere as well."""
    candidates = {
        LABELS_NAME: canonical_json(manifest.labels) + b"\n",
        LEDGER_NAME: b"",  # of a build that skipped nothing and remarked on nothing
    }
    data = candidates.get(entry.path)
    if entry.path == SCHEMA_NAME:
        text = schema_of_digest(dataset, entry.blake3)
        data = text.encode("utf-8") if text is not None else None
    if data is not None and blake3(data).hexdigest() == entry.blake3:
        return data
    raise RefusedError(
        f"`{safe(entry.path)}` is missing and cannot be rebuilt; nothing was changed",
        hint=f"restore it from {backup}, or `tfrecreg build {manifest.dataset}` makes all",
    )


def _link_rest(here: Readable, stage: Storage) -> None:
    """Everything that is not there yet comes from the old folder; also what no manifest lists, for
    it is not ours to remove.
    """
    for entry in here.list():
        if entry.kind != "dir" and stage.stat(entry.path) is None:
            stage.link(entry.path, entry.path, origin=here)
