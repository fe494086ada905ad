"""The base class of exporters, and how a worker writes and verifies one shard.

The core finds the dataset and makes a hidden folder. Worker processes put every shard there. The
core renames the folder when it is complete. An exporter names the files, converts the shards, and
writes the other files. An exporter that writes the records to files of another format is a
:class:`tfrecreg.core.plugins.convert.RecordExporter`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tfrecreg.core.check.infer import LargeRecords
from tfrecreg.core.example.decode import decode_fast, decode_fully
from tfrecreg.core.example.model import Example, NotAnExampleError
from tfrecreg.core.records.batch import Fault, RecordBatch
from tfrecreg.core.records.framing import OVERHEAD, frame
from tfrecreg.core.records.gzip_writer import GzipEncoder
from tfrecreg.core.records.hashing import hash_file
from tfrecreg.core.records.index import Index, load_index
from tfrecreg.core.records.reader import open_stream, scan
from tfrecreg.core.registry.data import Build, Resolved, expect_schema
from tfrecreg.core.registry.manifest import Manifest, ShardEntry
from tfrecreg.core.registry.schemas import built_schema
from tfrecreg.core.schema.definition import Schema
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.interface import Readable, Storage
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
from tfrecreg.core.values.text import ExtensionPoint
from tfrecreg.core.values.typed_values import NoOptions
from tfrecreg.core.workers.interface import Engine

ShardMethod = Literal["linked", "copied", "decompressed", "compressed", "converted"]
"""How the shard got into the folder."""

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardToExport:
    """One shard that a worker exports. Picklable."""

    reference: str
    """Name of the build or release, for messages: ``mnist@1.0.0``."""
    storage: Readable
    """The folder of the build or release."""
    entry: ShardEntry
    compression: Literal["none", "gzip"]
    folder: Storage
    """The unfinished folder of the export."""
    name: str
    """Path of the shard's file in the exported folder."""
    numbers: npt.NDArray[np.int64] | None = field(default=None, compare=False)
    """Numbers of the records to write, in ascending order; None for all records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedShard:
    """An exported shard. Picklable."""

    how: ShardMethod
    entry: ShardEntry
    """The manifest's entry, but with the number of records that were written."""
    name: str
    """Path of the shard's file in the exported folder."""
    digests: bytes = b""
    """The digests of the records in the written file, concatenated in order. Empty if the shard's
    stream is unchanged."""
    seen: Any = None
    """A small result for the shard. Each exporter defines what it is."""


def expect_file(task: ShardToExport) -> None:
    """Refuse a shard that is missing."""
    # The shard may be a link to DVC's cache, which lies outside the storage's root.
    found = task.storage.stat(task.entry.path, follow="all")
    if found is None or found.kind != "file":
        raise refused(task, "it is missing")


def export_plain(
    task: ShardToExport, see: Callable[[RecordBatch], object] | None = None, seen: Any = None
) -> ExportedShard:
    """Put the shard's records into the folder, as an uncompressed TFRecord file.

    An uncompressed shard becomes a hard link, or a copy if linking is impossible. The file is then
    read from the folder and compared with the manifest.

    Args:
        task: the shard.
        see: a function that is called with each batch of records when the file is read back.
        seen: the object for the field `seen` of the result.

    Raises:
        RefusedError: the shard is missing, damaged or replaced.
    """
    expect_file(task)
    how = _decompress(task) if task.compression == "gzip" else _link(task)
    read_back(task, see=see)
    return ExportedShard(how=how, entry=task.entry, name=task.name, seen=seen)


def export_unchanged(task: ShardToExport) -> ExportedShard:
    """Put the shard's file into the folder unchanged, and compare its digest with the manifest.

    Raises:
        RefusedError: the shard is missing, damaged or replaced.
    """
    expect_file(task)
    how = _link(task)
    size, digest, _ = hash_file(task.folder, task.name)
    if digest != task.entry.blake3:
        expected = f"{task.entry.bytes} bytes, blake3 {task.entry.blake3[:16]}…"
        raise refused(task, f"expected {expected}, found {size} bytes, blake3 {digest[:16]}…")
    return ExportedShard(how=how, entry=task.entry, name=task.name)


def _link(task: ShardToExport) -> Literal["linked", "copied"]:
    task.folder.link(task.entry.path, task.name, origin=task.storage)
    target = Path(task.folder.root, task.name)
    return "linked" if target.samefile(Path(task.storage.root, task.entry.path)) else "copied"


