"""The operation: a reference, an exporter, a new folder; and files sent to a store.

A file is verified in the store after it was sent. None there is replaced. One that has the bytes
already is kept, so a command that was interrupted goes on where it was.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tfrecreg.core.build.state import remove_leftovers
from tfrecreg.core.check.scan.conditions import chosen_records
from tfrecreg.core.example.kinds import PayloadKind
from tfrecreg.core.plugins.discovery import Announced
from tfrecreg.core.plugins.exporters import (
    ExportedDataset,
    ExportedShard,
    Exporter,
    ShardMethod,
    ShardToExport,
    numbered,
)
from tfrecreg.core.plugins.guard import PluginId, called, wrong_answer
from tfrecreg.core.plugins.manager import Plugins, plugins_of
from tfrecreg.core.plugins.records import ExporterRecord
from tfrecreg.core.records.hashing import hash_file
from tfrecreg.core.registry.history import copy_verified
from tfrecreg.core.registry.lock import free_folder, new_folder
from tfrecreg.core.registry.lookup import resolve
from tfrecreg.core.registry.manifest import (
    MANIFEST_NAME,
    FileEntry,
    ShardEntry,
    adopted_kind,
    render_manifest,
)
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.registry.shardset.target import find_target
from tfrecreg.core.storage.interface import Readable, Storage, Store
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.paths import is_url, is_web, named_url
from tfrecreg.core.storage.remote import open_store
from tfrecreg.core.values.errors import (
    FailureError,
    PluginError,
    RefusedError,
    StorageError,
    UnknownPluginError,
    UsageError,
)
from tfrecreg.core.values.progress import SILENT, Progress, working
from tfrecreg.core.values.text import ShortRepr, did_you_mean, safe
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine


@dataclass(frozen=True, slots=True)
class _FileToSend:
    """One file, for a worker to send. Picklable."""

    reference: str
    source: Readable
    store: Store
    entry: ShardEntry | FileEntry


def store_to_fill(url: str) -> Store:
    """The folder behind a URL."""
    url = named_url(url)
    if is_web(url):
        raise UsageError(
            f"`{safe(url, limit=1000)}` is on a web server, and files are sent to buckets only",
            hint="name the folder by the protocol of its store: `s3://bucket/folder`",
        )
    return open_store(url)


def copy_beside(dataset: ExportedDataset, folder: Storage) -> None:
    """Copy the files beside the shards to a folder that has the shards."""
    source, manifest = dataset.resolved.storage(), dataset.manifest
    for entry in manifest.files:
        copy_verified(source, folder, entry)
    with folder.create(MANIFEST_NAME) as writer:
        writer.write(render_manifest(manifest))


def send_files(dataset: ExportedDataset, store: Store) -> list[str]:
    """Send all files of a build or release; returns their paths, sorted."""
    source, manifest, progress = dataset.resolved.storage(), dataset.manifest, dataset.progress
    data = render_manifest(manifest)
    files: list[ShardEntry | FileEntry] = [*manifest.shards, *manifest.files]
    sizes = {MANIFEST_NAME: len(data), **{each.path: each.bytes for each in files}}
    _expect_nothing_else(store, sizes, dataset.reference)
    tasks = [_FileToSend(dataset.reference, source, store, each) for each in files]
    total = sum(each.records for each in manifest.shards)
    label = f"exporting {dataset.reference}"
    with working(progress, label, total), closing(dataset.engine.run(_send, tasks)) as sent:
        for task, _ in zip(tasks, sent, strict=True):
            records = task.entry.records if isinstance(task.entry, ShardEntry) else 0
            progress.advance(records, task.entry.bytes)
    if not store.put_if_absent(MANIFEST_NAME, data) and store.read(MANIFEST_NAME) != data:
        raise _taken(store, MANIFEST_NAME, dataset.reference)
    return sorted(sizes)


def _expect_nothing_else(store: Store, sizes: Mapping[str, int], reference: str) -> None:
    for found in store.list():
        if found.kind != "dir" and found.size != sizes.get(found.path):
            raise _taken(store, found.path, reference)


def _send(task: _FileToSend) -> None:
    """Send one file unless its bytes are there, in a worker."""
    path, wanted = task.entry.path, (task.entry.bytes, task.entry.blake3)
    place = f"{task.source.root}/{path}"
    if task.source.stat(path) is None or hash_file(task.source, path) != wanted:
        raise RefusedError(
            f"`{safe(path)}` is missing or not what `{task.reference}` has registered",
            hint=f"tfrecreg check {task.reference}",
        )
    is_new = task.store.stat(path) is None and task.store.put_file_if_absent(path, place)
    if hash_file(task.store, path, expected=task.entry.blake3) == wanted:
        return
    if not is_new:
        raise _taken(task.store, path, task.reference)
    raise StorageError(
        f"`{safe(f'{task.store.root}/{path}', limit=1000)}` has other bytes than were sent",
        hint="remove it, and run the command again",
    )


def _taken(store: Store, path: str, reference: str) -> UsageError:
    return UsageError(
        f"`{safe(f'{store.root}/{path}', limit=1000)}` exists, and is not of `{reference}`",
        hint="name an empty folder: an export never overwrites",
    )


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _GuardedShard:
    """The function of an exporter for a shard, in a worker. Picklable."""

    plugin_id: PluginId
    function: Callable[[ShardToExport], ExportedShard]

    def __call__(self, task: ShardToExport) -> ExportedShard:
        exported = called(self.plugin_id, "begin", self.function, task)
        if not isinstance(exported, ExportedShard):
            raise wrong_answer(self.plugin_id, "begin", exported, "an ExportedShard")
        return exported


def exporter_class(kind: type[Any], plugin_id: PluginId) -> type[Exporter]:
    """The exporter class of a plugin."""
    if not issubclass(kind, Exporter):
        message = f"{plugin_id} cannot be used: its class does not inherit from `Exporter`"
        raise PluginError(message, hint=plugin_id.hint)
    return kind


class GuardedExporter:
    """An exporter of a dataset. See :class:`tfrecreg.core.plugins.exporters.Exporter`."""

    def __init__(
        self, kind: type[Exporter], plugin_id: PluginId, dataset: ExportedDataset, options: Any
    ) -> None:
        self._plugin_id = plugin_id
        self._inner = called(self._plugin_id, "__init__", kind, dataset, options)

    def expect(self) -> None:
        """Refuse what the format cannot express."""
        called(self._plugin_id, "expect", self._inner.expect)

    def file_names(self, shards: Sequence[tuple[str, int, int]]) -> list[str]:
        """The path of each shard's file, given its split, its number and the number of shards."""
        names: list[Any] = [
            called(self._plugin_id, "file_name", self._inner.file_name, *shard) for shard in shards
        ]
        for name in names:
            if not isinstance(name, str) or not name:
                raise wrong_answer(self._plugin_id, "file_name", name, "a path in the folder")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise wrong_answer(self._plugin_id, "file_name", twice, "another path for each shard")
        return names

    def begin(self) -> Callable[[ShardToExport], ExportedShard]:
        """What workers do with a shard."""
        return _GuardedShard(self._plugin_id, called(self._plugin_id, "begin", self._inner.begin))

    def verify(self, shards: Sequence[ExportedShard]) -> str | None:
        """The content digest of the written records; None if the shards were kept."""
        return called(self._plugin_id, "verify", self._inner.verify, shards)

    def finish(self, folder: Storage, shards: Sequence[ExportedShard]) -> tuple[str, ...]:
        """Write the files beside the shards; returns notes."""
        notes = called(self._plugin_id, "finish", lambda: tuple(self._inner.finish(folder, shards)))
        return tuple(note if note.isprintable() else safe(note, limit=1000) for note in notes)

    def how_to_read(self, folder: str) -> str:
        """The last line for the user."""
        said = called(self._plugin_id, "how_to_read", self._inner.how_to_read, folder)
        return said if said.isprintable() else safe(said, limit=1000)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExportResult(ShortRepr):
    """A folder that was made."""

    reference: str
    """Exported reference with its selector resolved: ``mnist@1.0.0``."""
    to: str
    """Name of the exporter."""
    folder: str
    """Absolute path, or URL."""
    dataset: str
    version: str
    """Version in the exported folder: ``0.0.0`` for a build."""
    splits: dict[str, int]
    """Split to records."""
    files: tuple[str, ...]
    """Paths in the folder, sorted."""
    bytes: int
    """Size of the exported shards in bytes."""
    shards: dict[ShardMethod, int]
    """Number of shards by method."""
    content: str | None
    """Content digest of the written records, equal to that of the manifest; None for
    formats that keep the shards."""
    where: str | None = None
    """The condition that the exported records meet; None for all records."""
    notes: tuple[str, ...]
    """Notes for the user, one line each."""
    how_to_read: str = field(repr=False)
    """What a reader opens, in one line."""


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
    """Write a build or a release into `folder` for another tool.

    ``tfds``: what `tfds.builder_from_directory` takes. ``index``: the shards, each with an index
    beside it, as NVIDIA DALI and the package `tfrecord` take them. ``croissant``: the shards
    as they are, and their description in Croissant's JSON-LD. ``files``: all files as they are,
    also to a URL. ``tfx``: the shards in gzip,
    statistics and schema, as components of TFX write them. ``arrayrecord``, ``parquet`` and
    ``webdataset``: the records in files of these formats. Plugins bring
    others.
    """
    known = plugins_of(registry.config)
    announced = _announced(known, to)
    resolved = resolve(registry, reference)
    kind = exporter_class(known.load(ExporterRecord, to), announced.plugin_id)
    url = os.fsdecode(folder)
    store = store_to_fill(url) if kind.keeps_files and is_url(url) else None
    path = store.root if store is not None else str(free_folder(folder, registry))
    given, _ = known.options(ExporterRecord, to, options)
    dataset = ExportedDataset(
        to=announced.name,
        resolved=resolved,
        engine=engine or LocalEngine(1),
        progress=progress,
        where=where,
    )
    if where is not None and not kind.takes_some_records:
        raise UsageError(
            f"`--to {announced.name}` exports whole shards, and `--where` chooses records",
            hint="`--to arrayrecord`, `jsonl`, `parquet` and `webdataset` export chosen records",
        )
    if kind.payloads == "examples":
        _expect_examples(dataset, kind.reader or announced.name)
    exporter = GuardedExporter(kind, announced.plugin_id, dataset, given)
    exporter.expect()
    if kind.takes_shards:
        resolved.storage()  # raises here, before anything is written, if the bytes are elsewhere
    if store is not None:
        manifest = dataset.manifest
        return ExportResult(
            reference=dataset.reference,
            to=announced.name,
            folder=path,
            dataset=resolved.dataset.name,
            version=dataset.version,
            splits=_records(dataset, None),
            files=tuple(send_files(dataset, store)),
            bytes=sum(each.bytes for each in manifest.shards),
            shards={"copied": len(manifest.shards)},
            content=None,
            notes=(),
            how_to_read=exporter.how_to_read(path),
        )
    with new_folder(Path(path)) as stage, _chosen(dataset, where) as chosen:
        shards = _export_shards(dataset, exporter, stage, chosen) if kind.takes_shards else []
        content = exporter.verify(shards)
        notes = exporter.finish(stage, shards)
        if kind.keeps_files:
            copy_beside(dataset, stage)
        files = list(stage.list())
        names = {each.name for each in shards}
        return ExportResult(
            reference=dataset.reference,
            to=announced.name,
            folder=path,
            dataset=resolved.dataset.name,
            version=dataset.version,
            splits=_records(dataset, None if chosen is None else shards),
            files=tuple(entry.path for entry in files if entry.kind != "dir"),
            bytes=sum(entry.size for entry in files if entry.path in names),
            shards=dict(Counter(each.how for each in shards)),
            content=content,
            where=where,
            notes=notes,
            how_to_read=exporter.how_to_read(path),
        )


