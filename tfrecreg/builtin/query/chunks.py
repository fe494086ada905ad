"""Rows of a catalog in memory, until they become Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import google_crc32c
import msgspec
import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.builtin.query.boxes import BoxRows, BoxTotals
from tfrecreg.builtin.query.cells import CellColumns, FeatureCells
from tfrecreg.builtin.query.packages import arrow_module, parquet
from tfrecreg.digests import DIGEST_BYTES
from tfrecreg.example.columns import Column, Slot
from tfrecreg.example.model import Feature, Kind
from tfrecreg.images.model import ImageHeader

CHUNK_ROWS = 1 << 18
_CHUNK_BYTES = 64 << 20
"""Rows, and bytes of their values, that are in memory together."""
COLUMN_FEATURES = 1000
"""Features of a chunk, and of a target, that get columns: the first that appear."""
_ROW_BYTES = 100

_SAMPLE = 1 << 10
"""Rows of a column that tell whether its values repeat."""

IMAGE_COLUMNS = ("format", "height", "width", "channels")
BOX_COLUMNS = ("boxes", "boxes_area", "smallest_box")


class PartFile(msgspec.Struct, frozen=True):
    """One Parquet file of a catalog."""

    kind: Literal["records", "objects"]
    blake3: str
    """Of the file, which has its name from it."""
    crc32c: int
    """Of the file, compared before each use."""
    bytes: int
    rows: int
    features: tuple[CellColumns, ...] = ()
    """Feature N has its columns in ``vN``, ``nN`` and ``sN``."""
    has_images: bool = False
    """Whether it has :data:`IMAGE_COLUMNS`."""
    has_boxes: bool = False
    """Whether it has :data:`BOX_COLUMNS`."""


class Chunk:
    """Collects the rows of one Parquet file of records, and of one of their objects."""

    def __init__(self) -> None:
        self.rows = 0
        self.left_out: set[str] = set()
        """Features without columns."""
        self._held = 0
        self._numbers: list[npt.NDArray[np.int64]] = []
        self._offsets: list[npt.NDArray[np.int64]] = []
        self._lengths: list[npt.NDArray[np.int64]] = []
        self._digests: list[bytes] = []
        self._without_digest: list[int] = []
        self._keys: list[str | None] = []
        self._kinds: list[str | None] = []
        self._features: dict[tuple[str, Kind], FeatureCells] = {}
        self._names: set[str] = set()
        self._images: dict[int, ImageHeader] = {}
        self._box_rows: dict[int, BoxTotals] = {}
        self.boxes = BoxRows()

    @property
    def is_full(self) -> bool:
        """Whether the rows should become a file before the next batch."""
        beyond = self._held + self.rows * _ROW_BYTES >= _CHUNK_BYTES
        return beyond or self.rows >= CHUNK_ROWS or len(self.boxes) >= CHUNK_ROWS

    def add_rows(
        self,
        first: int,
        offsets: Sequence[int],
        lengths: Sequence[int],
        digests: bytes | None,
        keys: Sequence[str | None],
        kinds: npt.NDArray[np.object_],
    ) -> int:
        """Add consecutive records; returns the row of the first."""
        row, count = self.rows, len(lengths)
        self._numbers.append(np.arange(first, first + count))
        self._offsets.append(np.array(offsets, np.int64))
        self._lengths.append(np.array(lengths, np.int64))
        if digests is None:
            self._without_digest += range(row, row + count)
        self._digests.append(digests or bytes(DIGEST_BYTES * count))
        self._keys += keys
        self._kinds += kinds.tolist()
        self.rows += count
        return row

    def add_column(
        self, rows: npt.NDArray[np.int64], slot: Slot, column: Column, memory: bytes
    ) -> None:
        """Add the values of a feature of records of one layout."""
        cells = self._cells(slot.name, slot.kind)
        if cells is not None:
            self._held += cells.add_column(rows, slot, column, memory)

    def add_feature(self, row: int, name: str, feature: Feature) -> None:
        """Add the values of one feature of one record; those of no kind count as missing."""
        cells = self._cells(name, feature.kind) if feature.kind else None
        if cells is not None:
            self._held += cells.add(row, feature)

    def add_image(self, row: int, header: ImageHeader) -> None:
        """Add what the header of the image of a record says."""
        self._images[row] = header
        self._held += _ROW_BYTES

    def add_boxes(self, row: int, totals: BoxTotals) -> None:
        """Add the totals of the boxes of a record."""
        self._box_rows[row] = totals
        self._held += _ROW_BYTES

    def to_parquet(self) -> list[tuple[PartFile, bytes]]:
        """The files: of the records, and of their objects if there are any."""
        pa = arrow_module()
        columns: dict[str, Any] = {
            "record": pa.array(np.concatenate(self._numbers)),
            "offset": pa.array(np.concatenate(self._offsets)),
            "bytes": pa.array(np.concatenate(self._lengths)),
            "digest": self._digest_column(pa),
            "key": pa.array(self._keys, pa.string()),
            "payload": pa.array(self._kinds, pa.string()),
        }
        if self._images:
            of_rows = [self._images.get(row) for row in range(self.rows)]
            for name in IMAGE_COLUMNS:
                values = [None if each is None else getattr(each, name) for each in of_rows]
                columns[name] = pa.array(values, pa.string() if name == "format" else pa.int64())
        if self._box_rows:
            totals = [self._box_rows.get(row) for row in range(self.rows)]
            for place, name in enumerate(BOX_COLUMNS):
                values = [None if each is None else each[place] for each in totals]
                columns[name] = pa.array(values, pa.float64() if place else pa.int64())
        features = []
        for number, cells in enumerate(self._features.values()):
            told, found = cells.to_arrow(pa, self.rows)
            features.append(told)
            columns |= {f"{kind}{number}": array for kind, array in found.items()}
        files = [
            _file(
                pa.table(columns),
                kind="records",
                features=tuple(features),
                has_images=bool(self._images),
                has_boxes=bool(self._box_rows),
            )
        ]
        if len(self.boxes):
            files.append(_file(self.boxes.to_arrow(pa), kind="objects"))
        return files

    def _digest_column(self, pa: Any) -> Any:
        data = pa.py_buffer(b"".join(self._digests))
        column = pa.Array.from_buffers(pa.binary(DIGEST_BYTES), self.rows, [None, data])
        if not self._without_digest:
            return column
        absent = np.zeros(self.rows, np.bool_)
        absent[self._without_digest] = True
        return column.take(pa.array(np.arange(self.rows), mask=absent))

    def _cells(self, feature: str, kind: Kind) -> FeatureCells | None:
        """The cells of a feature; None if it is beyond the first :data:`COLUMN_FEATURES`."""
        known = self._features.get((feature, kind))
        if known is not None:
            return known
        if feature not in self._names:
            if len(self._names) >= COLUMN_FEATURES:
                if len(self.left_out) < COLUMN_FEATURES:
                    self.left_out.add(feature)
                return None
            self._names.add(feature)
        made = self._features[feature, kind] = FeatureCells(feature, kind)
        return made


def _file(table: Any, **told: Any) -> tuple[PartFile, bytes]:
    pa, pq = arrow_module(), parquet()
    out = pa.BufferOutputStream()
    repeating = [
        name
        for name, column in zip(table.column_names, table.columns, strict=True)
        if _repeats(pa, column)
    ]
    pq.write_table(
        table,
        out,
        compression="zstd",
        compression_level=1,
        use_dictionary=repeating,
        # Readers prune by the smallest and largest number, which leave out NaN.
        write_statistics=False,
    )
    data = out.getvalue().to_pybytes()
    made = PartFile(
        blake3=blake3(data).hexdigest(),
        crc32c=google_crc32c.value(data),
        bytes=len(data),
        rows=table.num_rows,
        **told,
    )
    return made, data


def _repeats(pa: Any, column: Any) -> bool:
    """Whether a dictionary of the values of a column pays; of others it is only in the way."""
    if not pa.types.is_string(column.type) and not pa.types.is_integer(column.type):
        return False
    sample = column.slice(0, _SAMPLE)
    return 2 * len(sample.unique()) <= len(sample)
