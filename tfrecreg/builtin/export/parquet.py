"""Exports Parquet files with a column per feature of the schema, and one for all other values.

A column stores a feature only if the conversion loses nothing: see :meth:`FeatureColumn.holds`.
`null` means that the feature is absent. An empty list means that the feature has no values.

Hugging Face's library Datasets reads the types of columns (image, class, text) from the metadata
``huggingface`` of a Parquet file's schema. :func:`hub_metadata` writes it.

https://parquet.apache.org
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tfrecreg.api import (
    ExportedDataset,
    ExportedShard,
    Feature,
    Folder,
    Kind,
    ReadingFile,
    RecordExporter,
    RecordFormat,
    Schema,
    ShardRecord,
    ShardToExport,
    Writer,
    bytes_feature,
    decode,
    encode,
    float_feature,
    int64_feature,
    keyed_examples,
    listed,
    verified_records,
)
from tfrecreg.builtin.export.connectors import usable_names

_RESERVED = _KEY, _SPLIT, _REST = "__key__", "__split__", "__rest__"
_GROUP_ROWS, _GROUP_BYTES = 10_000, 32 << 20
"""Maximum number of rows and of payload bytes of a row group, which is held in memory."""
_KINDS = {"BYTES": Kind.BYTES, "FLOAT": Kind.FLOAT, "INT": Kind.INT64}
_FLOAT_BYTES = 4


class WritingFile(io.RawIOBase):
    """A file of a storage, written from beginning to end. It does not close the writer."""

    def __init__(self, writer: Writer) -> None:
        super().__init__()
        self._writer = writer
        self._position = 0

    def writable(self) -> bool:
        """True."""
        return True

    def write(self, data: Any, /) -> int:
        """Append all of `data`."""
        view = memoryview(data).cast("B")
        self._writer.write(view)
        self._position += len(view)
        return len(view)

    def tell(self) -> int:
        """Bytes written."""
        return self._position


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

    _notes: Sequence[str] = ()

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
        schema = self.dataset.schema
        if not self.options.huggingface:
            return ParquetFormat(schema_columns(schema), text)
        texts = text_features(self.dataset, schema)
        columns = schema_columns(schema, with_images=True, texts=texts)
        hub, replaced = hub_metadata(columns, manifest.labels)
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


@dataclass(frozen=True, slots=True)
class FeatureColumn:
    """The column of one feature. Picklable."""

    name: str
    kind: Kind
    is_text: bool
    """Whether values are strings instead of bytes."""
    is_scalar: bool
    """Whether each row has one value instead of a list."""
    is_image: bool = False
    """Whether values are images in Hugging Face's form: a struct of bytes and a path."""

    def holds(self, feature: Feature) -> bool:
        """Whether the column can hold this feature without loss."""
        if feature.kind is not self.kind or (self.is_scalar and feature.count != 1):
            return False
        return not self.is_text or is_text(feature)

    def arrow_type(self) -> Any:
        """The column's type."""
        value = self._value_type()
        return value if self.is_scalar else pa.list_(value)

    def to_arrow(self, features: Sequence[Feature | None]) -> Any:
        """The array of some rows; None is an absent feature. `holds` must accept each feature."""
        if self.is_scalar:
            return self._values(features)
        ends = np.cumsum([0 if each is None else each.count for each in features], dtype=np.int64)
        starts = np.concatenate((np.zeros(1, np.int64), ends))
        # A list with a null offset is null itself.
        absent = np.array([*(each is None for each in features), False])
        offsets = pa.array(starts.astype(np.int32), mask=absent, from_pandas=False)
        flat = self._values([each for each in features if each is not None])
        return pa.ListArray.from_arrays(offsets, flat)

    def from_arrow(self, array: Any) -> list[Feature | None]:
        """Convert an array to the features of its rows: the inverse of :meth:`to_arrow`."""
        present = array.is_valid().to_numpy(zero_copy_only=False)
        if self.is_scalar:
            flat, starts = array, np.arange(len(array) + 1)
        else:
            flat, starts = array.values, array.offsets.to_numpy()
        if self.is_image:
            flat = flat.field(0)
        values: Any
        make: Callable[[Any], Feature]
        if self.kind is Kind.FLOAT:
            floats = flat.fill_null(0.0) if flat.null_count else flat
            values = floats.to_numpy(zero_copy_only=False).astype("<f4", copy=False)
            make = _float_feature
        elif self.kind is Kind.BYTES:
            values, make = flat.cast(pa.binary()).to_pylist(), bytes_feature
        else:
            values, make = flat.to_pylist(), int64_feature
        return [
            make(values[start:end]) if there else None
            for (start, end), there in zip(pairwise(starts), present, strict=True)
        ]

    def _value_type(self) -> Any:
        if self.is_image:
            return pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        if self.kind is Kind.BYTES:
            return pa.string() if self.is_text else pa.binary()
        return pa.float32() if self.kind is Kind.FLOAT else pa.int64()

    def _values(self, features: Sequence[Feature | None]) -> Any:
        """The concatenated values of all features, with null for None."""
        if self.kind is Kind.FLOAT:
            bits = b"".join(
                bytes(_FLOAT_BYTES) if each is None else each.packed_floats for each in features
            )
            # Each None is one value here: features of lists come without None.
            absent = None
            if self.is_scalar:
                absent = np.array([each is None for each in features], np.bool_)
            floats = np.frombuffer(bits, "<f4").astype("=f4", copy=False)
            return pa.array(floats, mask=absent, from_pandas=False, type=pa.float32())
        values = [
            value for each in features for value in ((None,) if each is None else each.values)
        ]
        if self.is_image:
            paths = pa.nulls(len(values), pa.string())
            absent = pa.array([each is None for each in values], pa.bool_())
            data = pa.array(values, type=pa.binary())
            return pa.StructArray.from_arrays([data, paths], ["bytes", "path"], mask=absent)
        if self.kind is Kind.BYTES:
            return pa.array(values, type=pa.binary()).cast(self._value_type())
        return pa.array(values, type=pa.int64())


