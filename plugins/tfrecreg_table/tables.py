"""The options of the source `table`, and the tables of a raw folder with their splits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tfrecreg.api import (
    RawDataError,
    RawPreview,
    Storage,
    UsageError,
    listed,
    media_kind,
    normal_splits,
    safe,
)

FILE_KINDS = ("file", "image", "audio", "video")
"""Types of columns that name files."""
COLUMN_KINDS = ("int64", "float", "text", "bytes", "label", *FILE_KINDS, "skip")
FOUND_SUFFIXES = ("csv", "tsv", "jsonl", "ndjson", "parquet")
"""Suffixes of tables that are found without being named."""
JSON_SUFFIXES = ("jsonl", "ndjson", "json")
FILE_NAME = "file_name"
"""The column of files in Hugging Face's folders of images, sounds or videos."""
METADATA_SUFFIXES = ("csv", "jsonl", "parquet")
DEFAULT_SPLIT = "train"
_USUAL_SPLITS = ("train", "validation", "test")
_COLUMN = re.compile(
    r"(?P<name>.+?)(?::(?P<kind>[a-z0-9]+)(?:\((?P<pattern>[^()]*)\))?(?:=(?P<feature>.+))?)?",
    re.DOTALL,
)


class Mapped(NamedTuple):
    """What the option `columns` says of one column."""

    name: str
    """Of the column; ``*`` for all that are not named."""
    kind: str = ""
    """One of :data:`COLUMN_KINDS`; empty if its values decide."""
    pattern: str = ""
    """The path of a file, with ``{}`` for the value."""
    feature: str = ""
    """The name of the feature, or what the names of several begin with; empty for the usual one."""

    def path(self, value: str, folder: str = "") -> str:
        """The path of the file that a value names, from a folder on."""
        return folder + self.pattern.replace("{}", value).removeprefix("./")


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
        if self.delimiter and not re.fullmatch(r'tab|[^"\s]', self.delimiter):
            raise UsageError(
                f"the option `delimiter` is `{safe(self.delimiter, limit=60)}`, expected one "
                "character or `tab`",
                hint="--option 'delimiter=;'",
            )
        self.mapping  # noqa: B018 - it is refused here, if it is wrong

    @property
    def mapping(self) -> tuple[Mapped, ...]:
        """The option `columns`, parsed."""
        return tuple(map(_parse, self.columns))


def _parse(text: str) -> Mapped:
    match = _COLUMN.fullmatch(text.strip())
    found = Mapped(*(match[at] or "" for at in range(1, 5))) if match else Mapped("")
    is_file = found.kind in FILE_KINDS
    if is_file:
        found = found._replace(pattern=found.pattern or "{}")
        if found.kind == "file" and not found.pattern.endswith("{}"):
            found = found._replace(kind=media_kind(found.pattern))
    is_star = found.name == "*"
    if (
        not found.name
        or found.kind not in ("", *COLUMN_KINDS)
        or (is_file and (found.pattern.count("{}") != 1 or unsafe_path(found.pattern)))
        or (found.pattern and not is_file)
        or (is_star and (found.kind not in ("", "text") or found.feature))
    ):
        raise UsageError(
            f"the option `columns` has `{safe(text, limit=60)}`, expected `NAME`, `NAME:TYPE` or "
            f"`NAME:TYPE=FEATURE`, `*` or `*:text`; types: {listed(COLUMN_KINDS, most=20)}; those "
            "of files may have a path with one `{}`",
            hint="--option 'columns=id:file(images/{}.jpg),breed:label,age:int64'",
        )
    return found


def unsafe_path(path: str) -> bool:
    """Whether a path is absolute, leaves the raw folder, or could on some system."""
    parts = re.split(r"[/\\]", path)
    is_drive = re.match(r"[A-Za-z]:", path) is not None
    return not parts[0] or ".." in parts or "\0" in path or is_drive


class TableFile(NamedTuple):
    """One table."""

    path: str
    split: str
    """By its name; the default one if a column has the splits."""
    size: int
    names_files: bool = False
    """Whether it is one of a table of metadata, which names files from its folder on."""

    @property
    def folder(self) -> str:
        """What comes before the paths of files that it names."""
        return self.path[: self.path.rfind("/") + 1] if self.names_files else ""

    @property
    def has_types(self) -> bool:
        """Whether its values have types of their own."""
        return suffix_of(self.path) in (*JSON_SUFFIXES, "parquet")


