"""The operation: a reference, a format, and a new folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tfrecreg.engines.interface import Engine
from tfrecreg.engines.local import LocalEngine
from tfrecreg.errors import UsageError
from tfrecreg.example.kinds import PayloadKind
from tfrecreg.manifest.adopted import adopted_kind
from tfrecreg.manifest.model import Manifest, ShardEntry
from tfrecreg.operations.export.connectors import make_connectors, require_expressible
from tfrecreg.operations.export.converted.content import require_equal_content, write_description
from tfrecreg.operations.export.converted.convert import ShardConversion
from tfrecreg.operations.export.converted.formats import CONVERTED, make_format, require_library
from tfrecreg.operations.export.croissant import write_croissant, write_schema
from tfrecreg.operations.export.images import ImagesSeen
from tfrecreg.operations.export.index import IndexedShards, index_notes, require_suffix
from tfrecreg.operations.export.intoto import write_statement
from tfrecreg.operations.export.shards import (
    BroughtShard,
    ExportTask,
    ShardMethod,
    bring_shard,
    bring_unchanged,
    numbered,
)
from tfrecreg.operations.export.tfds import (
    BUILD_VERSION,
    dataset_info,
    require_shards_of_splits,
    require_split_names,
    write_files,
)
from tfrecreg.operations.export.tfx import (
    bring_gzip,
    require_statistics,
    tfx_name,
    write_tfx,
)
from tfrecreg.operations.leftovers import remove_leftovers
from tfrecreg.operations.origin import origin_of
from tfrecreg.progress import SILENT, Progress
from tfrecreg.registry.absence import absent_schema
from tfrecreg.registry.lookup import Build, Resolved, expect_copy, resolve
from tfrecreg.registry.output_folder import free_folder, new_folder
from tfrecreg.registry.registry import Registry
from tfrecreg.registry.schemas import built_schema
from tfrecreg.schema.definition import Schema
from tfrecreg.schema.proto import parse_schema
from tfrecreg.shards import shard_name
from tfrecreg.storage.local import LocalStorage
from tfrecreg.suggest import did_you_mean, listed
from tfrecreg.text import safe

EXPORT_FORMATS = (
    *("arrayrecord", "croissant", "index", "intoto"),
    *("parquet", "tfds", "tfx", "webdataset"),
)
"""Values of `--to`."""

_READERS = {"parquet": "Parquet", "webdataset": "WebDataset"}
"""Formats of Examples only, for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """A folder that was made."""

    reference: str
    """Exported reference with its selector resolved: ``mnist@1.0.0``."""
    to: str
    """Format of the export, one of :data:`EXPORT_FORMATS`."""
    folder: str
    """Absolute path."""
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
    """Content digest computed from what was written, equal to that of the manifest; None for
    formats that keep the shards."""
    notes: tuple[str, ...]
    """Notes for the user, one line each."""