def schema_columns(
    schema: Schema, *, with_images: bool = False, texts: frozenset[str] = frozenset()
) -> tuple[FeatureColumn, ...]:
    """The columns for the features to which a schema gives a type, sorted by name."""
    rules = {each.name: each for each in schema.features}
    return tuple(
        FeatureColumn(
            name=name,
            kind=_KINDS[rule.kind],
            is_text=rule.is_text or name in texts,
            is_scalar=rule.is_required and rule.tensor_shape == (),
            is_image=with_images and rule.kind == "BYTES" and rule.is_image,
        )
        for name, rule in sorted(rules.items())
        if rule.kind in _KINDS and not rule.levels and name and name not in _RESERVED
    )


def _float_feature(values: npt.NDArray[np.float32]) -> Feature:
    return float_feature(values.tobytes())


def is_text(feature: Feature) -> bool:
    """Whether all values of a BYTES feature are valid UTF-8."""
    try:
        for value in feature.values:
            value.decode()
    except UnicodeDecodeError:
        return False
    return True


_DTYPES = {Kind.BYTES: "binary", Kind.INT64: "int64", Kind.FLOAT: "float32"}


def hub_metadata(
    columns: Sequence[FeatureColumn], labels: Mapping[str, Sequence[str]]
) -> tuple[str, list[str]]:
    """The metadata as JSON, and the features for which class names had to be replaced."""
    replaced = []
    features: dict[str, Any] = {name: _value("string") for name in (_KEY, _SPLIT)}
    for column in columns:
        names, count = usable_names(labels.get(column.name, ()))
        if column.is_image:
            feature: dict[str, Any] = {"_type": "Image"}
        elif column.kind is Kind.INT64 and names:
            feature = {"names": list(names), "_type": "ClassLabel"}
            if count:
                replaced.append(column.name)
        else:
            feature = _value("string" if column.is_text else _DTYPES[column.kind])
        if not column.is_scalar:
            feature = {"feature": feature, "_type": "Sequence"}
        features[column.name] = feature
    features[_REST] = _value("binary")
    return json.dumps({"info": {"features": features}}), replaced


def text_features(dataset: ExportedDataset, schema: Schema) -> frozenset[str]:
    """The BYTES features whose values are all texts, although the schema does not declare text.

    Reads all shards, in workers.
    """
    names = frozenset(
        each.name
        for each in schema.features
        if each.kind == "BYTES" and not (each.is_text or each.is_image or each.levels)
    )
    if not names:
        return names
    storage: Any = dataset.resolved.storage()
    tasks = (
        ShardToExport(
            reference=dataset.reference,
            storage=storage,
            entry=entry,
            compression=dataset.manifest.compression,
            folder=storage,  # nothing is written
            name=entry.path,
        )
        for entry in dataset.manifest.shards
    )
    found: set[str] = set()
    others: set[str] = set()
    for texts, bytes_ in dataset.engine.run(partial(_search_texts, names=names), tasks):
        found |= texts
        others |= bytes_
    return frozenset(found - others)


def _search_texts(task: ShardToExport, *, names: frozenset[str]) -> tuple[set[str], set[str]]:
    """The names of a shard's features that hold only texts, and of those that hold other bytes."""
    texts: set[str] = set()
    others: set[str] = set()
    for record in verified_records(task):
        try:
            features = decode(record.payload)
        except ValueError:  # not an Example: the export refuses it later
            continue
        for name, feature in features.items():
            if name in names and name not in others and feature.kind is Kind.BYTES:
                if not is_text(feature):
                    others.add(name)
                elif feature.count:
                    texts.add(name)
    return texts, others


def _value(dtype: str) -> dict[str, Any]:
    return {"dtype": dtype, "_type": "Value"}
