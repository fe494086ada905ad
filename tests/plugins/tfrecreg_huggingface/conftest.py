"""Parquet files made on the spot, and what the source makes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from raw_source_support import RawFiles

pa: Any = pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
pq: Any = pytest.importorskip("pyarrow.parquet")

from tfrecreg_huggingface.source import HuggingFaceSource  # noqa: E402

MEDIA = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


class Raw(RawFiles):
    """A folder of Parquet files."""

    kind = HuggingFaceSource

    def table(
        self,
        name: str,
        columns: Mapping[str, Any],
        features: Mapping[str, Any] | None = None,
        rows: int = 1000,
        **options: Any,
    ) -> Path:
        """A file with these columns, and the metadata that Hugging Face's library writes."""
        table = pa.table(dict(columns))
        if features is not None:
            said = json.dumps({"info": {"features": features}})
            table = table.replace_schema_metadata({"huggingface": said})
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, row_group_size=rows, **options)
        return path

    def one(self, column: Any, *options: str, **features: Any) -> dict[str, Any]:
        """The features of the one row of a file with the column `c`."""
        self.table("train.parquet", {"c": column}, features or None)
        made = self.made(*options)
        assert not made.skipped
        (found,) = made.written.values()
        return found

    def skipped(self, column: Any, *options: str, **features: Any) -> tuple[str, str]:
        """Why the one row of a file with the column `c` is skipped."""
        self.table("train.parquet", {"c": column}, features or None)
        made = self.made(*options)
        assert not made.written
        (found,) = made.skipped.values()
        return found


def media(*values: bytes | None, path: str | None = None) -> Any:
    """A column of images or sounds."""
    rows = [None if each is None else {"bytes": each, "path": path} for each in values]
    return pa.array(rows, MEDIA)


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    return Raw(tmp_path / "raw")
