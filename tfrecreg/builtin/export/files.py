"""Exports a build or release, either as unchanged files or as shards with one index each.

NVIDIA DALI (`readers.tfrecord`) and the package `tfrecord` on PyPI read these indexes. Neither can
seek in gzip, so the shards in the folder are plain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from tfrecreg.api import (
    ExportedShard,
    Exporter,
    Folder,
    RecordBatch,
    ShardToExport,
    export_plain,
)


class FilesExporter(Exporter):
    """Exports all files under their own names, with the manifest."""

    payloads = "any"
    keeps_files = True

    def how_to_read(self, folder: str) -> str:
        """The command that verifies the copy."""
        return f"verify it with `tfrecreg check {folder}`"


_FRAME = 16
"""Number of bytes of a record in addition to its payload."""


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """The options of the export."""

    suffix: Literal[".idx", ".tfindex", ".index"] = ".idx"
    """Suffix of the indexes. Their format is always the same."""


class IndexExporter(Exporter):
    """Exports plain shards, each with a file that holds the index of its records."""

    Options = IndexOptions
    payloads = "any"

    def begin(self) -> Callable[[ShardToExport], ExportedShard]:
        """The task that exports a shard with its index."""
        return partial(export_indexed, suffix=self.options.suffix)

    def finish(
        self,
        folder: Folder,  # noqa: ARG002 - nothing but shards and indexes
        shards: Sequence[ExportedShard],  # noqa: ARG002
    ) -> Iterator[str]:
        """A note for the user if shards were decompressed."""
        if self.dataset.manifest.compression == "gzip":
            yield (
                "readers with an index cannot seek in gzip, so the shards were decompressed: the "
                "records are unchanged"
            )

    def how_to_read(self, folder: str) -> str:  # noqa: ARG002 - readers take files
        """Where the indexes are."""
        return f"the index of each shard is in a file with its name and {self.options.suffix}"


def export_indexed(task: ShardToExport, *, suffix: str) -> ExportedShard:
    """Copy or link the shard, and write its record offsets while it is verified."""
    with task.folder.create(task.name + suffix) as writer:

        def see(batch: RecordBatch) -> None:
            writer.write(render_sidecar(batch.offsets, batch.lengths))

        return export_plain(task, see)


def render_sidecar(offsets: Iterable[int], lengths: Iterable[int]) -> bytes:
    """The lines of an index for these records."""
    lines = (f"{at} {length + _FRAME}\n" for at, length in zip(offsets, lengths, strict=True))
    return "".join(lines).encode("ascii")
