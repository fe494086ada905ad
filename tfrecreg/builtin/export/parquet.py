"""Exports Parquet files with a column per feature of the schema, and one for all other values.

https://parquet.apache.org
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tfrecreg.api import (
    ExportedDataset,
    ExportedShard,
    Feature,
    Folder,
    ReadingFile,
    RecordExporter,
    RecordFormat,
    ShardRecord,
    ShardToExport,
    decode,
    encode,
    keyed_examples,
    listed,
)
from tfrecreg.builtin.export.columns import (
    FeatureColumn,
    hub_metadata,
    schema_columns,
    text_features,
)
from tfrecreg.builtin.export.webdataset import WritingFile

_KEY, _SPLIT, _REST = "__key__", "__split__", "__rest__"
_GROUP_ROWS, _GROUP_BYTES = 10_000, 32 << 20
"""Maximum number of rows and of payload bytes of a row group, which is held in memory."""


@dataclass(frozen=True)
class ParquetExportOptions:
    """The options of the export."""

    huggingface: bool = True
    """Whether images, classes and texts get the types of Hugging Face's Datasets. If not, images
    are plain bytes, and the schema decides what is text.
    """


class ParquetExporter(RecordExporter):
    """Exports Parquet files."""

    Options: ClassVar[type[Any]] = ParquetExportOptions
    reader = "Parquet"

    def __init__(self, dataset: ExportedDataset, options: ParquetExportOptions) -> None:
        super().__init__(dataset, options)
        self._notes: list[str] = []

    def file_name(self, split: str, number: int, of: int) -> str:
        """The path that Hugging Face expects for a split: ``data/train-00000-of-00010.parquet``."""
        return f"data/{split}-{number:05d}-of-{of:05d}.parquet"

    def format(self) -> ParquetFormat:
        """The format with the columns of the schema."""
        manifest = self.dataset.manifest
        metadata = {
            "reference": self.dataset.reference,
            # The digest of a selection is known only after writing; it is in `tfrecreg.json`.
            "content": manifest.content if self.dataset.where is None else None,
            "labels": {name: list(names) for name, names in manifest.labels.items()},
        }
        text = json.dumps(metadata, sort_keys=True)
        schema, reserved = self.dataset.schema, frozenset((_KEY, _SPLIT, _REST))
        if not self.options.huggingface:
            return ParquetFormat(schema_columns(schema, reserved), text)
        texts = text_features(self.dataset, schema)
        columns = schema_columns(schema, reserved, with_images=True, texts=texts)
        hub, replaced = hub_metadata(columns, manifest.labels, (_KEY, _SPLIT), _REST)
        if replaced:
            self._notes = [
                f"some class names of {listed(replaced)} were replaced by numbers for Hugging "
                "Face's Datasets: the metadata `tfrecreg` has the original names"
            ]
        return ParquetFormat(columns, text, hub)

    def finish(self, folder: Folder, shards: Sequence[ExportedShard]) -> Iterator[str]:
        """Notes about replaced class names, and about records with a value in ``__rest__``."""
        yield from super().finish(folder, shards)
        if rest := sum(each.seen for each in shards):
            records = "1 record has" if rest == 1 else f"{rest:,} records have"
            yield (
                f"{records} features that do not fit the columns of the schema: these features "
                f"are in the column `{_REST}`"
            )
        yield from self._notes

    def how_to_read(self, folder: str) -> str:
        """The call that reads the files with pandas, which returns images as dictionaries."""
        return f"read it: pandas.read_parquet({folder + '/data'!a})"


class _Row(NamedTuple):
    key: str | None
    values: Sequence[Feature | None]
    """The feature of each column; None for an absent feature."""
    rest: bytes | None
    """The features that fit no column, as an Example."""


@dataclass(frozen=True, slots=True)
class ParquetFormat(RecordFormat):
    """Writes and reads Parquet files."""

    columns: tuple[FeatureColumn, ...]
    """Columns of features, in order."""
    metadata: str
    """The JSON in the file's metadata under ``tfrecreg``."""
    hub: str = ""
    """The JSON in the file's metadata under ``huggingface``; empty to leave it out."""

    def write(self, task: ShardToExport, records: Iterator[ShardRecord]) -> int:
        """Write all records. Returns how many have a value in ``__rest__``."""
        schema = self._arrow_schema()
        with_rest = 0
        with (
            task.folder.create(task.name) as to,
            WritingFile(to) as file,
            pq.ParquetWriter(file, schema) as writer,
        ):
            rows: list[_Row] = []
            size = 0
            for record in keyed_examples(task, records):
                if rows and (len(rows) >= _GROUP_ROWS or size + record.size > _GROUP_BYTES):
                    writer.write_table(self._table(schema, task.entry.split, rows))
                    rows, size = [], 0
                rows.append(self._row(record.key, dict(record.features)))
                size += record.size
                with_rest += rows[-1].rest is not None
            if rows:
                writer.write_table(self._table(schema, task.entry.split, rows))
        return with_rest

    def read(self, task: ShardToExport) -> Iterator[bytes]:
        """The canonical payloads, in order."""
        with task.folder.open(task.name) as reader, ReadingFile(reader) as source:
            try:
                file = pq.ParquetFile(source)
                for number in range(file.num_row_groups):
                    yield from self._payloads(file.read_row_group(number, use_threads=False))
            except pa.ArrowException as error:
                raise ValueError(str(error)) from error

    def _arrow_schema(self) -> Any:
        fields = [
            (_KEY, pa.string()),
            (_SPLIT, pa.string()),
            *((each.name, each.arrow_type()) for each in self.columns),
            (_REST, pa.binary()),
        ]
        metadata = {"tfrecreg": self.metadata}
        if self.hub:
            metadata["huggingface"] = self.hub
        return pa.schema(fields, metadata=metadata)

    def _row(self, key: str | None, features: dict[str, Feature]) -> _Row:
        values: list[Feature | None] = []
        for column in self.columns:
            feature = features.get(column.name)
            fits = feature is not None and column.holds(feature)
            values.append(features.pop(column.name) if fits else None)
        # Bytes of keys that are not UTF-8 become escapes.
        shown = key and key.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        return _Row(shown, values, encode(features) if features else None)

    def _table(self, schema: Any, split: str, rows: Sequence[_Row]) -> Any:
        """A table of one row group."""
        arrays = [
            pa.array([row.key for row in rows], pa.string()),
            pa.array([split] * len(rows), pa.string()),
            *(
                column.to_arrow([row.values[at] for row in rows])
                for at, column in enumerate(self.columns)
            ),
            pa.array([row.rest for row in rows], pa.binary()),
        ]
        return pa.Table.from_arrays(arrays, schema=schema)

    def _payloads(self, table: Any) -> Iterator[bytes]:
        for batch in table.to_batches():
            found = [
                (each.name, each.from_arrow(batch.column(position)))
                for position, each in enumerate(self.columns, 2)
            ]
            rest = batch.column(len(self.columns) + 2).to_pylist()
            for row, more in enumerate(rest):
                features: dict[str, Feature] = {} if more is None else dict(decode(more))
                for name, values in found:
                    feature = values[row]
                    if feature is not None:
                        features[name] = feature
                yield encode(features)
