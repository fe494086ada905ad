"""Bringing one shard to the folder of an export, in a worker, verified on the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from tfrecreg.errors import RefusedError
from tfrecreg.example.model import Kind
from tfrecreg.manifest.model import ShardEntry
from tfrecreg.operations.export.images import ImagesSeen
from tfrecreg.records.batch import Fault, RecordBatch
from tfrecreg.records.framing import OVERHEAD
from tfrecreg.records.hashing import hash_file
from tfrecreg.records.reader import open_stream, scan
from tfrecreg.storage.interface import Readable, Storage
from tfrecreg.storage.local import LocalStorage
from tfrecreg.text import safe

ShardMethod = Literal["linked", "copied", "decompressed", "compressed", "converted"]
"""The way of a shard into the folder."""

_CHUNK = 1 << 20

_EVERYWHERE = LocalStorage("/")
# Shards may be links to DVC's cache, which a storage with another root says nothing about.


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportTask:
    """Arguments for a worker to export one shard. Picklable."""

    reference: str
    """For messages: ``mnist@1.0.0``."""
    bytes: Readable
    """Rooted at the folder of the build or release."""
    entry: ShardEntry
    compression: Literal["none", "gzip"]
    stage: Storage
    """Rooted at the folder of the export in the making."""
    name: str
    """Name of the shard's file in the exported folder."""
    images: tuple[str, ...]
    """Features whose values are encoded images."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BroughtShard:
    """What became of it."""

    how: ShardMethod
    entry: ShardEntry
    name: str
    """Name of the shard's file in the exported folder."""
    images: dict[str, ImagesSeen] = field(default_factory=dict)
    """Images seen, by feature."""
    digests: bytes = b""
    """Record digests computed from what was written, concatenated in order; empty for shards that
    keep their stream."""
    beside: int = 0
    """Records that the format holds only in part in its own types."""


def expect_file(task: ExportTask) -> None:
    """Make sure that the shard is there.

    Raises:
        RefusedError: it is missing.
        StorageError: the file system refused.
    """
    found = _EVERYWHERE.stat(_source(task))
    if found is None or found.kind != "file":
        raise refused(task, "it is missing")


def bring_shard(task: ExportTask) -> BroughtShard:
    """Put the shard's records into the stage, as a TFRecord file without compression.

    A plain shard becomes a hard link, or a copy where that is impossible. Then it is read back
    there: a shard that differs is not exported.

    Raises:
        RefusedError: the shard is missing, damaged or another one.
        StorageError: the file system refused.
    """
    expect_file(task)
    how = _decompress(task) if task.compression == "gzip" else _link(task)
    return BroughtShard(how=how, entry=task.entry, name=task.name, images=read_back(task))


def bring_unchanged(task: ExportTask) -> BroughtShard:
    """Put the shard's file into the stage as it is, gzip or plain, and compare its digest there.

    Raises:
        RefusedError: the shard is missing, damaged or another one.
        StorageError: the file system refused.
    """
    expect_file(task)
    how = _link(task)
    size, digest = hash_file(task.stage, task.name)
    if digest != task.entry.blake3:
        expected = f"{task.entry.bytes} bytes, blake3 {task.entry.blake3[:16]}…"
        raise refused(task, f"expected {expected}, found {size} bytes, blake3 {digest[:16]}…")
    return BroughtShard(how=how, entry=task.entry, name=task.name)


def _link(task: ExportTask) -> Literal["linked", "copied"]:
    task.stage.link(task.entry.path, task.name, origin=task.bytes)
    target = f"{task.stage.root}/{task.name}".lstrip("/")
    return "linked" if _inode(_source(task)) == _inode(target) else "copied"


def _source(task: ExportTask) -> str:
    return f"{task.bytes.root}/{task.entry.path}".lstrip("/")


def _inode(path: str) -> tuple[int, int]:
    """What two names of one file have in common; the time, as inodes of two disks may be equal."""
    entry = _EVERYWHERE.stat(path)
    return (entry.inode, entry.mtime_ns) if entry is not None else (0, 0)


def _decompress(task: ExportTask) -> Literal["decompressed"]:
    # No more than there should be: a stream that goes on is another one, and may go on for long.
    end = task.entry.payload_bytes + task.entry.records * OVERHEAD
    with task.bytes.open(task.entry.path) as reader, task.stage.create(task.name) as writer:
        stream, _ = open_stream(reader, digest=False, declared="gzip")
        position = 0
        while position <= end and (data := stream.window(position, _CHUNK)):
            writer.write(data)
            position += len(data)
    return "decompressed"


def read_back(
    task: ExportTask, compression: Literal["none", "gzip"] = "none"
) -> dict[str, ImagesSeen]:
    """Read the file in the stage, and compare its records with the manifest.

    Args:
        task: what was exported.
        compression: of the file in the stage.

    Returns:
        The images seen, by feature.

    Raises:
        RefusedError: it is damaged, or its records differ.
        StorageError: the file system refused.
    """
    seen = {name: ImagesSeen() for name in task.images}
    for event in scan(task.stage, task.name, declared=compression, digest=True):
        if isinstance(event, Fault):
            raise refused(task, f"{event.code} at byte {event.offset}: {event.detail}")
        if isinstance(event, RecordBatch):
            _see(task, event, seen)
        elif event.stream_blake3 != task.entry.stream_blake3:
            raise refused(
                task,
                f"its records should have the digest {task.entry.stream_blake3[:16]}…, "
                f"found {(event.stream_blake3 or '')[:16]}…",
            )
    return seen


def _see(task: ExportTask, batch: RecordBatch, seen: dict[str, ImagesSeen]) -> None:
    if not seen:
        return
    for number, example in enumerate(batch.examples, batch.first):
        where = f"record {number} of `{safe(task.entry.path)}`"
        for name, images in seen.items():
            if example is None:
                images.add_strange(where)
            elif (feature := example.get(name)) is not None and feature.kind is Kind.BYTES:
                for value in feature.values:
                    images.add(value, where)


def refused(task: ExportTask, why: str) -> RefusedError:
    """The error for a shard that is not exported, with the reason."""
    return RefusedError(
        f"`{safe(task.entry.path)}` is not what `{task.reference}` has registered: {why}",
        hint=f"tfrecreg check {task.reference}",
    )


def numbered(shards: list[ShardEntry]) -> Iterator[tuple[ShardEntry, int, int]]:
    """Each shard with its number in its split and how many the split has."""
    totals: dict[str, int] = {}
    for shard in shards:
        totals[shard.split] = totals.get(shard.split, 0) + 1
    done: dict[str, int] = {}
    for shard in shards:
        number = done.get(shard.split, 0)
        done[shard.split] = number + 1
        yield shard, number, totals[shard.split]
