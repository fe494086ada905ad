"""The tables of a raw folder, and the split that each is."""

from __future__ import annotations

import re
import weakref
from collections.abc import Sequence
from typing import NamedTuple

from tfrecreg.api import RawDataError, Reader, Storage, media_kind, normal_splits, open_local, safe
from tfrecreg_table.csv_rows import CsvRows
from tfrecreg_table.json_rows import JsonRows
from tfrecreg_table.parquet_rows import ParquetRows
from tfrecreg_table.rows import RowReader
from tfrecreg_table.table_options import TableOptions, unsafe_path

TABLE_SUFFIXES = ("csv", "tsv", "tab", "txt", "jsonl", "ndjson", "json", "parquet")
FOUND_SUFFIXES = ("csv", "tsv", "jsonl", "ndjson", "parquet")
"""Suffixes of tables that are found without being named."""
UNNAMED_SPLIT = "train"
FILE_NAME = "file_name"
"""The column of files in :data:`METADATA`."""
METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
"""Tables of Hugging Face's folders of images, sounds or videos."""
_NAMES_FILES = re.compile(rb"\bfile_name\b")
_LOOKED_INTO = 1 << 16
_STEM = re.compile(r"([A-Za-z]+)(?:[-_.0-9].*)?", re.DOTALL)
_USUAL = ("train", "validation", "test")
_HINT = "--option file=train.csv names one; a table a split: --option file=train.csv,test.csv"


class TableFile(NamedTuple):
    """One table."""

    path: str
    """Below the raw folder."""
    split: str
    """By its name; the default one if a column has the splits."""
    size: int
    """In bytes."""
    names_files: bool = False
    """Whether it is one of :data:`METADATA`, whose files are named from its folder on."""

    @property
    def folder(self) -> str:
        """What comes before the paths of files that it names."""
        return self.path[: self.path.rfind("/") + 1] if self.names_files else ""

    @property
    def suffix(self) -> str:
        """In lower case, without the dot."""
        return suffix_of(self.path)

    @property
    def has_types(self) -> bool:
        """Whether its values have types of their own."""
        return self.suffix in ("jsonl", "ndjson", "json", "parquet")


def suffix_of(path: str) -> str:
    """What follows the last dot, in lower case."""
    return path.rpartition(".")[2].lower()


def open_rows(
    raw: Storage, path: str, options: TableOptions, wanted: Sequence[str] | None = None
) -> RowReader:
    """The reader of a table."""
    file: Reader = open_local(raw, path)
    try:
        made = _rows_of(file, path, options, wanted)
    except BaseException:
        file.close()
        raise
    weakref.finalize(made, file.close)
    return made


def _rows_of(
    file: Reader, path: str, options: TableOptions, wanted: Sequence[str] | None
) -> RowReader:
    suffix = suffix_of(path)
    if suffix == "parquet":
        return ParquetRows(file, path, wanted)
    if suffix in ("jsonl", "ndjson", "json"):
        return JsonRows(file, path)
    delimiter = "\t" if options.delimiter == "tab" else options.delimiter or ""
    return CsvRows(file, path, delimiter, options.header, options.missing)


def find_tables(raw: Storage, options: TableOptions) -> tuple[list[TableFile], list[str]]:
    """The tables to read, and other tables beside them."""
    root = safe(raw.root, limit=4096)
    if options.file:
        return _with_splits([_named(raw, path) for path in options.file], options), []
    found: list[tuple[str, int]] = []
    for entry in raw.list("", recursive=False):
        if suffix_of(entry.path) in FOUND_SUFFIXES and not entry.path.startswith("."):
            seen = raw.stat(entry.path, follow="all") if entry.kind == "link" else entry
            if seen is not None and seen.kind == "file":
                found.append((entry.path, seen.size))
    found.sort()
    if options.split_column is None and (tables := _metadata(raw)):
        paths = {each.path for each in tables}
        return tables, [path for path, _ in found if path not in paths]
    if not found:
        raise RawDataError(
            f"`{root}` holds no table: expected {', '.join(f'.{each}' for each in FOUND_SUFFIXES)}",
            hint="name the folder with --raw, and a table of another name by `--option file=`",
        )
    if options.split_column is not None or len(found) == 1:
        taken = found
    else:
        named = split_tables([path for path, _ in found])
        taken = [each for each in found if each[0] in named]
    if not taken:
        names = ", ".join(f"`{safe(path, limit=60)}`" for path, _ in found[:4])
        raise RawDataError(
            f"`{root}` holds {len(found)} tables, none named after a split: {names}", hint=_HINT
        )
    left = [path for path, _ in found if (path, _) not in taken]
    return _with_splits(taken, options), left


