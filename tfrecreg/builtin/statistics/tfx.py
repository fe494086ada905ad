"""Exports examples, statistics and schema to the folders that TFX's components use.

The layout follows ExampleGen, StatisticsGen and SchemaGen of TFX since 0.29.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tfrecreg.api import ExportedShard, Exporter, Folder, ShardToExport, export_gzip, safe
from tfrecreg.builtin.statistics.make import stats

_EXAMPLES, _STATISTICS, _SCHEMA = "examples", "statistics", "schema/schema.pbtxt"


class TfxExporter(Exporter):
    """Writes the files that ExampleGen, StatisticsGen and SchemaGen would write."""

    reader = "TFX"

    def file_name(self, split: str, number: int, of: int) -> str:
        return tfx_path(super().file_name(split, number, of), split)

    def begin(self) -> Callable[[ShardToExport], ExportedShard]:
        return export_gzip

    def finish(self, folder: Folder, shards: Sequence[ExportedShard]) -> Iterator[str]:
        dataset = self.dataset
        found = stats(
            dataset.resolved,
            registry=dataset.resolved.registry,
            engine=dataset.engine,
            progress=dataset.progress,
        )
        for each in found.splits:
            split = each.statistics.split
            with folder.create(f"{_split_folder(_STATISTICS, split)}/FeatureStats.pb") as writer:
                writer.write(each.statistics.proto.SerializeToString(deterministic=True))
        dataset.write_schema(folder, _SCHEMA)
        there = {each.entry.split for each in shards}
        for split_entry in dataset.manifest.splits:
            if split_entry.name not in there:
                yield (
                    f"the split `{safe(split_entry.name)}` has no shards and is left out: TFX "
                    "cannot read empty splits"
                )

    def how_to_read(self, folder: str) -> str:  # noqa: ARG002 - the same for all
        return "import `examples`, `statistics` and `schema`, each with an Importer"


def tfx_path(name: str, split: str) -> str:
    """Path of a shard as ExampleGen writes it: ``data_tfrecord-00000-of-00010.gz`` in a folder for
    each split.
    """
    tail = name.rpartition(".tfrecord-")[2]
    return f"{_split_folder(_EXAMPLES, split)}/data_tfrecord-{tail}.gz"


def _split_folder(artifact: str, split: str) -> str:
    return f"{artifact}/Split-{split}"
