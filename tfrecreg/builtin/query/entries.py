"""Metadata and column names of catalog files, and quoting for SQL.

A catalog stores only the number and the size of values if a feature has more than
:data:`SHORT_VALUES` values in a record, or more than :data:`SHORT_BYTES` bytes (:data:`CLASS_BYTES`
for :data:`CLASS_NAMES`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from tfrecreg.core.schema.labels import BOX, OBJECT_LABEL, PER_OBJECT
from tfrecreg.core.values.errors import MissingExtraError


def arrow_module() -> Any:
    """The module pyarrow."""
    import pyarrow

    return pyarrow


def parquet() -> Any:
    """The module of pyarrow for Parquet."""
    import pyarrow.parquet

    return pyarrow.parquet


def duckdb_module() -> Any:
    """The module duckdb."""
    import duckdb

    return duckdb


def expect_packages() -> None:
    """Raise an error if a package is missing."""
    try:
        parquet()
        duckdb_module()
    except ImportError as error:
        raise MissingExtraError("asking in SQL", "query") from error


SHORT_VALUES = 16
SHORT_BYTES = 64
CLASS_BYTES = 1 << 16
CLASS_NAMES = frozenset(("image/class/text", "label"))
"""The features that may contain class names."""

_PREFIX = "image/object/"
SIDES = tuple((name.rpartition("/")[2], name) for name in BOX)
OBJECT_TEXT = f"{_PREFIX}class/text"
MORE = tuple(
    (name.removeprefix(_PREFIX).replace("/", "_"), name)
    for name in PER_OBJECT
    if name not in (OBJECT_LABEL, OBJECT_TEXT, f"{_PREFIX}view")
)
OBJECT_NUMBERS = ("label_number", *(column for column, _ in MORE))
"""Numeric columns of an object."""
OBJECT_SIDES = tuple(side for side, _ in SIDES)
"""Sides of boxes, as fractions of the image's sides."""
COLUMN_FEATURES = 1000
"""Maximum number of features with columns, per shard and per target. Later features get none."""
IMAGE_COLUMNS = ("format", "height", "width", "channels")
BOX_COLUMNS = ("boxes", "boxes_area", "smallest_box")
METADATA = b"tfrecreg"
"""The key of the metadata in a file of records."""


class CellColumns(msgspec.Struct, frozen=True, order=True):
    """The contents of a catalog for one feature of one kind."""

    feature: str
    """The name of the feature, with invalid UTF-8 as escapes."""
    kind: str
    """``bytes``, ``float`` or ``int64``."""
    is_list: bool
    """Whether any record has no value or several values."""
    is_many: bool
    """Whether any record has more than one value."""
    has_values: bool
    """Whether values are stored for at least one record."""
    is_cut: bool
    """Whether values are left out for at least one record."""

    def joined(self, other: CellColumns) -> CellColumns:
        """Combine the descriptions of this feature in two catalogs."""
        flags = ("is_list", "is_many", "has_values", "is_cut")
        return msgspec.structs.replace(
            self, **{name: getattr(self, name) or getattr(other, name) for name in flags}
        )


class CatalogEntry(msgspec.Struct, frozen=True):
    """The contents of the catalog of one shard, in the metadata of its file of records."""

    shard: str
    """Hex blake3 of the bytes of the shard."""
    index: str
    """Hex blake3 of the index with the keys; empty if the shard has no index."""
    faults: int
    """Number of damaged places. The catalog leaves out the records there."""
    left_out: tuple[str, ...]
    """Features without columns, at most :data:`COLUMN_FEATURES` of them."""
    features: tuple[CellColumns, ...]
    """Entry N, counted from 0, has the columns ``vN``, ``nN`` and ``sN``."""
    has_images: bool
    """Whether the records have :data:`IMAGE_COLUMNS`."""
    has_boxes: bool
    """Whether the records have :data:`BOX_COLUMNS`."""
    has_objects: bool
    """Whether the catalog has a file of objects."""


def read_entry(path: str) -> CatalogEntry:
    """The entry in a file of records."""
    metadata = parquet().read_metadata(path).metadata or {}
    return msgspec.json.decode(metadata.get(METADATA, b""), type=CatalogEntry)


def sql_name(name: str) -> str:
    """The name of a column or a table, quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


def sql_text(value: str) -> str:
    """A text, quoted for SQL."""
    return "'" + shown_text(value).replace("'", "''") + "'"


def shown_text(value: str) -> str:
    """A Python string as text that DuckDB accepts. NULs and invalid UTF-8 are escaped."""
    shown = value.replace("\0", "\\x00").encode("utf-8", "surrogateescape")
    return shown.decode("utf-8", "backslashreplace")


def sql_list(values: Iterable[str]) -> str:
    """An SQL list of the given expressions."""
    return f"[{', '.join(values)}]"