def suffix_of(path: str) -> str:
    """The suffix of a file, in lower case, without the dot."""
    return path.rpartition("/")[2].rpartition(".")[2].lower()


def find_tables(raw: Storage, options: TableOptions) -> tuple[list[TableFile], list[str]]:
    """The tables to read, and other tables beside them."""
    by_name = options.split_column is None
    paths = list(options.file)
    named: list[str] = []
    left: list[str] = []
    if not paths:
        entries = [each.path for each in raw.list("", recursive=False)]
        paths = sorted(path for path in entries if is_found_table(path))
        paths = [path for path in paths if file_size(raw, path) is not None]
        if by_name:
            named, _ = metadata_tables(RawPreview(raw))
            taken = named or (split_tables(paths) if len(paths) > 1 else paths)
            left = [path for path in paths if path not in taken]
            paths = taken or paths
    files = []
    for path in paths:
        size = None if unsafe_path(path) else file_size(raw, path)
        if size is None or suffix_of(path) not in (*FOUND_SUFFIXES, "tab", "txt", "json"):
            break
        folder = path.rpartition("/")[0]
        split = _split_of(f"{folder}." if path in named else path) if by_name else DEFAULT_SPLIT
        if not split and len(paths) > 1:
            raise RawDataError(
                f"`{safe(path, limit=200)}`, one of {len(paths)} tables, is not named after a split"
                f": expected {listed(_USUAL_SPLITS, word='or')} at the beginning",
                hint="--option file=train.csv,test.csv names the tables, "
                "--option split_column=NAME the column of the splits",
            )
        files.append(TableFile(path, split or DEFAULT_SPLIT, size, path in named))
    if len(files) != len(paths) or not files:
        what = f"no table `{safe(paths[len(files)], limit=200)}`" if paths else "no table"
        raise RawDataError(
            f"`{safe(raw.root, limit=4096)}` holds {what}: expected "
            f"{', '.join(f'.{each}' for each in FOUND_SUFFIXES)}",
            hint="name the folder with --raw, and a table of another name with --option file=",
        )
    return files, left


def is_found_table(name: str) -> bool:
    """Whether a file at the top of the raw folder is a table without being named."""
    return suffix_of(name) in FOUND_SUFFIXES and not name.startswith(".")


def split_tables(paths: Sequence[str]) -> list[str]:
    """Those that are named after a usual split."""
    return [path for path in paths if _split_of(path)]


def _split_of(path: str) -> str:
    """The usual split that a file is named after: `train` for `train-1.csv`. Empty for none."""
    name = path.rpartition("/")[2]
    match = re.match(r"([A-Za-z]+)(?:[-_.0-9].*)?\.", name, re.DOTALL)
    split = normal_splits([match[1]])[match[1]] if match else ""
    return split if split in _USUAL_SPLITS else ""


def is_split_folder(path: str) -> bool:
    """Whether a folder is named after a usual split."""
    return normal_splits([path])[path] in _USUAL_SPLITS


def file_size(raw: Storage, path: str) -> int | None:
    """The size of a file, links followed; None if there is none."""
    seen = raw.stat(path, follow="all")
    return None if seen is None or seen.kind != "file" else seen.size


def metadata_tables(preview: RawPreview) -> tuple[list[str], list[str]]:
    """The tables in folders of splits that name the files beside them, or the one at the top; the
    images, sounds and videos beside them.
    """
    tables, media = [], []
    below = [path for path in preview.below() if media_kind(path) != "file"]
    for folder in ("", *filter(is_split_folder, preview.folders())):
        top = f"{folder}/" if folder else ""
        for path in (f"{top}metadata.{suffix}" for suffix in METADATA_SUFFIXES):
            is_parquet = path.endswith("parquet")
            data = preview.end(path) if is_parquet else preview.start(path).partition(b"\n")[0]
            beside = [each for each in below if each.startswith(top)]
            if beside and re.search(rb"\bfile_name\b", data):
                tables.append(path)
                media += beside
                break
    return [each for each in tables if "/" in each] or tables, media
