"""The options of the source `table`, and the mapping of columns to features."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from tfrecreg.api import UsageError, media_kind, safe
from tfrecreg_table.values import text_of

FILE_KINDS = ("file", "image", "audio", "video")
"""Kinds of columns that name files."""
COLUMN_KINDS = ("int64", "float", "text", "bytes", "label", *FILE_KINDS, "skip")
_COLUMN = re.compile(
    r"(?P<name>.+?)(?::(?P<kind>[a-z0-9]+)(?:\((?P<pattern>[^()]*)\))?(?:=(?P<feature>.+))?)?",
    re.DOTALL,
)
_EXAMPLE = "--option 'columns=id:file(images/{}.jpg),breed:label,age:int64'"


class Mapped(NamedTuple):
    """What the option `columns` says of one column."""

    name: str
    """Of the column; ``*`` for all that are not named."""
    kind: str
    """One of :data:`COLUMN_KINDS`; empty if its values decide."""
    pattern: str
    """The path of a file below the raw folder, with ``{}`` for the value."""
    feature: str
    """The name of the feature, or what the names of several begin with; empty for the usual one."""

    def path(self, value: Any, folder: str = "") -> str:
        """The path of the file that a value names, from a folder on."""
        return folder + self.pattern.replace("{}", text_of(value)).removeprefix("./")


@dataclass(frozen=True)
class TableOptions:
    """Options of the source `table`."""

    file: tuple[str, ...] = ()
    """The tables, as `train.csv,test.csv`: paths below the raw folder. Default: those at its top
    that are named after splits, or the only one."""
    columns: tuple[str, ...] = ()
    """The columns to take, as `NAME:TYPE=FEATURE`: `id:int64,breed:label,id:file(images/{}.jpg)`.
    The type is `int64`, `float`, `text`, `bytes`, `label`, `file`, `image`, `audio`, `video` or
    `skip`; without one the values decide. `*` stands for all other columns. Default: all columns.
    """
    key: str | None = None
    """The column of the keys. Default: the column that names files, if it is the only one; else the
    number of the row."""
    split_column: str | None = None
    """The column of the splits. Default: each file is a split, by its name."""
    delimiter: str | None = None
    """The character between the cells of a CSV, or `tab`. Default: a tab in files named `.tsv`,
    else the first of comma, tab and semicolon that the first line has."""
    header: bool = True
    """Whether the first line of a CSV names the columns. Without a header they are `1`, `2`, …"""
    decimals: Literal["exact", "round"] = "exact"
    """Handling of fractions that float32 does not hold, in columns without a type. `exact`: text
    (CSV), or an error (JSON, Parquet). `round`: the next float32. Integers are never rounded."""
    missing: tuple[str, ...] = ()
    """Cells of a CSV that mean a missing value, such as `NA,null`; empty cells always do."""

    def __post_init__(self) -> None:
        if self.delimiter not in (None, "tab") and not re.fullmatch(
            r'[^"\s]', self.delimiter or ""
        ):
            raise UsageError(
                f"the option `delimiter` is `{safe(self.delimiter or '', limit=60)}`, expected one "
                "character or `tab`",
                hint="--option 'delimiter=;'",
            )
        if "" in (self.key, self.split_column):
            raise UsageError(
                "the options `key` and `split_column` take the name of a column, found none",
                hint="--option key=NAME",
            )
        self.mapping  # noqa: B018 - it is refused here, if it is wrong

    @property
    def mapping(self) -> tuple[Mapped, ...]:
        """The option `columns`, parsed."""
        found = tuple(_parse(text) for text in self.columns)
        seen: set[tuple[str, str, str]] = set()
        for each in found:
            place = (each.name, each.kind if each.kind in FILE_KINDS else "", each.feature)
            if place in seen:
                raise _wrong(each.name, "the column is named twice: give each a `=FEATURE`")
            seen.add(place)
        return found


def _parse(text: str) -> Mapped:
    match = _COLUMN.fullmatch(text.strip())
    if match is None:
        raise _wrong(text, "expected `NAME:TYPE`")
    name, kind, pattern, feature = (
        match[each] or "" for each in ("name", "kind", "pattern", "feature")
    )
    if kind and kind not in COLUMN_KINDS:
        raise _wrong(text, f"`{safe(kind, limit=30)}` is not one of {', '.join(COLUMN_KINDS)}")
    if match["pattern"] is not None and kind not in FILE_KINDS:
        raise _wrong(text, f"only {', '.join(FILE_KINDS)} take a path in parentheses")
    if kind in FILE_KINDS:
        pattern = pattern or "{}"
        if pattern.count("{}") != 1 or unsafe_path(pattern):
            raise _wrong(text, "expected a path below the raw folder with one `{}` for the value")
        if kind == "file" and not pattern.endswith("{}"):
            kind = media_kind(pattern)
    if name == "*" and (kind not in ("", "text") or feature):
        raise _wrong(text, "`*` stands for columns whose values decide, or for `text`")
    return Mapped(name, kind, pattern, feature)


def _wrong(text: str, problem: str) -> UsageError:
    return UsageError(
        f"the option `columns` has `{safe(text, limit=60)}`: {problem}", hint=_EXAMPLE
    )


def unsafe_path(path: str) -> bool:
    """Whether a path is absolute, leaves the raw folder, or could on some system."""
    parts = re.split(r"[/\\]", path)
    return (
        not path
        or not parts[0]
        or ".." in parts
        or "\0" in path
        or re.match(r"[A-Za-z]:", path) is not None
    )
