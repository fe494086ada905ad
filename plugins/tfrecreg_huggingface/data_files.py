"""The Parquet files of a configuration, their splits, and what their footers say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from tfrecreg.api import (
    ParquetReader,
    RawDataError,
    Skipped,
    Storage,
    UsageError,
    did_you_mean,
    missing_files,
    normal_splits,
    safe,
    splits_of_files,
)
from tfrecreg_huggingface.huggingface_options import HuggingFaceOptions
from tfrecreg_huggingface.readme import Readme

MAX_GROUP_BYTES = 2 << 30
"""Bytes of a row group, decompressed: it is in memory as a whole."""


@dataclass
class DataFile:
    """A Parquet file."""

    path: str
    split: str
    size: int
    groups: list[Any] = field(default_factory=list)
    """Rows and decompressed bytes of each row group."""


class DataFiles(NamedTuple):
    """The Parquet files of a folder."""

    config: str
    """The name of the configuration."""
    files: list[DataFile]
    """In order of their paths."""
    left_out: list[str]
    """Those of other configurations, or of no split."""
    missing: list[Skipped]
    """One for each numbered set that lacks files."""


@dataclass
class Footers:
    """What the footers of all files say."""

    schema: Any = None
    """The Arrow schema, which all files share."""
    is_complete: dict[str, bool] = field(default_factory=dict)
    """By the path of a column: whether no value is null, for all that is known."""
    is_positive: dict[str, bool] = field(default_factory=dict)
    """By the path of a column: whether no number is negative, for all that is known."""


def find_data_files(raw: Storage, options: HuggingFaceOptions, readme: Readme) -> DataFiles:
    """The files of the configuration that the options or the README choose."""
    here = raw.stat("")
    if here is None or here.kind != "dir":
        raise RawDataError(
            f"no such folder: `{safe(raw.root, limit=4096)}`",
            hint="name the folder of the dataset with `--raw`",
        )
    sizes: dict[str, int] = {}
    for entry in raw.list():
        name = entry.path.rpartition("/")[2]
        if name.endswith(".parquet") and not name.startswith("."):
            found = raw.stat(entry.path, follow="all") if entry.kind == "link" else entry
            if found is None or found.kind != "file":
                raise RawDataError(
                    f"`{safe(entry.path)}` is a link that leads to no file",
                    hint="fetch the file, or remove the link",
                )
            sizes[entry.path] = found.size
    if not sizes:
        raise RawDataError(
            f"`{safe(raw.root, limit=4096)}` holds no file `*.parquet`",
            hint="name the folder of the dataset with `--raw`",
        )
    name, chosen = _config(options.config, readme.configs(), sizes)
    splits = _splits(options, chosen, list(sizes), name)
    files = [DataFile(path, splits[path], sizes[path]) for path in sizes if path in splits]
    left_out = [path for path in sizes if path not in splits]
    return DataFiles(name, files, left_out, [*missing_files(sizes, splits)])


def read_footers(raw: Storage, files: Sequence[DataFile]) -> Footers:
    """What the footers say, also put into the files."""
    footers = Footers()
    for each in files:
        with raw.open(each.path) as reader, ParquetReader(reader, each.path) as parquet:
            metadata, schema = parquet.metadata, parquet.schema
            if footers.schema is None:
                footers.schema = schema
            elif not schema.equals(footers.schema):
                raise _differs(files[0].path, each.path, footers.schema, schema)
            for number in range(metadata.num_row_groups):
                if metadata.row_group(number).num_rows:  # others have no statistics
                    _add_statistics(footers, metadata.row_group(number))
            each.groups = parquet.groups()
            for number, group in enumerate(each.groups):
                if group.bytes > MAX_GROUP_BYTES:
                    raise RawDataError(
                        f"row group {number} of `{safe(each.path)}` has {group.bytes} bytes, more "
                        f"than the {MAX_GROUP_BYTES} that are read at once",
                        hint="write the file with smaller row groups: "
                        "`pyarrow.parquet.write_table(…, row_group_size=100)`",
                    )
    return footers


def _add_statistics(footers: Footers, group: Any) -> None:
    for position in range(group.num_columns):
        column = group.column(position)
        path = column.path_in_schema
        statistics = column.statistics
        complete = statistics is not None and statistics.has_null_count
        complete = complete and statistics.null_count == 0
        footers.is_complete[path] = footers.is_complete.get(path, True) and complete
        lowest = None
        if statistics is not None and statistics.physical_type in ("INT32", "INT64"):
            lowest = statistics.min if statistics.has_min_max else None
        positive = isinstance(lowest, int) and lowest >= 0
        footers.is_positive[path] = footers.is_positive.get(path, True) and positive


def _config(
    wanted: str, configs: Sequence[Mapping[str, Any]], sizes: Mapping[str, int]
) -> tuple[str, Mapping[str, Any]]:
    """The name of the configuration, and its entry in the README; an empty one for none."""
    named = {str(each.get("config_name", "default")): each for each in configs}
    if wanted:
        if wanted in named:
            return wanted, named[wanted]
        if any(path.startswith(f"{wanted}/") for path in sizes):
            return wanted, {"data_dir": wanted}
        known = sorted({*named, *(path.partition("/")[0] for path in sizes if "/" in path)})
        raise UsageError(
            f"there is no configuration or folder `{safe(wanted)}`{did_you_mean(wanted, known)}",
            hint=f"there are {_listed(known)}",
        )
    if not named:
        return "default", {}
    if len(named) > 1:
        default = [
            name for name, each in named.items() if each.get("default") is True or name == "default"
        ]
        if len(default) != 1:
            raise UsageError(
                f"the README has {len(named)} configurations: {_listed(sorted(named))}",
                hint=f"choose one: --option config={safe(sorted(named)[0])}",
            )
        return default[0], named[default[0]]
    return next(iter(named.items()))


def _splits(
    options: HuggingFaceOptions, config: Mapping[str, Any], paths: Sequence[str], name: str
) -> dict[str, str]:
    folder = str(config.get("data_dir") or "").strip("/")
    prefix = f"{folder}/" if folder and folder != "." else ""
    below = [path for path in paths if path.startswith(prefix)]
    if options.splits:
        return splits_of_files(below, options.splits)
    if config.get("data_files") is None:
        if not below:
            raise RawDataError(
                f"the folder `{safe(folder)}` of README.md has no Parquet files",
                hint="download it, too; or choose another one: `--option config=FOLDER`",
            )
        # Words of the folder are those of the configuration.
        found = splits_of_files([path[len(prefix) :] for path in below])
        return {prefix + path: split for path, split in found.items()}
    chosen: dict[str, str] = {}
    rules = list(_rules(config["data_files"], name))
    normal = normal_splits(sorted({split for split, _ in rules}))
    for split, pattern in rules:
        whole = prefix + pattern.removeprefix("./")
        taken = [path for path in below if path == whole or fnmatchcase(path, whole)]
        if not taken:
            raise RawDataError(
                f"README.md names `{safe(pattern)}` for the split `{safe(split)}`, which no "
                "Parquet file here matches",
                hint="download these files, too; or choose others: `--option splits=train=PATTERN`",
            )
        for path in taken:
            if chosen.setdefault(path, normal[split]) != normal[split]:
                raise RawDataError(
                    f"README.md has `{safe(path)}` in the splits `{safe(chosen[path])}` and "
                    f"`{safe(normal[split])}`",
                    hint="choose: `--option splits=train=PATTERN,test=PATTERN`",
                )
    return chosen


def _rules(found: Any, config: str) -> Iterator[tuple[str, str]]:
    """Splits and patterns of `data_files`."""
    if isinstance(found, dict):
        found = [{"split": split, "path": path} for split, path in found.items()]
    for each in found if isinstance(found, list) else [found]:
        is_rule = isinstance(each, dict)
        split: Any = each.get("split") if is_rule else "train"
        patterns: Any = each.get("path") if is_rule else each
        for pattern in patterns if isinstance(patterns, list) else [patterns]:
            if not (isinstance(split, str) and split and isinstance(pattern, str) and pattern):
                raise RawDataError(
                    f"README.md: `data_files` of the configuration `{safe(config)}` should have "
                    "a split and a path",
                    hint="correct it, or choose files: `--option splits=train=PATTERN`",
                )
            yield split, pattern


def _differs(first: str, path: str, expected: Any, found: Any) -> RawDataError:
    names: list[str] = [*expected.names, *found.names]
    odd = next(
        (
            name
            for name in names
            if expected.names.count(name) != found.names.count(name)
            or expected.field(name).type != found.field(name).type
        ),
        names[0] if names else "",
    )
    kinds = [
        str(schema.field(odd).type) if odd in schema.names else "missing"
        for schema in (expected, found)
    ]
    return RawDataError(
        f"`{safe(path)}` has other columns than `{safe(first)}`: `{safe(odd)}` is "
        f"{safe(kinds[1])}, expected {safe(kinds[0])}",
        hint="choose the files of one configuration: `--option config=FOLDER`, or splits=",
    )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{safe(name, limit=60)}`" for name in names[:8])
    return shown + (f" and {len(names) - 8} more" if len(names) > 8 else "")
