"""The schema of a table, made from its columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tfrecreg.api import media_schema
from tfrecreg_table.table_options import FILE_KINDS
from tfrecreg_table.values import TableColumn

_TYPES = {"int64": "INT", "float": "FLOAT", "text": "BYTES", "bytes": "BYTES"}


def table_schema(columns: Sequence[TableColumn], labels: Mapping[str, Sequence[str]]) -> str:
    """The schema (`.pbtxt` text) of the examples.

    Every feature is there. One value is expected where every row has one and no list; a column with
    missing values has lists of none or one.
    """
    return "".join(text for column in columns for text in _features(column, labels))


def _features(column: TableColumn, labels: Mapping[str, Sequence[str]]) -> Iterator[str]:
    if column.lists:
        shape = "value_count { min: 0 }"
    elif column.missing:
        shape = "value_count { min: 0 max: 1 }"
    else:
        shape = "shape {}"
    if column.kind in FILE_KINDS:
        yield media_schema(column.media, _escaped(column.feature))
    elif column.kind == "label":
        most = max(len(labels[column.feature]) - 1, 0)
        domain = f"int_domain {{ min: 0 max: {most} is_categorical: true }}"
        yield _feature(column.feature, "INT", f"{shape} {domain}")
        yield _feature(column.text_feature, "BYTES", shape)
    else:
        yield _feature(column.feature, _TYPES[column.kind], shape)


def _feature(name: str, kind: str, more: str) -> str:
    return (
        f'feature {{\n  name: "{_escaped(name)}"\n  type: {kind}\n'
        f"  presence {{ min_fraction: 1 min_count: 1 }}\n  {more}\n}}\n"
    )


def _escaped(name: str) -> str:
    """A name in a text of protocol buffers: what is not plain becomes octal bytes."""
    return "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}"
        for byte in name.encode("utf-8", "backslashreplace")
    )
