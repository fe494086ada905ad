"""JSON Lines: a record a line, for programs that read JSON and nothing else.

https://jsonlines.org
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tfrecreg.api import (
    Example,
    FailureError,
    Kind,
    RecordExporter,
    RecordFormat,
    ShardRecord,
    ShardToExport,
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
