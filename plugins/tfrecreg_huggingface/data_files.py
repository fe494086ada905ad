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
    listed,
    missing_files,
    normal_splits,
    safe,
    splits_of_files,
)
from tfrecreg_huggingface.huggingface_options import HuggingFaceOptions
from tfrecreg_huggingface.readme import Readme

_CHOOSE = "choose files: `--option splits=train=PATTERN,test=PATTERN`"


@dataclass
class DataFile:
    """A Parquet file."""

    path: str
    split: str
    size: int
    groups: list[tuple[int, int]] = field(default_factory=list)
    """Rows and decompressed bytes of each row group."""

    @property
    def rows(self) -> int:
        """The number of all rows."""
        return sum(rows for rows, _ in self.groups)


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

    def add(self, group: Any) -> None:
        """Add the statistics of a row group."""
        for column in map(group.column, range(group.num_columns)):
            path, found = column.path_in_schema, column.statistics
            complete = found is not None and found.has_null_count and found.null_count == 0
            self.is_complete[path] = self.is_complete.get(path, True) and complete
            is_integer = found is not None and found.physical_type in ("INT32", "INT64")
            lowest = found.min if is_integer and found.has_min_max else None
            positive = isinstance(lowest, int) and lowest >= 0
            self.is_positive[path] = self.is_positive.get(path, True) and positive


def find_data_files(raw: Storage, options: HuggingFaceOptions, readme: Readme) -> DataFiles:
    """The files of the configuration that the options or the README choose."""
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
            for group in map(metadata.row_group, range(metadata.num_row_groups)):
                each.groups.append((group.num_rows, group.total_byte_size))
                if group.num_rows:  # others have no statistics
                    footers.add(group)
    return footers


def _config(
    wanted: str, configs: Sequence[Mapping[str, Any]], sizes: Mapping[str, int]
) -> tuple[str, Mapping[str, Any]]:
    """The name of the configuration, and its entry in the README; an empty one for none."""
    named = {str(each.get("config_name", "default")): each for each in configs}
    if not wanted and not named:
        return "default", {}
    if not wanted:
        default = [name for name, each in named.items() if each.get("default") is True]
        if not default and "default" in named:
            default = ["default"]
        if len(named) > 1 and len(default) != 1:
            raise UsageError(
                f"the README has {len(named)} configurations: {listed(sorted(named))}",
                hint=f"choose one: --option config={safe(sorted(named)[0])}",
            )
        wanted = next(iter(default or named))
    if wanted in named:
        return wanted, named[wanted]
    if any(path.startswith(f"{wanted}/") for path in sizes):
        return wanted, {"data_dir": wanted}
    known = sorted({*named, *(path.partition("/")[0] for path in sizes if "/" in path)})
    raise UsageError(
        f"there is no configuration or folder `{safe(wanted)}`{did_you_mean(wanted, known)}",
        hint=f"there are {listed(known)}",
    )


def _splits(
    options: HuggingFaceOptions, config: Mapping[str, Any], paths: Sequence[str], name: str
) -> dict[str, str]:
    folder = str(config.get("data_dir") or "").strip("/")
    prefix = f"{folder}/" if folder not in ("", ".") else ""
    below = [path for path in paths if path.startswith(prefix)]
    if options.splits:
        return splits_of_files(below, options.splits)
    if config.get("data_files") is None:
        if not below:
            raise RawDataError(
                f"the folder `{safe(folder)}` of README.md has no Parquet files",
                hint="download it, or choose another one: `--option config=FOLDER`",
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
                hint=f"download these files, or {_CHOOSE}",
            )
        for path in taken:
            if chosen.setdefault(path, normal[split]) != normal[split]:
                raise RawDataError(
                    f"README.md has `{safe(path)}` in the splits `{safe(chosen[path])}` and "
                    f"`{safe(normal[split])}`",
                    hint=_CHOOSE,
                )
    return chosen


def _rules(found: Any, config: str) -> Iterator[tuple[str, str]]:
    """Splits and patterns of `data_files`."""
    if isinstance(found, dict):
        found = [{"split": split, "path": path} for split, path in found.items()]
    for each in found if isinstance(found, list) else [found]:
        rule = each if isinstance(each, dict) else {"split": "train", "path": each}
        split, patterns = rule.get("split"), rule.get("path")
        for pattern in patterns if isinstance(patterns, list) else [patterns]:
            if not (split and pattern):
                raise RawDataError(
                    f"README.md: `data_files` of the configuration `{safe(config)}` should have "
                    "a split and a path",
                    hint=f"correct it, or {_CHOOSE}",
                )
            yield str(split), str(pattern)


def _differs(first: str, path: str, expected: Any, found: Any) -> RawDataError:
    kinds = [{each.name: str(each.type) for each in schema} for schema in (expected, found)]
    names = [name for name in {**kinds[0], **kinds[1]} if kinds[0].get(name) != kinds[1].get(name)]
    odd = next(iter(names), "")
    was, now = (safe(each.get(odd, "missing")) for each in kinds)
    return RawDataError(
        f"`{safe(path)}` has other columns than `{safe(first)}`: `{safe(odd)}` is {now}, "
        f"expected {was}",
        hint="choose the files of one configuration: `--option config=FOLDER`, or splits=",
    )
