"""The base class of exporters, and how one shard is written and verified in a worker.

The core finds the dataset, makes a hidden folder, puts every shard there in worker processes, and
renames the folder when it is complete. An exporter names the files, converts the shards, and writes
the files beside them. One that writes the records to files of another format is a
:class:`tfrecreg.core.plugins.convert.RecordExporter`.

The records of a registered shard, verified while they are read, and decoded ones with keys.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tfrecreg.core.check.infer import LargeRecords
from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.example.decode import decode_fast, decode_fully
from tfrecreg.core.example.model import Example, NotAnExampleError
from tfrecreg.core.records.batch import Fault, RecordBatch
from tfrecreg.core.records.framing import OVERHEAD, frame
from tfrecreg.core.records.gzip_writer import GzipEncoder
from tfrecreg.core.records.hashing import hash_file
from tfrecreg.core.records.index import Index, load_index
from tfrecreg.core.records.reader import open_stream, scan
from tfrecreg.core.registry.lookup import Build, Resolved, expect_schema
from tfrecreg.core.registry.manifest import Manifest, ShardEntry
from tfrecreg.core.registry.schemas import built_schema
from tfrecreg.core.schema.definition import Schema
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.interface import Readable, Storage
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.config import DatasetConfig
from tfrecreg.core.values.errors import (
    FailureError,
    ManifestError,
    MissingFileError,
    RefusedError,
    UsageError,
)
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.shards import shard_name
from tfrecreg.core.values.text import ExtensionPoint, safe
from tfrecreg.core.values.typed_values import NoOptions
from tfrecreg.core.workers.interface import Engine

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


BUILD_VERSION = "0.0.0"
"""The version of an exported build: some tools require one, and a build has none."""
SCHEMA_FILE = "schema.pbtxt"


@dataclass(frozen=True)
class ExportedDataset:
    """The build or release that is exported."""

    to: str
    """Name of the exporter, as ``--to`` names it."""
    resolved: Resolved
    engine: Engine
    """Where to work."""
    progress: Progress
    where: str | None = None
    """The condition for records to be exported; None for all."""

    @property
    def reference(self) -> str:
        """With its selector resolved: ``mnist@1.0.0``."""
        return self.resolved.name

    @property
    def manifest(self) -> Manifest:
        """Of the build or release."""
        return self.resolved.manifest

    @property
    def config(self) -> DatasetConfig:
        """Owner, license, description and citation, from ``datasets/NAME.toml``."""
        return self.resolved.dataset.config

    @property
    def version(self) -> str:
        """``0.0.0`` for a build."""
        release = self.manifest.release
        return release.version if release is not None else BUILD_VERSION

    @property
    def has_schema(self) -> bool:
        """Whether there is a schema."""
        return self.resolved.schema is not None

    @cached_property
    def schema(self) -> Schema:
        """The schema of the records.

        Raises:
            UsageError: there is no schema, or it changed since the build.
        """
        resolved = self.resolved
        text = (built_schema if isinstance(resolved, Build) else expect_schema)(resolved)
        return parse_schema(text, resolved.schema_path)

    def write_schema(self, folder: Storage, path: str = SCHEMA_FILE) -> None:
        """Write the schema's own text into the folder of the export.

        Raises:
            UsageError: as :attr:`schema`.
        """
        with folder.create(path) as writer:
            writer.write(self.schema.text.encode("utf-8", "surrogateescape"))


class Exporter(ExtensionPoint, ABC):
    """One export of one dataset, in the parent process. All methods are optional.

    By default an export has the shards as they are, under their own names.
    """

    Options: ClassVar[type[Any]] = NoOptions
    """A frozen dataclass of its options."""
    reader: ClassVar[str] = ""
    """The tool or the format, for messages: ``TFDS``."""
    payloads: ClassVar[Literal["examples", "any"]] = "examples"
    """The payloads that it takes. With ``examples`` the dataset also has a schema."""
    takes_shards: ClassVar[bool] = True
    """Whether the folder has files of the shards. Otherwise their bytes need not be here."""
    keeps_files: ClassVar[bool] = False
    """Whether the folder has the files of the build or release, and no others: the core copies
    them, to a folder or to a URL, and the manifest last."""
    takes_some_records: ClassVar[bool] = False
    """Whether it exports those records that a condition chooses, not only whole shards."""

    def __init__(self, dataset: ExportedDataset, options: Any) -> None:
        """Keep both.

        Args:
            dataset: to export.
            options: an object of :attr:`Options`.
        """
        self.dataset = dataset
        self.options = options

    def expect(self) -> None:
        """Refuse what the format cannot express, before anything is made.

        Raises:
            UsageError: the schema, a name or an option is one that the format does not have.
        """

    def file_name(self, split: str, number: int, of: int) -> str:
        """Path of a shard's file in the folder. By default the name of the shard.

        Args:
            number: of the shard in its split, from 0.
        """
        return shard_name(self.dataset.manifest.dataset, split, number, of)

    def begin(self) -> Callable[[ShardToExport], ExportedShard]:
        """A picklable function that puts one shard into the folder, in a worker.

        By default it links or copies the shard, and verifies it.
        """
        return export_unchanged

    def verify(self, shards: Sequence[ExportedShard]) -> str | None:  # noqa: ARG002 - a default
        """The content digest of the written records; None if the shards were kept.

        Raises:
            FailureError: it is not that of the dataset.
        """
        return None

    def finish(
        self,
        folder: Storage,  # noqa: ARG002 - a default
        shards: Sequence[ExportedShard],  # noqa: ARG002 - a default
    ) -> Iterator[str]:
        """Write the files beside the shards, and yield notes for the user, one line each.

        Args:
            folder: the folder of the export.
            shards: all that are in it, in the order of the manifest.
        """
        return iter(())

    def how_to_read(self, folder: str) -> str:
        """The last line for the user: what to open.

        Args:
            folder: the absolute path.
        """
        return f"read it from {folder!a}"


class ShardRecord(NamedTuple):
    """One record of a shard."""

    number: int
    """Its number in the shard, from 0."""
    payload: bytes


def verified_records(task: ShardToExport) -> Iterator[ShardRecord]:
    """Read all records of the shard of `task`, in order.

    Only the end of the iterator proves that this is the registered stream.

    Raises:
        RefusedError: the shard is missing, damaged or another one.
        UsageError: a record is larger than 1 GiB.
    """
    expect_file(task)
    entry = task.entry
    large = LargeRecords(_shard(task), "export")
    try:
        for event in scan(task.storage, entry.path, declared=task.compression, digest=True):
            if isinstance(event, Fault):
                raise refused(task, f"{event.code} at byte {event.offset}: {event.detail}")
            if isinstance(event, RecordBatch):
                yield from _records(event, large)
            elif event.stream_blake3 != entry.stream_blake3:
                expected, found = entry.stream_blake3[:16], (event.stream_blake3 or "")[:16]
                raise refused(
                    task, f"its records should have the digest {expected}…, found {found}…"
                )
    finally:
        large.close()


def export_gzip(task: ShardToExport) -> ExportedShard:
    """Put the shard into the folder in gzip, and compare its records with the manifest there.

    Raises:
        RefusedError: the shard is missing, damaged or another one.
    """
    if task.compression == "gzip":
        return export_unchanged(task)
    encoder = GzipEncoder()
    with task.folder.create(task.name) as writer:
        for record in verified_records(task):
            head, foot = frame(record.payload)
            writer.write(encoder.write(b"".join((head, record.payload, foot))))
        writer.write(encoder.end_member())
    read_back(task, "gzip")
    return ExportedShard(how="compressed", entry=task.entry, name=task.name)


def write_records(task: ShardToExport, payloads: Iterable[bytes]) -> None:
    """Write payloads as the TFRecord file ``task.name`` of the folder, without compression."""
    with task.folder.create(task.name) as writer:
        for payload in payloads:
            head, foot = frame(payload)
            writer.write(b"".join((head, payload, foot)))


def written_records(task: ShardToExport) -> Iterator[bytes]:
    """The payloads of that file, in order.

    Raises:
        FailureError: it is damaged.
    """
    large = LargeRecords(replace(_shard(task), storage=task.folder, path=task.name), "export")
    try:
        for event in scan(task.folder, task.name, declared="none", digest=False):
            if isinstance(event, Fault):
                raise FailureError(
                    f"`{safe(task.name)}` cannot be read again: {event.code} at byte "
                    f"{event.offset}: {event.detail}",
                    hint="the disk may be faulty: export to another one",
                )
            if isinstance(event, RecordBatch):
                yield from (each.payload for each in _records(event, large))
    finally:
        large.close()


def _records(batch: RecordBatch, large: LargeRecords) -> Iterator[ShardRecord]:
    if batch.whole:
        yield from map(ShardRecord, range(batch.first, batch.first + len(batch)), batch.payloads())
        return
    for position, length in enumerate(batch.lengths):
        number = batch.first + position
        yield ShardRecord(number, large.payload(number, batch.offsets[position], length))


def _shard(task: ShardToExport) -> Shard:
    return Shard(
        split=task.entry.split,
        number=0,
        name=task.entry.path,
        storage=task.storage,
        path=task.entry.path,
        declared=task.compression,
        entry=task.entry,
        index=None,
    )


class KeyedExample(NamedTuple):
    """One record of a shard, decoded."""

    number: int
    """Its number in the shard, from 0."""
    key: str | None
    """Key of its item, with surrogate escapes if it is not UTF-8; None without an index."""
    size: int
    """Bytes of the payload."""
    features: Example


def keyed_examples(task: ShardToExport, records: Iterator[ShardRecord]) -> Iterator[KeyedExample]:
    """The records as Examples, with their keys.

    Raises:
        UsageError: a record is not an Example, or has fields that no Example has.
        RefusedError: the index of the shard is missing.
        ManifestError: the index of the shard is damaged.
    """
    index = _index(task)
    for record in records:
        features = _features(record.payload)
        if features is None:
            raise UsageError(
                f"record {record.number} of `{safe(task.entry.path)}` of `{task.reference}` is not "
                "a tf.train.Example, or has fields that it does not define",
                hint="`--to arrayrecord` exports any payload",
            )
        key = None if index is None else index.key(record.number)
        yield KeyedExample(record.number, key, len(record.payload), features)


def _index(task: ShardToExport) -> Index | None:
    path = task.entry.index
    if not path:
        return None
    try:
        index = load_index(task.storage, path)
    except MissingFileError:
        raise refused(task, f"its index `{safe(path)}` is missing") from None
    if len(index) != task.entry.records:
        raise ManifestError(
            f"`{safe(path)}` has {len(index)} records, and its shard {task.entry.records}",
            hint=f"tfrecreg check {task.reference}",
        )
    return index


def _features(payload: bytes) -> Example | None:
    found = decode_fast(payload)
    if found is not None:
        return found[0]
    try:
        features, unknown = decode_fully(payload)
    except NotAnExampleError:
        return None
    return None if unknown else features
