"""Shards with an index beside each, for readers that jump to records or share a file out.

NVIDIA DALI (`readers.tfrecord`) and the package `tfrecord` on PyPI take them. Neither can jump in
gzip, so the shards in the folder are plain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tfrecreg.errors import UsageError
from tfrecreg.manifest.model import Manifest
from tfrecreg.operations.export.shards import BroughtShard, ExportTask, bring_shard
from tfrecreg.records.access import Records
from tfrecreg.records.offsets import render_sidecar
from tfrecreg.suggest import listed
from tfrecreg.text import safe

SUFFIXES = (".idx", ".index", ".tfindex")
"""Suffixes that other tools use for such files, all in the same format."""


@dataclass(frozen=True, slots=True)
class IndexedShards:
    """The task of bringing a shard and writing its index. Picklable."""

    suffix: str

    def __call__(self, task: ExportTask) -> BroughtShard:
        """Copy or link the shard, verify it, then write its record offsets.

        Raises:
            RefusedError: the shard is missing, damaged or another one.
            StorageError: the file system refused.
        """
        brought = bring_shard(task)
        with (
            Records(task.name, storage=task.stage) as records,
            task.stage.create(task.name + self.suffix) as writer,
        ):
            for lines in render_sidecar(records.lengths):
                writer.write(lines)
        return brought


def require_suffix(suffix: str) -> None:
    """Make sure that it is one of :data:`SUFFIXES`.

    Raises:
        UsageError: it is none.
    """
    if suffix not in SUFFIXES:
        raise UsageError(
            f"an index is not called `{safe(suffix)}`",
            hint=f"available: {listed(SUFFIXES)}",
        )


def index_notes(manifest: Manifest) -> Iterable[str]:
    """What a person should know of the folder."""
    if manifest.compression == "gzip":
        yield (
            "readers with an index cannot seek in gzip: the shards were decompressed, each record "
            "the same to the byte"
        )
    small = sum(1 for shard in manifest.shards if shard.records < 2)
    if small:
        yield (
            f"{small} of {len(manifest.shards)} shards have fewer than two records: the package "
            "`tfrecord` fails on so short an index, DALI does not"
        )