def _decompress(task: ShardToExport) -> Literal["decompressed"]:
    # Read at most the expected size: a longer stream is wrong, and may be endless.
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
    """Read the exported file, and compare its records with the manifest."""
    for batch in _batches(task, task.folder, task.name, compression):
        if see is not None:
            see(batch)


def _batches(
    task: ShardToExport, storage: Readable, path: str, compression: Literal["none", "gzip"]
) -> Iterator[RecordBatch]:
    """The records of a file. They are not verified before the iterator ends."""
    expected = task.entry.stream_blake3
    for event in scan(storage, path, declared=compression, digest=True):
        if isinstance(event, Fault):
            raise refused(task, f"{event.code} at byte {event.offset}: {event.detail}")
        if isinstance(event, RecordBatch):
            yield event
        elif event.stream_blake3 != expected:
            found = (event.stream_blake3 or "")[:16]
            raise refused(
                task, f"its records should have the digest {expected[:16]}…, found {found}…"
            )


def refused(task: ShardToExport, why: str) -> RefusedError:
    """The error that refuses to export a shard, with the reason."""
    return RefusedError(
        f"`{task.entry.path}` of `{task.reference}` cannot be exported: {why}",
        hint=f"tfrecreg check {task.reference}",
    )


def numbered(shards: Sequence[ShardEntry]) -> Iterator[tuple[ShardEntry, int, int]]:
    """Yield each shard, its number in its split, and how many shards that split has."""
    totals, done = Counter(each.split for each in shards), Counter[str]()
    for shard in shards:
        yield shard, done[shard.split], totals[shard.split]
        done[shard.split] += 1


BUILD_VERSION = "0.0.0"
"""The version of an exported build. A build has no version, but some tools require one."""
SCHEMA_FILE = "schema.pbtxt"


@dataclass(frozen=True)
class ExportedDataset:
    """The build or release that is exported."""

    to: str
    """The name of the exporter, which is the value of ``--to``."""
    resolved: Resolved
    engine: Engine
    """The engine to work with."""
    progress: Progress
    where: str | None = None
    """The condition that chooses the exported records; None for all records."""

    @property
    def reference(self) -> str:
        """The reference with its selector resolved: ``mnist@1.0.0``."""
        return self.resolved.name

    @property
    def manifest(self) -> Manifest:
        """The manifest of the build or release."""
        return self.resolved.manifest

    @property
    def config(self) -> DatasetConfig:
        """Owner, license, description and citation, from ``datasets/NAME.toml``."""
        return self.resolved.dataset.config

    @property
    def version(self) -> str:
        """The version; ``0.0.0`` for a build."""
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
        """Write the text of the schema into the folder of the export.

        Raises:
            UsageError: as :attr:`schema`.
        """
        with folder.create(path) as writer:
            writer.write(self.schema.text.encode("utf-8", "surrogateescape"))


class Exporter(ExtensionPoint):
    """One export of one dataset, in the parent process. All methods are optional.

    By default, an export holds the unchanged shards under their own names.
    """

    Options: ClassVar[type[Any]] = NoOptions
    """A frozen dataclass of its options."""
    reader: ClassVar[str] = ""
    """The tool or the format, for messages: ``TFDS``."""
    payloads: ClassVar[Literal["examples", "any"]] = "examples"
    """The payloads that it accepts. With ``examples``, the dataset must also have a schema."""
    takes_shards: ClassVar[bool] = True
    """Whether the export has a file per shard. If it has none, this machine needs no shards."""
    keeps_files: ClassVar[bool] = False
    """Whether the export has exactly the files of the build or release. If so, the core copies them
    to a folder or a URL, the manifest last."""
    takes_some_records: ClassVar[bool] = False
    """Whether it can export only the records that a condition chooses."""

    def __init__(self, dataset: ExportedDataset, options: Any) -> None:
        """Keep the dataset and the options.

        Args:
            dataset: the dataset to export.
            options: an object of :attr:`Options`.
        """
        self.dataset = dataset
        self.options = options

    def expect(self) -> None:
        """Check whether the format can express the dataset and the options. This is called before
        any work.

        Raises:
            UsageError: the format cannot express the schema, a name or an option.
        """

    def file_name(self, split: str, number: int, of: int) -> str:
        """Path of a shard's file in the folder. By default, it is the shard's own name.

        Args:
            number: number of the shard in its split, from 0.
        """
        return shard_name(self.dataset.manifest.dataset, split, number, of)

    def begin(self) -> Callable[[ShardToExport], ExportedShard]:
        """A picklable function with which a worker puts one shard into the folder.

        By default it links or copies the shard and verifies it.
        """
        return export_unchanged

    def verify(self, shards: Sequence[ExportedShard]) -> str | None:  # noqa: ARG002 - a default
        """The content digest of the written records; None if the shards are unchanged.

        Raises:
            FailureError: it differs from the dataset's content digest.
        """
        return None

    def finish(
        self,
        folder: Storage,  # noqa: ARG002 - a default
        shards: Sequence[ExportedShard],  # noqa: ARG002 - a default
    ) -> Iterator[str]:
        """Write the files next to the shards, and yield notes for the user, each of one line.

        Args:
            folder: the folder of the export.
            shards: all shards in it, in the order of the manifest.
        """
        return iter(())

    def how_to_read(self, folder: str) -> str:
        """The last line for the user: how to open the result.

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

    After the last record, all records are compared with the manifest.

    Raises:
        RefusedError: the shard is missing, damaged or replaced.
        UsageError: a record is larger than 1 GiB.
    """
    expect_file(task)
    with closing(LargeRecords(task.storage, task.entry.path, task.entry.path)) as large:
        for batch in _batches(task, task.storage, task.entry.path, task.compression):
            yield from _records(batch, large)