def has_file_names(path: str, start: bytes, end: bytes) -> bool:
    """Whether a table has the column :data:`FILE_NAME`, by its first or its last bytes."""
    data = end if suffix_of(path) == "parquet" else start.partition(b"\n")[0]
    return _NAMES_FILES.search(data) is not None


def is_split_folder(path: str) -> bool:
    """Whether a folder is named after a usual split."""
    return normal_splits([path])[path] in _USUAL


def _metadata(raw: Storage) -> list[TableFile]:
    """The tables in folders of splits that name the files beside them, or the one at the top."""
    entries = list(raw.list("", recursive=False))
    splits = [each.path for each in entries if each.kind != "file" and is_split_folder(each.path)]
    found = [
        TableFile(path, normal_splits([folder])[folder] if folder else UNNAMED_SPLIT, size, True)
        for folder in ("", *sorted(splits))
        for path, size in _metadata_of(raw, folder)
    ]
    return [each for each in found if each.folder] or found


def _metadata_of(raw: Storage, folder: str) -> list[tuple[str, int]]:
    for name in METADATA:
        path = f"{folder}/{name}" if folder else name
        seen = raw.stat(path, follow="all")
        if seen is None or seen.kind != "file":
            continue
        with raw.open(path) as file:
            start = file.read_at(0, _LOOKED_INTO)
            end = file.read_at(max(seen.size - _LOOKED_INTO, 0), _LOOKED_INTO)
        if has_file_names(path, start, end) and any(
            media_kind(each.path) != "file" for each in raw.list(folder)
        ):
            return [(path, seen.size)]
    return []


def _named(raw: Storage, path: str) -> tuple[str, int]:
    seen = None if unsafe_path(path) else raw.stat(path, follow="all")
    if seen is None or seen.kind != "file":
        raise RawDataError(
            f"the table `{safe(path, limit=200)}` is not in `{safe(raw.root, limit=4096)}`",
            hint="`file` takes paths below the raw folder",
        )
    if suffix_of(path) not in TABLE_SUFFIXES:
        raise RawDataError(
            f"`{safe(path, limit=200)}` does not have the suffix of a table: expected "
            + ", ".join(f".{each}" for each in TABLE_SUFFIXES),
            hint="rename it",
        )
    return path, seen.size


def split_by_name(path: str) -> str:
    """The split that a file is named after: `train` for `train-00001.csv`. Empty for none."""
    match = _STEM.fullmatch(path.rpartition("/")[2].rpartition(".")[0])
    return normal_splits([match[1]])[match[1]] if match is not None else ""


def split_tables(paths: Sequence[str]) -> list[str]:
    """Those that are named after a usual split."""
    return [path for path in paths if split_by_name(path) in _USUAL]


def _with_splits(files: Sequence[tuple[str, int]], options: TableOptions) -> list[TableFile]:
    if options.split_column is not None or len(files) == 1:
        alone = split_by_name(files[0][0])
        split = alone if alone in _USUAL and options.split_column is None else UNNAMED_SPLIT
        return [TableFile(path, split, size) for path, size in files]
    made = []
    for path, size in files:
        split = split_by_name(path)
        if split not in _USUAL:
            raise RawDataError(
                f"the table `{safe(path, limit=200)}` is not named after a split: expected "
                "`train`, `validation` or `test` at the beginning of its name",
                hint="rename it, or name the column of the splits with `--option split_column=`",
            )
        made.append(TableFile(path, split, size))
    return made
