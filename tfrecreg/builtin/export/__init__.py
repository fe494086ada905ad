"""Handing a build or a release to other tools, as a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tfrecreg.api import ExporterRecord, MissingExtraError, hookimpl

if TYPE_CHECKING:
    from tfrecreg.api import Exporter


@hookimpl
def tfrecreg_exporters() -> Iterator[ExporterRecord]:
    """Yield every bundled exporter; its module loads when it is used."""
    yield ExporterRecord(
        name="arrayrecord",
        summary="ArrayRecord files, for Grain and TFDS",
        load=partial(
            _load,
            "tfrecreg.builtin.export.records",
            "ArrayRecordExporter",
            _expect_arrayrecord,
        ),
        extra="arrayrecord",
    )
    yield ExporterRecord(
        name="croissant",
        summary="the shards, with a description in Croissant's JSON-LD",
        load=partial(_load, "tfrecreg.builtin.export.croissant", "CroissantExporter"),
    )
    yield ExporterRecord(
        name="files",
        summary="all files as they are, to a folder or a URL, where every command reads them",
        load=partial(_load, "tfrecreg.builtin.export.files", "FilesExporter"),
    )
    yield ExporterRecord(
        name="index",
        summary="the shards, each with an index, for readers such as DALI's",
        load=partial(_load, "tfrecreg.builtin.export.files", "IndexExporter"),
    )
    yield ExporterRecord(
        name="jsonl",
        summary="JSON Lines, one record per line",
        load=partial(_load, "tfrecreg.builtin.export.records", "JsonLinesExporter"),
    )
    yield ExporterRecord(
        name="parquet",
        summary="Parquet files, for pandas, Spark and others",
        load=partial(_load, "tfrecreg.builtin.export.parquet", "ParquetExporter", _expect_parquet),
        extra="parquet",
    )
    yield ExporterRecord(
        name="tfds",
        summary="a folder for TensorFlow Datasets",
        load=partial(_load, "tfrecreg.builtin.export.tfds", "TfdsExporter"),
    )
    yield ExporterRecord(
        name="tfx",
        summary="examples, statistics and schema, for TFX pipelines",
        load=partial(_load, "tfrecreg.builtin.statistics.tfx", "TfxExporter"),
        extra="tfdv",
    )
    yield ExporterRecord(
        name="webdataset",
        summary="WebDataset's tar files, for PyTorch",
        load=partial(_load, "tfrecreg.builtin.export.webdataset", "WebDatasetExporter"),
    )


def _load(module: str, name: str, expect: Callable[[], None] | None = None) -> type[Exporter]:
    if expect is not None:
        expect()
    found: type[Exporter] = getattr(import_module(module), name)
    return found


def _expect_arrayrecord() -> None:
    if find_spec("array_record") is None:
        raise MissingExtraError("writing ArrayRecord files", "arrayrecord")


def _expect_parquet() -> None:
    if find_spec("pyarrow") is None:
        raise MissingExtraError("writing Parquet files", "parquet")
