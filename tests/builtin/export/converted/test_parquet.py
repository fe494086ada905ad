"""Parquet files as pyarrow reads them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tfrecreg.builtin.export import parquet as parquet_module
from tfrecreg.builtin.export.parquet import ParquetFormat
from tfrecreg.core.example.decode import decode
from tfrecreg.core.example.model import Example, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.plugins.convert import ShardConversion

from .conftest import SCHEMA, MakeTask, parquet

pa: Any = pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
pq: Any = pytest.importorskip("pyarrow.parquet")

Write = Any


@pytest.fixture
def write(make_task: MakeTask, tmp_path: Path) -> Write:
    """``write(examples, keys)``: the file, as pyarrow opens it."""

    def call(
        examples: Sequence[Example],
        keys: Sequence[str] | None = None,
        made: ParquetFormat | None = None,
    ) -> Any:
        task = make_task([encode(each) for each in examples], keys)
        ShardConversion(made or parquet(SCHEMA))(task)
        return pq.ParquetFile(tmp_path / "stage/out")

    return call


def test_columns_have_the_types_of_the_schema(write: Write) -> None:
    schema = write([]).schema_arrow
    assert {each.name: str(each.type).replace("element", "item") for each in schema} == {
        "__key__": "string",
        "__split__": "string",
        "boxes": "list<item: float>",
        "image/class/label": "int64",
        "image/encoded": "binary",
        "name": "string",
        "raw": "list<item: binary>",
        "score": "float",
        "sizes": "list<item: int64>",
        "text": "list<item: string>",
        "__rest__": "binary",
    }


def test_values_are_in_their_columns(write: Write) -> None:
    full = {
        "boxes": float_feature([0.5, math.inf]),
        "image/class/label": int64_feature(-3),
        "image/encoded": bytes_feature(b"\xff"),
        "name": bytes_feature("ü"),
        "raw": bytes_feature([b"\0", b""]),
        "score": float_feature(0.25),
        "sizes": int64_feature([1, 2]),
        "text": bytes_feature(["a", "b"]),
    }
    rows = write([full, {"sizes": int64_feature([])}], ["a.b/c", "ü"]).read().to_pylist()
    assert rows[0] == {
        "__key__": "a.b/c",
        "__split__": "train",
        "boxes": [0.5, math.inf],
        "image/class/label": -3,
        "image/encoded": b"\xff",
        "name": "ü",
        "raw": [b"\0", b""],
        "score": 0.25,
        "sizes": [1, 2],
        "text": ["a", "b"],
        "__rest__": None,
    }
    assert rows[1] == {**dict.fromkeys(rows[0]), "__key__": "ü", "__split__": "train", "sizes": []}


def test_what_no_column_holds_is_in_the_rest(write: Write) -> None:
    strange = {
        "score": float_feature([1.0, 2.0]),
        "name": bytes_feature(b"\xff"),
        "sizes": unset_feature(),
        "__key__": bytes_feature("mine"),
        "vague": int64_feature(1),
    }
    (row,) = write([{**strange, "raw": bytes_feature("raw")}]).read().to_pylist()
    assert decode(row["__rest__"]) == strange
    assert row["raw"] == [b"raw"]
    assert row["__key__"] is row["score"] is row["name"] is row["sizes"] is None


def test_a_note_counts_records_with_a_rest(make_task: MakeTask) -> None:
    made = parquet(SCHEMA)
    payloads = [encode(each) for each in ({}, {"x": int64_feature(1)}, {"y": unset_feature()})]
    done = ShardConversion(made)(make_task(payloads))
    assert done.seen == 2


def test_row_groups_are_bounded(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_module, "_GROUP_ROWS", 3)
    monkeypatch.setattr(parquet_module, "_GROUP_BYTES", 1000)
    sizes = [1, 1, 1, 1, 900, 90, 5000, 1, 1]
    examples = [{"raw": bytes_feature(bytes(size))} for size in sizes]
    file = write(examples)
    groups = [file.metadata.row_group(each).num_rows for each in range(file.num_row_groups)]
    assert groups == [3, 2, 1, 1, 2]
    assert [len(row[0]) for row in file.read().column("raw").to_pylist()] == sizes


def test_a_key_that_is_not_utf_8_is_escaped(write: Write) -> None:
    assert write([{}], ["a\udcff"]).read().column("__key__").to_pylist() == ["a\\xff"]


def test_a_name_may_be_declared_once_only_as_a_column(write: Write) -> None:
    """Features of any name have columns, but for the empty name and those of other columns."""
    schema = "".join(
        f'feature {{ name: "{name}" type: INT }}\n' for name in ("", "a.b", "ü", "__rest__", "A")
    )
    made = parquet(schema)
    assert [each.name for each in made.columns] == ["A", "a.b", "ü"]
    example = {name: int64_feature(1) for name in ("", "a.b", "ü", "__rest__", "A")}
    (row,) = write([example], made=made).read().to_pylist()
    assert (row["A"], row["a.b"], row["ü"]) == ([1], [1], [1])
    assert decode(row["__rest__"]).keys() == {"", "__rest__"}


def test_the_metadata_says_where_the_records_are_from(write: Write) -> None:
    made = ParquetFormat((), json.dumps({"reference": "things@1.0.0"}))
    metadata = write([{}], made=made).schema_arrow.metadata
    assert json.loads(metadata[b"tfrecreg"]) == {"reference": "things@1.0.0"}
