"""Exports records as JSON Lines, or as ArrayRecord files, which allow random access.

The formats: https://jsonlines.org and https://github.com/google/array_record.
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
)
from tfrecreg.builtin.export.webdataset import buffered


class JsonLinesExporter(RecordExporter):
    """Exports a line for each record."""

    reader = "JSON Lines"

    def file_name(self, split: str, number: int, of: int) -> str:
        """The name with the suffix that readers expect: ``mnist-train-00000-of-00010.jsonl``."""
        head, _, tail = super().file_name(split, number, of).rpartition(".tfrecord-")
        return f"{head}-{tail}.jsonl"

    def format(self) -> JsonLines:
        """The format, which includes the class names of the dataset."""
        return JsonLines(self.dataset.manifest.labels)

    def how_to_read(self, folder: str) -> str:
        """The code that reads all files with Python's standard library."""
        return f"read it: map(json.loads, fileinput.input(sorted(glob({folder + '/*.jsonl'!a}))))"


@dataclass(frozen=True, slots=True)
class JsonLines(RecordFormat):
    """Writes and reads lines of JSON."""

    labels: Mapping[str, Sequence[str]]
    """Class names by feature."""

    def write(self, task: ShardToExport, records: Iterator[ShardRecord]) -> None:
        """Write a line for each record."""
        with task.folder.create(task.name) as file:
            for record in keyed_examples(task, records):
                line = {
                    "key": record.key,
                    "features": {
                        name: feature_to_json(each) for name, each in record.features.items()
                    },
                    # None if a number has no name.
                    "classes": {
                        name: [
                            names[each] if 0 <= each < len(names) else None
                            for each in feature.values
                        ]
                        for name, names in self.labels.items()
                        if (feature := record.features.get(name)) is not None
                        and feature.kind is Kind.INT64
                    },
                }
                file.write(json.dumps(line, sort_keys=True, allow_nan=False).encode() + b"\n")

    def read(self, task: ShardToExport) -> Iterator[bytes]:
        """The canonical payloads, in order."""
        with task.folder.open(task.name) as reader, buffered(reader) as file:
            for line in file:
                features = json.loads(line)["features"]
                yield encode({name: feature_from_json(each) for name, each in features.items()})


_OPTIONS = "group_size:1,uncompressed"
"""One record per chunk, so that no other bytes are read with a record."""

_READER_OPTIONS = "readahead_buffer_size:0,max_parallelism:0"
"""No threads, because the library's threads do not survive a fork: readers would wait forever."""


class ArrayRecordExporter(RecordExporter):
    """Exports every payload, byte for byte, to ArrayRecord files."""

    payloads = "any"

    def file_name(self, split: str, number: int, of: int) -> str:
        """The name that TFDS uses: ``mnist-train.array_record-00000-of-00010``."""
        head, _, tail = super().file_name(split, number, of).rpartition(".tfrecord-")
        return f"{head}.array_record-{tail}"

    def format(self) -> ArrayRecordFormat:
        """The format, which is the same for all datasets."""
        return ArrayRecordFormat()

    def how_to_read(self, folder: str) -> str:
        """The code that reads the files with Grain or TFDS."""
        pattern = f"{folder}/{self.dataset.manifest.dataset}-*.array_record-*"
        return f"read it: ArrayRecordDataSource(sorted(glob({pattern!a})))"


@dataclass(frozen=True, slots=True)
class ArrayRecordFormat(RecordFormat):
    """Writes and reads ArrayRecord files."""

    def write(self, task: ShardToExport, records: Iterator[ShardRecord]) -> None:
        """Write all payloads unchanged."""
        path = Path(task.folder.root, task.name)
        # The library opens files itself, and does not create folders.
        path.parent.mkdir(parents=True, exist_ok=True)
        writer = _module().ArrayRecordWriter(str(path), _OPTIONS)
        try:
            for record in records:
                writer.write(record.payload)
            writer.close()
            with path.open("rb") as file:
                os.fsync(file.fileno())
            task.folder.sync_dir("")
        except (RuntimeError, OSError) as error:
            raise StorageError(f"`{task.name}` cannot be written: {error}") from error
        finally:
            if writer.is_open():
                with suppress(RuntimeError):
                    writer.close()

    def read(self, task: ShardToExport) -> Iterator[bytes]:
        """The payloads in canonical form, in order."""
        reader = _module().ArrayRecordReader(
            str(Path(task.folder.root, task.name)), _READER_OPTIONS
        )
        try:
            for _ in range(reader.num_records()):
                yield canonical(reader.read())
        finally:
            with suppress(RuntimeError):
                reader.close()


def _module() -> Any:
    from array_record.python import array_record_module

    return array_record_module
