"""Examples, statistics and schema in the folders of TFX's components.

The layout is that of TFX since 0.29: ExampleGen, StatisticsGen and SchemaGen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tfrecreg.engines.interface import Engine
from tfrecreg.operations.export.croissant import write_schema
from tfrecreg.operations.export.shards import (
    BroughtShard,
    ExportTask,
    bring_unchanged,
    read_back,
)
from tfrecreg.operations.export.source_records import verified_records
from tfrecreg.operations.stats import stats
from tfrecreg.progress import Progress
from tfrecreg.records.framing import frame
from tfrecreg.records.gzip_writer import GzipEncoder
from tfrecreg.registry.lookup import Resolved
from tfrecreg.schema.definition import Schema
from tfrecreg.shards import shard_name
from tfrecreg.statistics.tfdv import missing_tfdv
from tfrecreg.storage.interface import Storage
from tfrecreg.text import safe

_EXAMPLES, _STATISTICS, _SCHEMA = "examples", "statistics", "schema"


def require_statistics() -> None:
    """Make sure that statistics can be made.

    Raises:
        MissingExtraError: TFDV is not installed.
        FailureError: there is none for this Python or this platform.
    """
    missing = missing_tfdv()
    if missing is not None:
        raise missing


def tfx_name(dataset: str, split: str, number: int, of: int) -> str:
    """Path of a shard as ExampleGen writes it; arguments of :func:`tfrecreg.shards.shard_name`."""
    tail = shard_name(dataset, split, number, of).rpartition(".tfrecord-")[2]
    return f"{_split_folder(_EXAMPLES, split)}/data_tfrecord-{tail}.gz"


def bring_gzip(task: ExportTask) -> BroughtShard:
    """Put the shard into the stage in gzip, and compare its records with the manifest there.

    Raises:
        RefusedError: the shard is missing, damaged or another one.
        StorageError: the file system refused.
    """
    if task.compression == "gzip":
        return bring_unchanged(task)
    encoder = GzipEncoder()
    with task.stage.create(task.name) as writer:
        for record in verified_records(task):
            head, foot = frame(record.payload)
            writer.write(encoder.write(b"".join((head, record.payload, foot))))
        writer.write(encoder.end_member())
    read_back(task, "gzip")
    return BroughtShard(how="compressed", entry=task.entry, name=task.name)


def write_tfx(
    stage: Storage,
    resolved: Resolved,
    schema: Schema,
    brought: Sequence[BroughtShard],
    engine: Engine,
    progress: Progress,
) -> Iterator[str]:
    """Write statistics and schema beside the examples.

    Args:
        stage: the folder of the export.
        resolved: the build or release.
        schema: of its records.
        brought: the shards in the folder.
        engine: where to compute statistics.
        progress: updated during the work.

    Returns:
        Notes for the user, one line each.

    Raises:
        UsageError: there are no records.
        RefusedError: a feature has values of two types.
        StorageError: the file system refused.
    """
    found = stats(resolved, registry=resolved.registry, engine=engine, progress=progress)
    for each in found.splits:
        split = each.statistics.split
        with stage.create(f"{_split_folder(_STATISTICS, split)}/FeatureStats.pb") as writer:
            writer.write(each.statistics.proto.SerializeToString(deterministic=True))
    write_schema(stage, schema, f"{_SCHEMA}/schema.pbtxt")
    there = {each.entry.split for each in brought}
    return iter(
        f"the split `{safe(each.name)}` has no shards, and is left out: TFX reads no empty split"
        for each in resolved.manifest.splits
        if each.name not in there
    )


def _split_folder(artifact: str, split: str) -> str:
    return f"{artifact}/Split-{split}"
