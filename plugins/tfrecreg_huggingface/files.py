"""The options of the source `huggingface`, the header of `README.md`, and the Parquet files of a
configuration with their splits and footers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

from tfrecreg.api import (
    MissingExtraError,
    ParquetReader,
    RawDataError,
    Storage,
    UsageError,
    did_you_mean,
    hidden_part,
    list_files,
    listed,
    missing_files,
    normal_splits,
    safe,
    splits_of_files,
)

README = "README.md"


@dataclass(frozen=True)
class HuggingFaceOptions:
    """Options of the source `huggingface`."""

    config: str = ""
    """The configuration (subset) to read, as `README.md` names it, or a folder of Parquet files.
    Default: the only configuration, or the one that the README marks as its default.
    """
    splits: tuple[str, ...] = ()
    """The splits, each as `SPLIT=PATTERN`. The first pattern that matches a file's path decides;
    files without a match are left out. Default: the README and the names of the files decide.
    """
    columns: tuple[str, ...] = ()
    """Read only these columns. By default all are read."""
    key: str = ""
    """The column of texts or integers whose values are the keys of the items. Default: a key is the
    path of the file and the number of the row.
    """
    float64: Literal["exact", "round"] = "exact"
    """Handling of 64-bit floats that 32 bits cannot hold exactly: refuse or round them."""
    restore: bool = True
    """Whether to restore the original records of a folder that `tfrecreg export` wrote."""


class Readme:
    """The header of `README.md`, a block of YAML."""

    def __init__(self, raw: Storage) -> None:
        found = raw.stat(README, follow="all")
        is_file = found is not None and found.kind == "file"
        lines = raw.read(README).decode("utf-8-sig", "replace").splitlines() if is_file else []
        self._header: Mapping[str, Any] = {}
        if not lines or lines[0].rstrip() != "---":
            return
        end = next((at for at, line in enumerate(lines) if at and line.rstrip() == "---"), None)
        try:
            import yaml
        except ImportError:
            raise MissingExtraError(f"reading the header of `{README}`", "yaml") from None
        try:
            self._header = yaml.safe_load("\n".join(lines[1:end])) or {}
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            why = " ".join(str(error).split())
            raise unusable_readme(f"its header is not YAML: {why}") from None
        if not isinstance(self._header, dict):
            raise unusable_readme("its header should be a mapping")

    def configs(self) -> dict[str, Mapping[str, Any]]:
        """The configurations with their files, by name."""
        found = _mappings(self._header.get("configs"))
        return {str(each.get("config_name", "default")): each for each in found}

    def info(self, config: str) -> Mapping[str, Any]:
        """The `dataset_info` of a configuration; empty without one."""
        infos = _mappings(self._header.get("dataset_info"))
        named = [each for each in infos if str(each.get("config_name", "default")) == config]
        return (named or (infos if len(infos) == 1 else [{}]))[0]

    def examples(self, config: str) -> dict[str, int]:
        """The number of rows of each split, if known."""
        return {
            str(each["name"]): each["num_examples"]
            for each in _mappings(self.info(config).get("splits"))
            if each.get("name") and type(each.get("num_examples")) is int
        }


def _mappings(found: Any) -> list[Mapping[str, Any]]:
    every = found if isinstance(found, list) else [found]
    return [each for each in every if isinstance(each, dict)]


def unusable_readme(why: str) -> RawDataError:
    return RawDataError(
        f"`{README}` cannot be used; correct or remove it: {safe(why, limit=300)}",
        hint="--option splits=train=PATTERN,test=PATTERN selects the files instead of the README",
    )


@dataclass
class DataFile:
    path: str
    split: str
    size: int
    groups: list[tuple[int, int]] = field(default_factory=list)
    """Rows and decompressed bytes of each row group."""

    @property
    def rows(self) -> int:
        return sum(rows for rows, _ in self.groups)


class DataFiles:
    """The Parquet files of the configuration that the options or the README choose, in order of
    their paths, and the facts in their footers.
    """

    def __init__(self, raw: Storage, options: HuggingFaceOptions, readme: Readme) -> None:
        sizes = {
            entry.path: entry.size
            for entry in list_files(raw)
            if entry.path.endswith(".parquet") and not hidden_part(entry.path)
        }
        if not sizes:
            raise RawDataError(f"`{raw.root}` holds no file `*.parquet`")
        self.config, config = _config(options.config, readme.configs(), sizes)
        splits = _splits(options, config, list(sizes))
        self.files = [DataFile(path, splits[path], sizes[path]) for path in sizes if path in splits]
        self.left_out = [path for path in sizes if path not in splits]
        """Files that belong to another configuration, or to no split."""
        self.missing = [*missing_files(sizes, splits)]
        """One entry for each file that a numbered set lacks."""
        self.schema: Any = None
        """The Arrow schema, which all files share."""
        self.is_complete: dict[str, bool] = {}
        """Whether a column certainly has no null, by the column's path."""
        self.is_positive: dict[str, bool] = {}
        """Whether a column certainly has no negative number, by the column's path."""
        for each in self.files:
            with raw.open(each.path) as reader, ParquetReader(reader, each.path) as parquet:
                self._read_footer(each, parquet)

    def _read_footer(self, file: DataFile, parquet: ParquetReader) -> None:
        self.schema = self.schema or parquet.schema
        if not parquet.schema.equals(self.schema):
            odd = [*{*map(str, self.schema)} ^ {*map(str, parquet.schema)}]
            raise RawDataError(
                f"`{file.path}` has other columns than `{self.files[0].path}`: "
                f"{listed(sorted(odd), most=4)}; `config` selects the files of a configuration"
            )
        for group in map(parquet.metadata.row_group, range(parquet.metadata.num_row_groups)):
            file.groups.append((group.num_rows, group.total_byte_size))
            # Empty groups have no statistics.
            for column in map(group.column, range(group.num_columns if group.num_rows else 0)):
                path, found = column.path_in_schema, column.statistics
                complete = found is not None and found.has_null_count and found.null_count == 0
                self.is_complete[path] = self.is_complete.get(path, True) and complete
                is_integer = found is not None and found.physical_type in ("INT32", "INT64")
                lowest = found.min if is_integer and found.has_min_max else None
                positive = isinstance(lowest, int) and lowest >= 0
                self.is_positive[path] = self.is_positive.get(path, True) and positive


