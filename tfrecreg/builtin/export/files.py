"""Exports a build or release, either as unchanged files or as shards with one index each.

NVIDIA DALI (`readers.tfrecord`) and the package `tfrecord` on PyPI read these indexes. Neither can
seek in gzip, so the shards in the folder are plain.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tfrecreg.api import (
    ExportedShard,
    Exporter,
    Folder,
    RecordBatch,
    ShardToExport,
    UsageError,
    export_plain,
    listed,
)


class FilesExporter(Exporter):
    """Exports all files under their own names, with the manifest."""

    payloads = "any"
    keeps_files = True

    def file_name(self, split: str, number: int, of: int) -> str:
        """The path that the shard has in its build."""
        del of
        return [each.path for each in self.dataset.manifest.shards if each.split == split][number]

    def how_to_read(self, folder: str) -> str:
        """The command that verifies the copy."""
        return f"verify it with `tfrecreg check {folder}`"


SUFFIXES = (".idx", ".index", ".tfindex")
"""Suffixes that other tools use for these indexes. The format is always the same."""
_FRAME = 16
"""Number of bytes that a record has besides its payload."""
_LINES = 1 << 14
"""Number of lines per write."""


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """The options of the export."""

    suffix: str = ".idx"
    """Suffix of the indexes: .idx, .tfindex or .index."""


class IndexExporter(Exporter):
    """Exports plain shards, each with an index of its records beside it."""

    Options = IndexOptions
    payloads = "any"

    def expect(self) -> None:
        """Raise unless the suffix is one of :data:`SUFFIXES`."""
        suffix = self.options.suffix
        if suffix not in SUFFIXES:
            raise UsageError(
                f"indexes cannot have the suffix `{suffix}`", hint=f"available: {listed(SUFFIXES)}"
            )

    def begin(self) -> IndexedShards:
        """The task that exports a shard with its index."""
        return IndexedShards(self.options.suffix)

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
        return f"each shard has its index beside it, with the suffix {self.options.suffix}"


@dataclass(frozen=True, slots=True)
class IndexedShards:
    """The task that exports a shard and writes its index. Picklable."""

    suffix: str

    def __call__(self, task: ShardToExport) -> ExportedShard:
        """Copy or link the shard, verify it, then write its record offsets."""
        lengths = array("q")

        def see(batch: RecordBatch) -> None:
            lengths.extend(batch.lengths)

        exported = export_plain(task, see)
        with task.folder.create(task.name + self.suffix) as writer:
            for lines in render_sidecar(lengths):
                writer.write(lines)
        return exported


def render_sidecar(lengths: Iterable[int]) -> Iterator[bytes]:
    """The text of an index, in pieces of several lines."""
    at = 0
    lines: list[str] = []
    for length in lengths:
        size = int(length) + _FRAME
        lines.append(f"{at} {size}\n")
        at += size
        if len(lines) == _LINES:
            yield "".join(lines).encode("ascii")
            lines.clear()
    if lines:
        yield "".join(lines).encode("ascii")
