"""Shards with an index beside each, for readers that jump to records or share a file out.

NVIDIA DALI (`readers.tfrecord`) and the package `tfrecord` on PyPI take them. Neither can jump in
gzip, so the shards in the folder are plain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tfrecreg.api import (
    ExportedShard,
    Exporter,
    Folder,
    ShardToExport,
    UsageError,
    export_plain,
    listed,
    safe,
)
from tfrecreg.records.access import Records
from tfrecreg.records.offsets import render_sidecar

SUFFIXES = (".idx", ".index", ".tfindex")
"""Suffixes that other tools use for such files, all in the same format."""


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """The options of the export."""

    suffix: str = ".idx"
    """Suffix of the indexes: .idx, .tfindex or .index."""


class IndexExporter(Exporter):
    """Plain shards, each with an index of its records beside it."""

    Options = IndexOptions
    payloads = "any"

    def expect(self) -> None:
        """The suffix is one of :data:`SUFFIXES`."""
        suffix = self.options.suffix
        if suffix not in SUFFIXES:
            raise UsageError(
                f"an index is not called `{safe(suffix)}`", hint=f"available: {listed(SUFFIXES)}"
            )

    def begin(self) -> IndexedShards:
        """Shards with their indexes."""
        return IndexedShards(self.options.suffix)

    def finish(
        self,
        folder: Folder,  # noqa: ARG002 - nothing but shards and indexes
        shards: Sequence[ExportedShard],
    ) -> Iterator[str]:
        """What a person should know of the folder."""
        if self.dataset.manifest.compression == "gzip":
            yield (
                "readers with an index cannot seek in gzip: the shards were decompressed, each "
                "record the same to the byte"
            )
        small = sum(1 for shard in shards if shard.entry.records < 2)
        if small:
            yield (
                f"{small} of {len(shards)} shards have fewer than two records: the package "
                "`tfrecord` fails on so short an index, DALI does not"
            )

    def how_to_read(self, folder: str) -> str:  # noqa: ARG002 - readers take files
        """Where the indexes are."""
        return f"each shard has its index beside it, with the suffix {self.options.suffix}"


@dataclass(frozen=True, slots=True)
class IndexedShards:
    """The task of bringing a shard and writing its index. Picklable."""

    suffix: str

    def __call__(self, task: ShardToExport) -> ExportedShard:
        """Copy or link the shard, verify it, then write its record offsets.

        Raises:
            RefusedError: the shard is missing, damaged or another one.
        """
        exported = export_plain(task)
        with (
            Records(task.name, storage=task.folder) as records,
            task.folder.create(task.name + self.suffix) as writer,
        ):
            for lines in render_sidecar(records.lengths):
                writer.write(lines)
        return exported