@contextmanager
def _chosen(
    dataset: ExportedDataset, where: str | None
) -> Iterator[dict[str, npt.NDArray[np.int64]] | None]:
    """By path of a shard, the records for which a condition holds; None without one."""
    if where is None:
        yield None
        return
    target, engine, progress = find_target(dataset.resolved), dataset.engine, dataset.progress
    with chosen_records(target, where, engine=engine, progress=progress) as numbers:
        yield {shard.path: each for shard, each in zip(target.shards, numbers, strict=True)}


def _expect_chosen(
    dataset: ExportedDataset,
    done: ExportedShard,
    chosen: Mapping[str, npt.NDArray[np.int64]] | None,
) -> None:
    """Refuse the work of an exporter that did not heed the choice."""
    wanted = done.entry.records if chosen is None else len(chosen[done.entry.path])
    if done.entry.records != wanted:
        raise FailureError(
            f"the exporter `{dataset.to}` wrote {done.entry.records} records of "
            f"`{safe(done.entry.path)}`, and {wanted} were chosen",
            hint="export without `--where`, and report it to the author of the exporter",
        )


def _records(dataset: ExportedDataset, written: Sequence[ExportedShard] | None) -> dict[str, int]:
    """Records by split; of a selection, by those splits that have any of it."""
    splits = {split.name: split.records for split in dataset.manifest.splits}
    if written is None:
        return splits
    found = Counter({each.entry.split: 0 for each in written})
    for each in written:
        found[each.entry.split] += each.entry.records
    return {name: found[name] for name in splits if found[name]}


