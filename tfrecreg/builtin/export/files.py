"""The files of a build or release as they are, and shards with an index beside each.

NVIDIA DALI (`readers.tfrecord`) and the package `tfrecord` on PyPI take them. Neither can jump in
gzip, so the shards in the folder are plain.
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
    safe,
)


class FilesExporter(Exporter):
    """All files under their own names, with the manifest."""

    payloads = "any"
    keeps_files = True

    def file_name(self, split: str, number: int, of: int) -> str:
        """The path of the shard in its build."""
        del of
        return [each.path for each in self.dataset.manifest.shards if each.split == split][number]

    def how_to_read(self, folder: str) -> str:
        """The command that verifies it."""
        return f"verify it with `tfrecreg check {folder}`"


SUFFIXES = (".idx", ".index", ".tfindex")
"""Suffixes that other tools use for such files, all in the same format."""
_FRAME = 16
"""Bytes that a record takes beside its payload."""
_LINES = 1 << 14
"""Number of lines per write."""


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
                f"no index has the suffix `{safe(suffix)}`", hint=f"available: {listed(SUFFIXES)}"
            )

    def begin(self) -> IndexedShards:
        """Shards with their indexes."""
        return IndexedShards(self.options.suffix)

    def finish(
        self,
        folder: Folder,  # noqa: ARG002 - nothing but shards and indexes
        shards: Sequence[ExportedShard],
    ) -> Iterator[str]:
        """A note on the folder for the user."""
        if self.dataset.manifest.compression == "gzip":
            yield (
                "readers with an index cannot seek in gzip: the shards were decompressed, each "
                "record unchanged"
            )
        small = sum(1 for shard in shards if shard.entry.records < 2)
        if small:
            yield (
                f"{small} of {len(shards)} shards have fewer than two records: the package "
                "`tfrecord` fails on so short an index, DALI does not"
            )

    def how_to_read(self, folder: str) -> str:  # noqa: ARG002 - readers take files
        """The place of the indexes."""
        return f"each shard has its index beside it, with the suffix {self.options.suffix}"


@dataclass(frozen=True, slots=True)
class IndexedShards:
    """The task of bringing a shard and writing its index. Picklable."""

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
    """The lines of an index, in pieces."""
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
