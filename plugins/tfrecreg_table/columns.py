"""Columns and what becomes of them: features, and their schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

from tfrecreg.api import MediaKind, media_schema
from tfrecreg_table.table_options import FILE_KINDS, Mapped

_TYPES = {"int64": "INT", "float": "FLOAT", "text": "BYTES", "bytes": "BYTES"}


class TableColumn(NamedTuple):
    """A column and what becomes of it."""

    name: str
    kind: str
    """One of `table_options.COLUMN_KINDS`, but for ``skip``."""
    feature: str
    """The name of its feature; what the names begin with where it names files."""
    mapped: Mapped
    missing: bool = False
    """Whether a row has no value."""
    lists: bool = False
    """Whether a row has a list."""

    @property
    def media(self) -> MediaKind:
        """The kind of the files that it names."""
        return cast(MediaKind, self.kind)

    @property
    def text_feature(self) -> str:
        """The feature of the class names beside that of the class numbers."""
        head, found, _ = self.feature.rpartition("class/label")
        if found and (not head or head.endswith("/")):
            return f"{head}class/text"
        return f"{self.feature}/text"

    @property
    def features(self) -> list[str]:
        """The names of its features; the common beginning of those of a file."""
        return [self.feature, self.text_feature] if self.kind == "label" else [self.feature]

    def schema(self, classes: Sequence[str]) -> Iterator[str]:
        """The schema (`.pbtxt` text) of its features, which every example has.

        One value is expected where every row has one and no list; a column with missing values has
        lists of none or one.
        """
        shape = "value_count { min: 0 max: 1 }" if self.missing else "shape {}"
        if self.lists:
            shape = "value_count { min: 0 }"
        if self.kind in FILE_KINDS:
            yield media_schema(self.media, _escaped(self.feature))
        elif self.kind == "label":
            most = max(len(classes) - 1, 0)
            domain = f"int_domain {{ min: 0 max: {most} is_categorical: true }}"
            yield _feature(self.feature, "INT", f"{shape} {domain}")
            yield _feature(self.text_feature, "BYTES", shape)
        else:
            yield _feature(self.feature, _TYPES[self.kind], shape)


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