def _announced(known: Plugins, to: str) -> Announced[ExporterRecord]:
    try:
        return known.find(ExporterRecord, to)
    except UnknownPluginError as error:
        close = did_you_mean(to, known.names(ExporterRecord))
        message = f"no format `{safe(to)}` to export to{close}"
        raise UsageError(message, hint=error.hint) from None


def _expect_examples(dataset: ExportedDataset, reader: str) -> None:
    """Make sure that the records are Examples, with a schema."""
    kind = adopted_kind(dataset.manifest)
    if kind is not PayloadKind.EXAMPLE:
        raise UsageError(
            f"`{dataset.reference}` holds {kind.plural}, and {reader} reads Examples only",
            hint="its shards are plain TFRecord files: `tf.data.TFRecordDataset` reads them",
        )
    _ = dataset.schema


def _export_shards(
    dataset: ExportedDataset,
    exporter: GuardedExporter,
    stage: LocalStorage,
    chosen: Mapping[str, npt.NDArray[np.int64]] | None,
) -> list[ExportedShard]:
    manifest, progress = dataset.manifest, dataset.progress
    shards = list(numbered(manifest.shards))
    names = exporter.file_names([(shard.split, number, of) for shard, number, of in shards])
    tasks = (
        ShardToExport(
            reference=dataset.reference,
            storage=dataset.resolved.storage(),
            entry=shard,
            compression=manifest.compression,
            folder=stage,
            name=name,
            # A shard that is missing is refused when it is read.
            numbers=None if chosen is None else chosen.get(shard.path),
        )
        for (shard, _, _), name in zip(shards, names, strict=True)
    )
    done: list[ExportedShard] = []
    progress.start(f"exporting {dataset.reference}", sum(each.records for each in manifest.shards))
    try:
        # Closed before the stage is removed: no worker writes into it any more.
        with closing(dataset.engine.run(exporter.begin(), tasks)) as results:
            for each in results:
                _expect_chosen(dataset, each, chosen)
                done.append(each)
                progress.advance(each.entry.records, each.entry.bytes)
    finally:
        progress.stop()
    remove_leftovers(stage)
    return done