def export_gzip(task: ShardToExport) -> ExportedShard:
    """Put the shard into the folder as a gzip file, and compare that file with the manifest.

    Raises:
        RefusedError: the shard is missing, damaged or replaced.
    """
    if task.compression == "gzip":
        return export_unchanged(task)
    encoder = GzipEncoder()
    with task.folder.create(task.name) as writer:
        for record in verified_records(task):
            writer.write(encoder.write(_framed(record.payload)))
        writer.write(encoder.end_member())
    read_back(task, "gzip")
    return ExportedShard(how="compressed", entry=task.entry, name=task.name)


def _framed(payload: bytes) -> bytes:
    head, foot = frame(payload)
    return b"".join((head, payload, foot))


def write_records(task: ShardToExport, payloads: Iterable[bytes]) -> None:
    """Write payloads as the uncompressed TFRecord file ``task.name`` of the folder."""
    with task.folder.create(task.name) as writer:
        for payload in payloads:
            writer.write(_framed(payload))


def written_records(task: ShardToExport) -> Iterator[bytes]:
    """The payloads of the file that :func:`write_records` wrote, in order.

    Raises:
        FailureError: it is damaged.
    """
    with closing(LargeRecords(task.folder, task.name, task.entry.path)) as large:
        for event in scan(task.folder, task.name, declared="none", digest=False):
            if isinstance(event, Fault):
                raise FailureError(
                    f"`{task.name}` was written, but cannot be read back: {event.code} at byte "
                    f"{event.offset}: {event.detail}"
                )
            if isinstance(event, RecordBatch):
                yield from (each.payload for each in _records(event, large))


def _records(batch: RecordBatch, large: LargeRecords) -> Iterator[ShardRecord]:
    if batch.whole:
        yield from map(ShardRecord, range(batch.first, batch.first + len(batch)), batch.payloads())
    else:
        yield ShardRecord(batch.first, large.payload(batch))


class KeyedExample(NamedTuple):
    """One record of a shard, decoded."""

    number: int
    """Its number in the shard, from 0."""
    key: str | None
    """Key of its item; None if the shard has no index. Bytes that are not UTF-8 are surrogate
    escapes."""
    size: int
    """Bytes of the payload."""
    features: Example


def keyed_examples(task: ShardToExport, records: Iterator[ShardRecord]) -> Iterator[KeyedExample]:
    """The records as Examples with their keys.

    Raises:
        UsageError: a record is not an Example, or has fields that Examples do not have.
        RefusedError: the index of the shard is missing.
        ManifestError: the index of the shard is damaged.
    """
    index = _index(task)
    for record in records:
        found = decode_fast(record.payload)
        try:
            features, unknown = (found[0], False) if found else decode_fully(record.payload)
        except NotAnExampleError:
            features, unknown = {}, True
        if unknown:
            raise UsageError(
                f"record {record.number} of `{task.entry.path}` of `{task.reference}` is not a "
                "tf.train.Example, or has fields that an Example does not have"
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
        raise refused(task, f"its index `{path}` is missing") from None
    if len(index) != task.entry.records:
        raise ManifestError(
            f"`{path}` has {len(index)} records, but its shard has {task.entry.records}"
        )
    return index