def _config(
    wanted: str, configs: Mapping[str, Mapping[str, Any]], sizes: Mapping[str, int]
) -> tuple[str, Mapping[str, Any]]:
    """The name of the configuration, and its entry in the README, which may be empty."""
    known = sorted({*configs, *(path.partition("/")[0] for path in sizes if "/" in path)})
    if not wanted and not configs:
        return "default", {}
    if not wanted:
        default = [name for name, each in configs.items() if each.get("default") is True]
        default = default or [name for name in configs if name == "default" or len(configs) == 1]
        wanted = default[0] if len(default) == 1 else ""
    if wanted in configs:
        return wanted, configs[wanted]
    if any(path.startswith(f"{wanted}/") for path in sizes):
        return wanted, {"data_dir": wanted}
    raise UsageError(
        f"there is no configuration or folder `{safe(wanted)}`{did_you_mean(wanted, known)}"
        if wanted
        else f"the README has {len(configs)} configurations",
        hint=f"choose one with `--option config=`: {listed(known)}",
    )


def _splits(
    options: HuggingFaceOptions, config: Mapping[str, Any], paths: Sequence[str]
) -> dict[str, str]:
    folder = str(config.get("data_dir") or "").strip("/")
    prefix = f"{folder}/" if folder not in ("", ".") else ""
    below = [path for path in paths if path.startswith(prefix)]
    if options.splits:
        return splits_of_files(below, options.splits)
    if not below:
        raise unusable_readme(f"the folder `{folder}` has no Parquet files")
    if config.get("data_files") is None:
        # A word in the folder's name belongs to the configuration, not to a split.
        found = splits_of_files([path[len(prefix) :] for path in below])
        return {prefix + path: split for path, split in found.items()}
    chosen: dict[str, str] = {}
    rules = list(_rules(config["data_files"]))
    normal = normal_splits(sorted({split for split, _ in rules}))
    for split, pattern in rules:
        whole = prefix + pattern.removeprefix("./")
        taken = [path for path in below if path == whole or fnmatchcase(path, whole)]
        if not taken:
            raise unusable_readme(f"no Parquet file matches `{pattern}` of the split `{split}`")
        for path in taken:
            if chosen.setdefault(path, normal[split]) != normal[split]:
                raise unusable_readme(f"`{path}` is in the splits `{chosen[path]}` and `{split}`")
    return chosen


def _rules(found: Any) -> Iterator[tuple[str, str]]:
    """Splits and patterns of `data_files`."""
    if isinstance(found, dict):
        found = [{"split": split, "path": path} for split, path in found.items()]
    for each in found if isinstance(found, list) else [found]:
        rule = each if isinstance(each, dict) else {"split": "train", "path": each}
        split, patterns = rule.get("split"), rule.get("path")
        for pattern in patterns if isinstance(patterns, list) else [patterns]:
            if not (split and pattern):
                raise unusable_readme("`data_files` should have splits and paths")
            yield str(split), str(pattern)
