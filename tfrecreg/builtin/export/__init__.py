"""Exports a build or a release to a new folder for another tool."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tfrecreg.api import ExporterRecord, MissingExtraError, hookimpl

if TYPE_CHECKING:
    from tfrecreg.api import Exporter

_HERE = "tfrecreg.builtin.export"
_EXPORTERS = (
    (
        "arrayrecord",
        f"{_HERE}.records:ArrayRecordExporter",
        "ArrayRecord files, for Grain and TFDS",
    ),
    (
        "croissant",
        f"{_HERE}.croissant:CroissantExporter",
        "the shards, with a description in Croissant's JSON-LD",
    ),
    (
        "files",
        f"{_HERE}.files:FilesExporter",
        "all files unchanged, to a folder or URL that every command can read",
    ),
    (
        "index",
        f"{_HERE}.files:IndexExporter",
        "the shards, each with an index, for readers such as DALI's",
    ),
    ("jsonl", f"{_HERE}.records:JsonLinesExporter", "JSON Lines, one record per line"),
    ("parquet", f"{_HERE}.parquet:ParquetExporter", "Parquet files, for pandas, Spark and others"),
    ("tfds", f"{_HERE}.tfds:TfdsExporter", "a folder for TensorFlow Datasets"),
    (
        "tfx",
        "tfrecreg.builtin.statistics.tfx:TfxExporter",
        "examples, statistics and schema, for TFX pipelines",
    ),
    ("webdataset", f"{_HERE}.webdataset:WebDatasetExporter", "WebDataset's tar files, for PyTorch"),
)
_EXTRAS = {"arrayrecord": "arrayrecord", "parquet": "parquet", "tfx": "tfdv"}


@hookimpl
def tfrecreg_exporters() -> Iterator[ExporterRecord]:
    """Yield every bundled exporter. Its module is imported on first use."""
    for name, place, summary in _EXPORTERS:
        load, extra = partial(_load, name, place), _EXTRAS.get(name)
        yield ExporterRecord(name=name, summary=summary, load=load, extra=extra)


def _load(name: str, place: str) -> type[Exporter]:
    if name == "arrayrecord" and find_spec("array_record") is None:
        raise MissingExtraError("writing ArrayRecord files", "arrayrecord")
    module, _, kind = place.partition(":")
    found: type[Exporter] = getattr(import_module(module), kind)
    return found
