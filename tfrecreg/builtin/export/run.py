"""The operation `export`: runs an exporter for a new folder, or sends files to a store.

Each file in the store is verified after it was sent. Existing files there are never replaced. Files
with the right bytes are kept, so an interrupted command resumes where it stopped.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrecreg.core.build.state import remove_leftovers
from tfrecreg.core.check.scan.conditions import chosen_records
from tfrecreg.core.example.kinds import PayloadKind
from tfrecreg.core.plugins.exporters import (
    ExportedDataset,
    ExportedShard,
    Exporter,
    ShardMethod,
    ShardToExport,
    numbered,
)
from tfrecreg.core.plugins.guard import PluginId, called
from tfrecreg.core.plugins.manager import plugins_of
from tfrecreg.core.plugins.records import ExporterRecord
from tfrecreg.core.records.hashing import hash_file
from tfrecreg.core.registry.data import resolve
from tfrecreg.core.registry.find import find_target
from tfrecreg.core.registry.history import copy_verified
from tfrecreg.core.registry.lock import free_folder, new_folder
from tfrecreg.core.registry.manifest import (
    MANIFEST_NAME,
    FileEntry,
    ShardEntry,
    adopted_kind,
    render_manifest,
)
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.storage.interface import Readable, Storage
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.raw import store_to_fill
from tfrecreg.core.storage.remote import RemoteStorage
from tfrecreg.core.values.errors import (
    FailureError,
    RefusedError,
    StorageError,
    UsageError,
)
from tfrecreg.core.values.progress import SILENT, Progress, working
from tfrecreg.core.values.text import ShortRepr, safe
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine


def copy_other_files(dataset: ExportedDataset, folder: Storage) -> None:
    """Copy the files of a build or release, except its shards, to a folder that already has the
    shards.
    """
    source, manifest = dataset.resolved.storage(), dataset.manifest
    for entry in manifest.files:
        copy_verified(source, folder, entry)
    with folder.create(MANIFEST_NAME) as writer:
        writer.write(render_manifest(manifest))


def send_files(dataset: ExportedDataset, store: RemoteStorage) -> list[str]:
    """Send all files of a build or release. Returns their paths, sorted."""
    source, manifest, progress = dataset.resolved.storage(), dataset.manifest, dataset.progress
    data = render_manifest(manifest)
    files: list[ShardEntry | FileEntry] = [*manifest.shards, *manifest.files]
    sizes = {MANIFEST_NAME: len(data), **{each.path: each.bytes for each in files}}
    for found in store.list():
        if found.kind != "dir" and found.size != sizes.get(found.path):
            raise _taken(store, found.path, dataset.reference)
    send = partial(_send, reference=dataset.reference, source=source, store=store)
    total = sum(each.records for each in manifest.shards)
    label = f"exporting {dataset.reference}"
    with working(progress, label, total), closing(dataset.engine.run(send, files)) as sent:
        for entry, _ in zip(files, sent, strict=True):
            progress.advance(entry.records if isinstance(entry, ShardEntry) else 0, entry.bytes)
    if not store.put_if_absent(MANIFEST_NAME, data) and store.read(MANIFEST_NAME) != data:
        raise _taken(store, MANIFEST_NAME, dataset.reference)
    return sorted(sizes)


def _send(
    entry: ShardEntry | FileEntry, *, reference: str, source: Readable, store: RemoteStorage
) -> None:
    """Send one file in a worker, unless the store already has its bytes."""
    path, wanted = entry.path, (entry.bytes, entry.blake3)
    if source.stat(path) is None or hash_file(source, path)[:2] != wanted:
        raise RefusedError(
            f"`{path}` is missing, or differs from the manifest of `{reference}`",
            hint=f"tfrecreg check {reference}",
        )
    place = f"{source.root}/{path}"
    is_new = store.stat(path) is None and store.put_file_if_absent(path, place)
    if hash_file(store, path, expected=entry.blake3)[:2] == wanted:
        return
    if not is_new:
        raise _taken(store, path, reference)
    raise StorageError(f"`{store.root}/{path}` differs from the bytes that were sent")


def _taken(store: RemoteStorage, path: str, reference: str) -> UsageError:
    return UsageError(f"`{store.root}/{path}` exists, but does not belong to `{reference}`")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExportResult(ShortRepr):
    """An exported folder."""

    reference: str
    """The exported reference with a resolved selector: ``mnist@1.0.0``."""
    to: str
    """Name of the exporter."""
    folder: str
    """Absolute path, or URL."""
    dataset: str
    version: str
    """Version in the exported folder: ``0.0.0`` for a build."""
    splits: dict[str, int]
    """Number of records by split."""
    files: tuple[str, ...]
    """Paths in the folder, sorted."""
    bytes: int
    """Size of the exported shards in bytes."""
    shards: dict[ShardMethod, int]
    """Number of shards that were exported in each way, such as by a hard link."""
    content: str | None
    """Verified content digest of the written records. None if the shards are exported unchanged."""
    where: str | None = None
    """The condition that selected the exported records; None if all were exported."""
    notes: tuple[str, ...]
    """Notes for the user, one line each."""
    how_to_read: str = field(repr=False)
    """How to open the result, in one line."""


def export(
    registry: Registry,
    reference: str,
    folder: str | os.PathLike[str],
    *,
    to: str = "tfds",
    options: Sequence[str] | Mapping[str, Any] = (),
    where: str | None = None,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> ExportResult:
    """Write a build or a release into `folder` for another tool."""
    known = plugins_of(registry.config)
    announced = known.find(ExporterRecord, to)
    resolved = resolve(registry, reference)
    kind: type[Exporter] = known.load(ExporterRecord, to)
    store = store_to_fill(os.fsdecode(folder)) if kind.keeps_files else None
    path = store.root if store is not None else str(free_folder(folder, registry))
    given, _ = known.options(ExporterRecord, to, options)
    dataset = ExportedDataset(
        to=announced.name,
        resolved=resolved,
        engine=engine or LocalEngine(1),
        progress=progress,
        where=where,
    )
    _expect_exportable(dataset, kind)
    guarded = partial(called, announced.plugin_id)
    exporter: Exporter = guarded("__init__", kind, dataset, given)
    guarded("expect", exporter.expect)
    if kind.takes_shards:
        resolved.storage()  # raises here, before anything is written, if the bytes are elsewhere
    manifest = dataset.manifest
    made = partial(
        ExportResult,
        reference=dataset.reference,
        to=announced.name,
        folder=path,
        dataset=resolved.dataset.name,
        version=dataset.version,
        where=where,
        how_to_read=_shown(guarded("how_to_read", exporter.how_to_read, path)),
    )
    if store is not None:
        return made(
            splits=_records(dataset, None),
            files=tuple(send_files(dataset, store)),
            bytes=sum(each.bytes for each in manifest.shards),
            shards={"copied": len(manifest.shards)},
            content=None,
            notes=(),
        )
    holding: AbstractContextManager[list[npt.NDArray[np.int64]] | None] = nullcontext()
    if where is not None:
        target = find_target(resolved)
        holding = chosen_records(target, where, engine=dataset.engine, progress=progress)
    with new_folder(Path(path)) as stage, holding as numbers:
        shards: list[ExportedShard] = []
        chosen = None
        if numbers is not None:
            chosen = dict(zip((each.path for each in target.shards), numbers, strict=True))
        if kind.takes_shards:
            paths = _file_names(dataset, exporter, announced.plugin_id)
            work = partial(guarded, "begin", guarded("begin", exporter.begin))
            shards = _export_shards(dataset, paths, work, stage, chosen)
        content = guarded("verify", exporter.verify, shards)
        notes = guarded("finish", lambda: tuple(map(_shown, exporter.finish(stage, shards))))
        if kind.keeps_files:
            copy_other_files(dataset, stage)
        files = list(stage.list())
        names = {each.name for each in shards}
        return made(
            splits=_records(dataset, None if chosen is None else shards),
            files=tuple(entry.path for entry in files if entry.kind != "dir"),
            bytes=sum(entry.size for entry in files if entry.path in names),
            shards=dict(Counter(each.how for each in shards)),
            content=content,
            notes=notes,
        )


def _shown(text: str) -> str:
    return text if text.isprintable() else safe(text, limit=1000)


def _records(dataset: ExportedDataset, written: Sequence[ExportedShard] | None) -> dict[str, int]:
    """Number of records per split. A selection omits splits without a selected record."""
    splits = {split.name: split.records for split in dataset.manifest.splits}
    if written is None:
        return splits
    found = Counter[str]()
    for each in written:
        found[each.entry.split] += each.entry.records
    return {name: found[name] for name in splits if found[name]}


def _expect_exportable(dataset: ExportedDataset, exporter: type[Exporter]) -> None:
    """Raise if the exporter takes no condition, or takes only Examples with a schema."""
    if dataset.where is not None and not exporter.takes_some_records:
        raise UsageError(
            f"`--to {dataset.to}` exports whole shards, but `--where` chooses records: use "
            "`arrayrecord`, `jsonl`, `parquet` or `webdataset`"
        )
    if exporter.payloads != "examples":
        return
    kind = adopted_kind(dataset.manifest)
    if kind is not PayloadKind.EXAMPLE:
        raise UsageError(
            f"`{dataset.reference}` holds {kind.plural}, but {exporter.reader or dataset.to} "
            "reads only Examples"
        )
    _ = dataset.schema


def _file_names(dataset: ExportedDataset, exporter: Exporter, plugin_id: PluginId) -> list[str]:
    """The name of the exported file of each shard."""
    if exporter.keeps_files:
        return [shard.path for shard in dataset.manifest.shards]
    names = [
        called(plugin_id, "file_name", exporter.file_name, shard.split, number, of)
        for shard, number, of in numbered(dataset.manifest.shards)
    ]
    if len(set(names)) < len(names):
        raise FailureError(f"{plugin_id} gives two shards the same file")
    return names


def _export_shards(
    dataset: ExportedDataset,
    names: Sequence[str],
    work: Callable[[ShardToExport], ExportedShard],
    stage: LocalStorage,
    chosen: Mapping[str, npt.NDArray[np.int64]] | None,
) -> list[ExportedShard]:
    manifest, progress = dataset.manifest, dataset.progress
    tasks = (
        ShardToExport(
            reference=dataset.reference,
            storage=dataset.resolved.storage(),
            entry=shard,
            compression=manifest.compression,
            folder=stage,
            name=name,
            # A missing shard is refused when it is read.
            numbers=None if chosen is None else chosen.get(shard.path),
        )
        for shard, name in zip(manifest.shards, names, strict=True)
    )
    done: list[ExportedShard] = []
    progress.start(f"exporting {dataset.reference}", sum(each.records for each in manifest.shards))
    try:
        # Closed before the stage is removed: no worker writes into it any more.
        with closing(dataset.engine.run(work, tasks)) as results:
            for each in results:
                done.append(each)
                progress.advance(each.entry.records, each.entry.bytes)
    finally:
        progress.stop()
    remove_leftovers(stage)
    return done
