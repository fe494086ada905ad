"""Writing one shard to the folder of an export, in a worker, with verification."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tfrecreg.core.records.batch import Fault, RecordBatch
from tfrecreg.core.records.framing import OVERHEAD
from tfrecreg.core.records.hashing import hash_file
from tfrecreg.core.records.reader import open_stream, scan
from tfrecreg.core.registry.manifest.model import ShardEntry
from tfrecreg.core.storage.interface import Readable, Storage
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import RefusedError
from tfrecreg.core.values.text import safe

ShardMethod = Literal["linked", "copied", "decompressed", "compressed", "converted"]
"""The way of a shard into the folder."""

_CHUNK = 1 << 20

_EVERYWHERE = LocalStorage("/")
# Shards may be links to DVC's cache, which a storage with another root says nothing about.


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardToExport:
    """One shard, for a worker to export. Picklable."""

    reference: str
    """For messages: ``mnist@1.0.0``."""
    storage: Readable
    """Rooted at the folder of the build or release."""
    entry: ShardEntry
    compression: Literal["none", "gzip"]
    folder: Storage
    """Rooted at the unfinished folder of the export."""
    name: str
    """Path of the shard's file in the exported folder."""
    numbers: npt.NDArray[np.int64] | None = field(default=None, compare=False)
    """The records to write, ascending; None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedShard:
    """An exported shard. Picklable."""

    how: ShardMethod
    entry: ShardEntry
    """The manifest's, with the number of records that were written."""
    name: str
    """Path of the shard's file in the exported folder."""
    digests: bytes = b""
    """Record digests computed from the written file, concatenated in order; empty for shards that
    keep their stream."""
    seen: Any = None
    """The exporter's own result for the shard; small."""


def expect_file(task: ShardToExport) -> None:
    """Make sure that the shard is there."""
    found = _EVERYWHERE.stat(_source(task))
    if found is None or found.kind != "file":
        raise refused(task, "it is missing")


def export_plain(
    task: ShardToExport, see: Callable[[RecordBatch], object] | None = None, seen: Any = None
) -> ExportedShard:
    """Put the shard's records into the folder, as a TFRecord file without compression.

    A plain shard becomes a hard link, or a copy where that is impossible. Then it is read back
    there: a shard that differs is not exported.

    Args:
        task: the shard.
        see: gets the records while they are read back.
        seen: the value of `seen` in the result.

    Raises:
        RefusedError: the shard is missing, damaged or another one.
    """
    expect_file(task)
    how = _decompress(task) if task.compression == "gzip" else _link(task)
    read_back(task, see=see)
    return ExportedShard(how=how, entry=task.entry, name=task.name, seen=seen)


def export_unchanged(task: ShardToExport) -> ExportedShard:
    """Put the shard's file into the folder as it is, gzip or plain, and compare its digest there.

    Raises:
        RefusedError: the shard is missing, damaged or another one.
    """
    expect_file(task)
    how = _link(task)
    size, digest = hash_file(task.folder, task.name)
    if digest != task.entry.blake3:
        expected = f"{task.entry.bytes} bytes, blake3 {task.entry.blake3[:16]}…"
        raise refused(task, f"expected {expected}, found {size} bytes, blake3 {digest[:16]}…")
    return ExportedShard(how=how, entry=task.entry, name=task.name)


def _link(task: ShardToExport) -> Literal["linked", "copied"]:
    task.folder.link(task.entry.path, task.name, origin=task.storage)
    target = f"{task.folder.root}/{task.name}".lstrip("/")
    return "linked" if _inode(_source(task)) == _inode(target) else "copied"


def _source(task: ShardToExport) -> str:
    return f"{task.storage.root}/{task.entry.path}".lstrip("/")


def _inode(path: str) -> tuple[int, int]:
    """The identity of a file; with the time, because inodes of two disks may be equal."""
    entry = _EVERYWHERE.stat(path)
    return (entry.inode, entry.mtime_ns) if entry is not None else (0, 0)


def _decompress(task: ShardToExport) -> Literal["decompressed"]:
    # No more than the expected size: a longer stream is another one, and may be endless.
    end = task.entry.payload_bytes + task.entry.records * OVERHEAD
    with task.storage.open(task.entry.path) as reader, task.folder.create(task.name) as writer:
        stream, _ = open_stream(reader, digest=False, declared="gzip")
        position = 0
        while position <= end and (data := stream.window(position, _CHUNK)):
            writer.write(data)
            position += len(data)
    return "decompressed"


def read_back(
    task: ShardToExport,
    compression: Literal["none", "gzip"] = "none",
    see: Callable[[RecordBatch], object] | None = None,
) -> None:
    """Read the file in the folder, and compare its records with the manifest."""
    for event in scan(task.folder, task.name, declared=compression, digest=True):
        if isinstance(event, Fault):
            raise refused(task, f"{event.code} at byte {event.offset}: {event.detail}")
        if isinstance(event, RecordBatch):
            if see is not None:
                see(event)
        elif event.stream_blake3 != task.entry.stream_blake3:
            raise refused(
                task,
                f"its records should have the digest {task.entry.stream_blake3[:16]}…, "
                f"found {(event.stream_blake3 or '')[:16]}…",
            )


def refused(task: ShardToExport, why: str) -> RefusedError:
    """The error for a shard that is not exported, with the reason."""
    return RefusedError(
        f"`{safe(task.entry.path)}` is not what `{task.reference}` has registered: {why}",
        hint=f"tfrecreg check {task.reference}",
    )


def numbered(shards: Sequence[ShardEntry]) -> Iterator[tuple[ShardEntry, int, int]]:
    """Each shard with its number in its split and how many the split has."""
    totals: dict[str, int] = {}
    for shard in shards:
        totals[shard.split] = totals.get(shard.split, 0) + 1
    done: dict[str, int] = {}
    for shard in shards:
        number = done.get(shard.split, 0)
        done[shard.split] = number + 1
        yield shard, number, totals[shard.split]
