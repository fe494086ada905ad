"""The tables of a raw folder, and the split that each is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tfrecreg.api import RawDataError, Storage, media_kind, normal_splits, safe
from tfrecreg_table.rows import suffix_of
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
    def has_types(self) -> bool:
        """Whether its values have types of their own."""
        return suffix_of(self.path) in ("jsonl", "ndjson", "json", "parquet")


def find_tables(raw: Storage, options: TableOptions) -> tuple[list[TableFile], list[str]]:
    """The tables to read, and other tables beside them."""
    if options.file:
        return _with_splits([_named(raw, path) for path in options.file], options), []
    found: dict[str, int] = {}
    for entry in raw.list("", recursive=False):
        if suffix_of(entry.path) in FOUND_SUFFIXES and not entry.path.startswith("."):
            size = file_size(raw, entry.path)
            if size is not None:
                found[entry.path] = size
    paths = sorted(found)
    if options.split_column is None and (tables := _metadata(raw)):
        named = [each.path for each in tables]
        return tables, [path for path in paths if path not in named]
    root = safe(raw.root, limit=4096)
    if not paths:
        raise RawDataError(
            f"`{root}` holds no table: expected {', '.join(f'.{each}' for each in FOUND_SUFFIXES)}",
            hint="name the folder with --raw, and a table of another name by `--option file=`",
        )
    taken = paths
    if options.split_column is None and len(paths) > 1:
        taken = split_tables(paths)
    if not taken:
        names = ", ".join(f"`{safe(path, limit=60)}`" for path in paths[:4])
        raise RawDataError(
            f"`{root}` holds {len(paths)} tables, none named after a split: {names}",
            hint="--option file=train.csv names one; a table per split: "
            "--option file=train.csv,test.csv",
        )
    left = [path for path in paths if path not in taken]
    return _with_splits([(path, found[path]) for path in taken], options), left


def file_size(raw: Storage, path: str) -> int | None:
    """The size of a file, links followed; None if there is none."""
    seen = raw.stat(path, follow="all")
    return None if seen is None or seen.kind != "file" else seen.size


def has_file_names(path: str, start: bytes, end: bytes) -> bool:
    """Whether a table has the column :data:`FILE_NAME`, by its first or its last bytes."""
    data = end if suffix_of(path) == "parquet" else start.partition(b"\n")[0]
    return _NAMES_FILES.search(data) is not None


def is_split_folder(path: str) -> bool:
    """Whether a folder is named after a usual split."""
    return normal_splits([path])[path] in _USUAL


def split_tables(paths: Sequence[str]) -> list[str]:
    """Those that are named after a usual split."""
    return [path for path in paths if _split_by_name(path) in _USUAL]


def _split_by_name(path: str) -> str:
    """The split that a file is named after: `train` for `train-00001.csv`. Empty for none."""
    match = _STEM.fullmatch(path.rpartition("/")[2].rpartition(".")[0])
    return normal_splits([match[1]])[match[1]] if match is not None else ""


def _metadata(raw: Storage) -> list[TableFile]:
    """The tables in folders of splits that name the files beside them, or the one at the top."""
    entries = raw.list("", recursive=False)
    splits = [each.path for each in entries if each.kind != "file" and is_split_folder(each.path)]
    found = []
    for folder in ("", *sorted(splits)):
        split = normal_splits([folder])[folder] if folder else UNNAMED_SPLIT
        names = [f"{folder}/{name}" if folder else name for name in METADATA]
        sizes = {path: size for path in names if (size := file_size(raw, path)) is not None}
        for path, size in sizes.items():
            with raw.open(path) as file:
                start = file.read_at(0, _LOOKED_INTO)
                end = file.read_at(max(size - _LOOKED_INTO, 0), _LOOKED_INTO)
            if has_file_names(path, start, end) and any(
                media_kind(each.path) != "file" for each in raw.list(folder)
            ):
                found.append(TableFile(path, split, size, True))
                break
    return [each for each in found if each.folder] or found


def _named(raw: Storage, path: str) -> tuple[str, int]:
    size = None if unsafe_path(path) else file_size(raw, path)
    if size is None:
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
    return path, size


def _with_splits(files: Sequence[tuple[str, int]], options: TableOptions) -> list[TableFile]:
    made = []
    for path, size in files:
        split = _split_by_name(path) if options.split_column is None else UNNAMED_SPLIT
        if split not in _USUAL and len(files) > 1:
            raise RawDataError(
                f"the table `{safe(path, limit=200)}` is not named after a split: expected "
                "`train`, `validation` or `test` at the beginning of its name",
                hint="rename it, or name the column of the splits with `--option split_column=`",
            )
        made.append(TableFile(path, split if split in _USUAL else UNNAMED_SPLIT, size))
    return made