def export(
    registry: Registry,
    reference: str,
    folder: str | os.PathLike[str],
    *,
    to: str = "tfds",
    suffix: str = ".idx",
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> ExportResult:
    """Make `folder` what another tool reads.

    ``tfds``: what `tfds.builder_from_directory` takes. ``index``: the shards, each with an index
    beside it, as NVIDIA DALI and the package `tfrecord` take them. ``croissant``: the shards
    as they are, and their description in Croissant's JSON-LD. ``tfx``: the shards in gzip,
    statistics and schema, as components of TFX write them. ``arrayrecord``, ``parquet`` and
    ``webdataset``: the records in files of these formats. ``intoto``: an in-toto statement, without
    the shards.

    Args:
        registry: where the dataset is.
        reference: ``mnist@1.0.0``, ``mnist@latest``, ``mnist`` for the build.
        folder: does not exist, or is empty. It appears when all is there.
        to: one of :data:`EXPORT_FORMATS`.
        suffix: of the indexes, with `to` ``index``: ``.idx``, ``.tfindex`` or ``.index``.
        engine: where to work.
        progress: who watches.

    Raises:
        UsageError: no such dataset, release or format; the folder is not free; the bytes are not
            on this machine; the schema or a record holds what the format cannot express.
        RefusedError: the bytes are not those that were registered.
        MissingExtraError: the format needs a library that is not installed.
        FailureError: records that were written and read again differ.
        StorageError: the file system refused.
    """
    if to not in EXPORT_FORMATS:
        raise UsageError(
            f"no format `{safe(to)}` to export to{did_you_mean(to, EXPORT_FORMATS)}",
            hint=f"available: {listed(EXPORT_FORMATS)}",
        )
    resolved = resolve(registry, reference)
    if to != "intoto":
        expect_copy(resolved, "an export")
    path = free_folder(folder, registry)
    engine = engine or LocalEngine(1)
    if to == "index":
        return _export_index(resolved, path, suffix, engine, progress)
    if to == "croissant":
        return _export_croissant(resolved, path, engine, progress)
    if to == "intoto":
        return _export_statement(resolved, path)
    if to == "tfx":
        return _export_tfx(resolved, path, engine, progress)
    if to in CONVERTED:
        return _export_converted(resolved, path, to, engine, progress)
    schema = _schema(resolved, "TFDS")
    require_expressible(schema)
    require_split_names(resolved.manifest)
    require_shards_of_splits(resolved.manifest, resolved.name)
    resolved.storage()  # refuses here, before anything is made, where the bytes are elsewhere
    with new_folder(path) as stage:
        brought = _bring_all(resolved, schema.images(), stage, engine, progress, bring_shard)
        return _describe(resolved, schema, stage, brought, str(path), to)


def _export_index(
    resolved: Resolved, path: Path, suffix: str, engine: Engine, progress: Progress
) -> ExportResult:
    require_suffix(suffix)
    resolved.storage()
    manifest = resolved.manifest
    with new_folder(path) as stage:
        brought = _bring_all(resolved, (), stage, engine, progress, IndexedShards(suffix))
        notes = tuple(index_notes(manifest))
        return _result(resolved, stage, brought, str(path), "index", _version(resolved), notes)


def _export_croissant(
    resolved: Resolved, path: Path, engine: Engine, progress: Progress
) -> ExportResult:
    schema = _schema(resolved, "Croissant")
    resolved.storage()
    manifest = resolved.manifest
    with new_folder(path) as stage:
        brought = _bring_all(resolved, (), stage, engine, progress, bring_unchanged)
        notes = write_croissant(stage, manifest, resolved.dataset.config, schema, brought)
        version = _version(resolved)
        return _result(resolved, stage, brought, str(path), "croissant", version, tuple(notes))


def _export_statement(resolved: Resolved, path: Path) -> ExportResult:
    with new_folder(path) as stage:
        write_statement(stage, origin_of(resolved))
        notes = ("it repeats the digests of the manifest: `tfrecreg check` verifies the bytes",)
        return _result(resolved, stage, [], str(path), "intoto", _version(resolved), notes)


def _export_tfx(resolved: Resolved, path: Path, engine: Engine, progress: Progress) -> ExportResult:
    require_statistics()
    schema = _schema(resolved, "TFX")
    resolved.storage()
    with new_folder(path) as stage:
        brought = _bring_all(resolved, (), stage, engine, progress, bring_gzip, tfx_name)
        notes = write_tfx(stage, resolved, schema, brought, engine, progress)
        return _result(resolved, stage, brought, str(path), "tfx", _version(resolved), tuple(notes))


def _export_converted(
    resolved: Resolved, path: Path, to: str, engine: Engine, progress: Progress
) -> ExportResult:
    require_library(to)
    any_payload = to == "arrayrecord"
    schema = _any_schema(resolved) if any_payload else _schema(resolved, _READERS[to])
    resolved.storage()
    manifest = resolved.manifest
    made = make_format(to, resolved.name, manifest, schema)
    with new_folder(path) as stage:
        convert = ShardConversion(made)
        brought = _bring_all(resolved, (), stage, engine, progress, convert, made.file_name)
        content = require_equal_content(manifest, resolved.name, brought)
        version = _version(resolved)
        write_description(stage, to, resolved.name, version, manifest, brought)
        if schema is not None:
            write_schema(stage, schema)
        notes = tuple(made.notes(sum(each.beside for each in brought)))
        return _result(resolved, stage, brought, str(path), to, version, notes, content)


def _version(resolved: Resolved) -> str:
    release = resolved.manifest.release
    return release.version if release is not None else BUILD_VERSION


def _any_schema(resolved: Resolved) -> Schema | None:
    """The schema, if there is one."""
    text = resolved.schema
    if text is not None and isinstance(resolved, Build):
        text = built_schema(resolved)
    return None if text is None else parse_schema(text, resolved.schema_path)


def _schema(resolved: Resolved, reader: str) -> Schema:
    name = resolved.name
    kind = adopted_kind(resolved.manifest)
    if kind is not PayloadKind.EXAMPLE:
        raise UsageError(
            f"`{name}` holds {kind.plural}, and {reader} reads Examples only",
            hint="its shards are plain TFRecord files: `tf.data.TFRecordDataset` reads them",
        )
    schema = _any_schema(resolved)
    if schema is None:
        raise absent_schema(resolved.dataset)
    return schema


def _bring_all(
    resolved: Resolved,
    images: tuple[str, ...],
    stage: LocalStorage,
    engine: Engine,
    progress: Progress,
    bring: Callable[[ExportTask], BroughtShard],
    name_of: Callable[[str, str, int, int], str] = shard_name,
) -> list[BroughtShard]:
    manifest = resolved.manifest
    tasks = (
        ExportTask(
            reference=resolved.name,
            bytes=resolved.storage(),
            entry=shard,
            compression=manifest.compression,
            stage=stage,
            name=name_of(manifest.dataset, shard.split, number, of),
            images=images,
        )
        for shard, number, of in numbered(manifest.shards)
    )
    brought = engine.map(
        bring,
        tasks,
        cost=lambda task, _: (task.entry.records, task.entry.bytes),
        label=f"exporting {resolved.name}",
        total=sum(each.records for each in manifest.shards),
        progress=progress,
    )
    remove_leftovers(stage)
    return brought


def _describe(
    resolved: Resolved,
    schema: Schema,
    stage: LocalStorage,
    brought: list[BroughtShard],
    folder: str,
    to: str,
) -> ExportResult:
    """Write what stands beside the shards."""
    manifest = resolved.manifest
    config = resolved.dataset.config
    connectors = make_connectors(schema, manifest.labels, _images(schema, brought))
    shards: dict[str, list[ShardEntry]] = {split.name: [] for split in manifest.splits}
    for each in brought:
        shards[each.entry.split].append(each.entry)
    info = dataset_info(manifest, config, connectors.supervised, shards)
    metadata = {
        "tfrecreg": {
            "reference": resolved.name,
            "content": manifest.content,
            "manifest": manifest.digest,
            "owner": config.owner,
        }
    }
    write_files(stage, connectors, info, metadata, config.license)
    notes = (*_notes(manifest), *connectors.notes)
    return _result(resolved, stage, brought, folder, to, info["version"], notes)


def _result(
    resolved: Resolved,
    stage: LocalStorage,
    brought: list[BroughtShard],
    folder: str,
    to: str,
    version: str,
    notes: tuple[str, ...],
    content: str | None = None,
) -> ExportResult:
    files = list(stage.list())
    shards = {each.name for each in brought}
    ways: dict[ShardMethod, int] = {}
    for each in brought:
        ways[each.how] = ways.get(each.how, 0) + 1
    return ExportResult(
        reference=resolved.name,
        to=to,
        folder=folder,
        dataset=resolved.dataset.name,
        version=version,
        splits={split.name: split.records for split in resolved.manifest.splits},
        files=tuple(entry.path for entry in files if entry.kind != "dir"),
        bytes=sum(entry.size for entry in files if entry.path in shards),
        shards=ways,
        content=content,
        notes=notes,
    )


def _images(schema: Schema, brought: list[BroughtShard]) -> Mapping[str, ImagesSeen]:
    seen = {name: ImagesSeen() for name in schema.images()}
    for each in brought:
        for name, images in each.images.items():
            seen[name].merge(images)
    return seen


def _notes(manifest: Manifest) -> list[str]:
    notes = []
    if manifest.release is None:
        notes.append(f"a build has no number: it is exported as version {BUILD_VERSION}")
    if manifest.compression == "gzip":
        notes.append(
            "TFDS does not read gzip: the shards were decompressed, with identical records"
        )
    return notes
