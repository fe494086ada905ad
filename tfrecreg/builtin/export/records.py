"""Exports of records one by one: JSON Lines, and ArrayRecord at random access.

Their formats: https://jsonlines.org and https://github.com/google/array_record.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfrecreg.api import (
    Example,
    FailureError,
    Kind,
    RecordExporter,
    RecordFormat,
    ShardRecord,
    ShardToExport,
    StorageError,
    canonical,
    encode,
    feature_from_json,
    feature_to_json,
    keyed_examples,
    safe,
)
from tfrecreg.builtin.export.webdataset import buffered


class JsonLinesExporter(RecordExporter):
    """A line for each record."""

    reader = "JSON Lines"

    def file_name(self, split: str, number: int, of: int) -> str:
        """With the suffix that readers know: ``mnist-train-00000-of-00010.jsonl``."""
        head, _, tail = super().file_name(split, number, of).rpartition(".tfrecord-")
        return f"{head}-{tail}.jsonl"

    def format(self) -> JsonLines:
        """With the class names of the dataset."""
        return JsonLines(self.dataset.manifest.labels)

    def how_to_read(self, folder: str) -> str:
        """With Python's own modules, all files at once."""
        return f"read it: map(json.loads, fileinput.input(sorted(glob({folder + '/*.jsonl'!a}))))"


@dataclass(frozen=True, slots=True)
class JsonLines(RecordFormat):
    """Writes and reads lines of JSON."""

    labels: Mapping[str, Sequence[str]]
    """Feature to class names."""

    def write(self, task: ShardToExport, records: Iterator[ShardRecord]) -> None:
        """Write a line for each record."""
        with task.folder.create(task.name) as file:
            for record in keyed_examples(task, records):
                line = {
                    "key": record.key,
                    "features": {
                        name: feature_to_json(each) for name, each in record.features.items()
                    },
                    "classes": self._classes(record.features),
                }
                file.write(json.dumps(line, sort_keys=True, allow_nan=False).encode() + b"\n")

    def read(self, task: ShardToExport) -> Iterator[bytes]:
        """The canonical payloads, in order."""
        with task.folder.open(task.name) as reader, buffered(reader) as file:
            try:
                for line in file:
                    features = json.loads(line)["features"]
                    yield encode({name: feature_from_json(each) for name, each in features.items()})
            except (ValueError, KeyError) as error:
                raise FailureError(
                    f"`{safe(task.name)}` cannot be read again: {safe(str(error), limit=300)}",
                    hint="the disk may be faulty: export to another one",
                ) from error

    def _classes(self, features: Example) -> dict[str, list[str | None]]:
        """The class names of a record's labels; None where a number has none."""
        return {
            name: [names[each] if 0 <= each < len(names) else None for each in feature.values]
            for name, names in self.labels.items()
            if (feature := features.get(name)) is not None and feature.kind is Kind.INT64
        }


_OPTIONS = "group_size:1,uncompressed"
"""One record a chunk, so that reading a record reads nothing else."""

_READER_OPTIONS = "readahead_buffer_size:0,max_parallelism:0"
"""No threads: the library's threads do not survive a fork, and readers would wait for them."""


class ArrayRecordExporter(RecordExporter):
    """The payloads as they are, in ArrayRecord files."""

    payloads = "any"

    def file_name(self, split: str, number: int, of: int) -> str:
        """As TFDS names them: ``mnist-train.array_record-00000-of-00010``."""
        head, _, tail = super().file_name(split, number, of).rpartition(".tfrecord-")
        return f"{head}.array_record-{tail}"

    def format(self) -> ArrayRecordFormat:
        """One for all datasets."""
        return ArrayRecordFormat()

    def how_to_read(self, folder: str) -> str:
        """For Grain and for TFDS."""
        pattern = f"{folder}/{self.dataset.manifest.dataset}-*.array_record-*"
        return f"read it: ArrayRecordDataSource(sorted(glob({pattern!a})))"


@dataclass(frozen=True, slots=True)
class ArrayRecordFormat(RecordFormat):
    """Writes and reads ArrayRecord files."""

    def write(self, task: ShardToExport, records: Iterator[ShardRecord]) -> None:
        """Write all payloads unchanged."""
        path = _file_path(task)
        # The library opens files itself, and creates no folders.
        path.parent.mkdir(parents=True, exist_ok=True)
        writer = _module().ArrayRecordWriter(str(path), _OPTIONS)
        try:
            for record in records:
                try:
                    writer.write(record.payload)
                except RuntimeError as error:
                    raise _unwritten(task, error) from error
            try:
                writer.close()
            except RuntimeError as error:
                raise _unwritten(task, error) from error
            _sync(path, task)
        finally:
            if writer.is_open():
                with suppress(RuntimeError):
                    writer.close()

    def read(self, task: ShardToExport) -> Iterator[bytes]:
        """The payloads, in order, each in canonical form."""
        reader = _module().ArrayRecordReader(str(_file_path(task)), _READER_OPTIONS)
        try:
            for _ in range(reader.num_records()):
                yield canonical(reader.read())
        except (RuntimeError, IndexError) as error:
            raise FailureError(
                f"`{safe(task.name)}` cannot be read again: {safe(str(error), limit=300)}",
                hint="the disk may be faulty: export to another one",
            ) from error
        finally:
            with suppress(RuntimeError):
                reader.close()


def _module() -> Any:
    from array_record.python import array_record_module

    return array_record_module


def _file_path(task: ShardToExport) -> Path:
    return Path(task.folder.root, task.name)


def _sync(path: Path, task: ShardToExport) -> None:
    try:
        with path.open("rb") as file:
            os.fsync(file.fileno())
    except OSError as error:
        raise _unwritten(task, error) from error
    task.folder.sync_dir("")


def _unwritten(task: ShardToExport, error: Exception) -> StorageError:
    return StorageError(
        f"`{safe(task.name)}` cannot be written: {safe(str(error), limit=300)}",
        hint="check the free space and the permissions of the folder",
    )
