"""The source `huggingface`: every row of the Parquet files becomes one example."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from importlib.metadata import version
from itertools import repeat
from struct import Struct
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import msgspec

from tfrecreg.api import (
    Example,
    Feature,
    ImageError,
    Item,
    MissingExtraError,
    MissingFileError,
    ParquetReader,
    ParquetRows,
    RawDataError,
    RawFile,
    Remark,
    SkipImage,
    Skipped,
    Source,
    Storage,
    UsageError,
    Written,
    decode,
    did_you_mean,
    hidden_part,
    is_split_name,
    list_files,
    listed,
    missing_files,
    normal_splits,
    paths_remark,
    safe,
    splits_of_files,
)

if TYPE_CHECKING:
    from tfrecreg_huggingface.columns import Leaf

README = "README.md"
_KEY, _SPLIT, _REST = "__key__", "__split__", "__rest__"
"""Columns that `tfrecreg export` adds to the features."""
_SCHEMA = "schema.pbtxt"
_HEAD = "# The contract of a dataset made by the source `huggingface`. Tighten your copy.\n\n"
_OVERHEAD = 64
"""Estimated size in bytes of an example without its values."""
_PLACE = Struct("<IQ")
"""The state of an item: the number of its file, and the number of its row in this file."""


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
        entry = raw.stat(README, follow="all")
        is_file = entry is not None and entry.kind == "file"
        text = raw.read(README).decode("utf-8-sig", "replace") if is_file else ""
        self._header: Mapping[str, Any] = {}
        found = re.match(r"---[ \t]*\r?\n(.*?)(^---[ \t]*\r?$|\Z)", text, re.DOTALL | re.MULTILINE)
        if found is None:
            return
        try:
            import yaml
        except ImportError:
            raise MissingExtraError(f"reading the header of `{README}`", "yaml") from None
        try:
            self._header = yaml.safe_load(found[1]) or {}
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
        """The `dataset_info` of a configuration; empty if the README has no such information."""
        infos = _mappings(self._header.get("dataset_info"))
        named = [each for each in infos if str(each.get("config_name", "default")) == config]
        return (named or (infos if len(infos) == 1 else [{}]))[0]


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


class _Exported(msgspec.Struct):
    """The metadata of files that `tfrecreg export` wrote."""

    labels: dict[str, list[str]]


class _Known(NamedTuple):
    """The parts of the listing that a worker needs."""

    paths: Sequence[str]
    leaves: Sequence[Leaf]
    is_exported: bool


class Listing:
    """The Parquet files of one configuration, in order of their paths, with the facts in their
    footers and the features of their columns. The options or the README choose the configuration.
    """

    def __init__(self, raw: Storage, options: HuggingFaceOptions) -> None:
        self.readme = Readme(raw)
        sizes = {
            entry.path: entry.size
            for entry in list_files(raw)
            if entry.path.endswith(".parquet") and not hidden_part(entry.path)
        }
        if not sizes:
            raise RawDataError(f"`{raw.root}` holds no file `*.parquet`")
        self.config, config = _config(options.config, self.readme.configs(), sizes)
        splits = _splits(options, config, list(sizes))
        self.files = [DataFile(path, splits[path], sizes[path]) for path in sizes if path in splits]
        self.left_out = [path for path in sizes if path not in splits]
        """Files that belong to another configuration, or to no split."""
        self.missing = [*missing_files(sizes, splits)]
        """One entry for each file that a numbered set lacks."""
        self.arrow_schema: Any = None
        """The schema that all files share."""
        self.is_complete: dict[str, bool] = {}
        """Whether a column certainly has no null, by the column's path."""
        self.is_positive: dict[str, bool] = {}
        """Whether a column certainly has no negative number, by the column's path."""
        for each in self.files:
            with raw.open(each.path) as reader, ParquetReader(reader, each.path) as parquet:
                self._read_footer(each, parquet)
        self._plan(raw, options)

    def _read_footer(self, file: DataFile, parquet: ParquetReader) -> None:
        self.arrow_schema = self.arrow_schema or parquet.schema
        if not parquet.schema.equals(self.arrow_schema):
            odd = [*{*map(str, self.arrow_schema)} ^ {*map(str, parquet.schema)}]
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

    def _plan(self, raw: Storage, options: HuggingFaceOptions) -> None:
        """Find the columns, their features, the class names and the schema."""
        from tfrecreg_huggingface.columns import exported_columns, hub_types, plan_columns

        metadata, names = self.arrow_schema.metadata or {}, self.arrow_schema.names
        self.no_columns: Mapping[str, str] = {}
        """The reason for each column that is left out."""
        is_exported = options.restore and b"tfrecreg" in metadata and {_KEY, _REST} <= {*names}
        if is_exported:
            labels, self.schema = _exported(raw, metadata[b"tfrecreg"])
            self.labels: Mapping[str, Sequence[str]] = labels
            chosen = [name for name in names if name not in (_KEY, _SPLIT, _REST)]
            leaves = exported_columns(self, chosen)
        else:
            features = self.readme.info(self.config).get("features") or []
            leaves, self.no_columns = plan_columns(
                self, hub_types(metadata, features), options.columns
            )
            classes = [leaf for leaf in leaves if leaf.form == "class" and leaf.names]
            self.labels = {leaf.features[0]: leaf.names for leaf in classes}
            self.schema = _HEAD + "".join(leaf.schema() for leaf in leaves)
        self.known = _Known(tuple(each.path for each in self.files), leaves, is_exported)
        self.rows: Counter[str] = Counter()
        """Number of rows by split."""
        for each in self.files:
            self.rows[each.split] += each.rows


def _config(
    wanted: str, configs: Mapping[str, Mapping[str, Any]], sizes: Mapping[str, int]
) -> tuple[str, Mapping[str, Any]]:
    """The configuration: its name, and its entry in the README. The entry may be empty."""
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
        if not is_split_name(split):
            raise unusable_readme(f"the split `{split}` should have only letters, digits and `_`")
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


class HuggingFaceSource(Source):
    """Rows of Parquet files. An item's key is its file and row, or the value of a column.

    The parent reads only the footers and the column of keys.
    """

    Options: ClassVar[type[Any]] = HuggingFaceOptions

    def __init__(self, raw: Storage, options: HuggingFaceOptions) -> None:
        super().__init__(raw, options)
        self._opened: dict[int, ParquetRows] = {}

    def __reduce__(self) -> tuple[object, ...]:
        # The listing stays in the parent.
        return type(self), (self.raw, self.options), {"_known": self._known}

    @cached_property
    def _listing(self) -> Listing:
        return Listing(self.raw, self.options)

    @cached_property
    def _known(self) -> _Known:
        return self._listing.known

    def raw_files(self) -> Iterator[RawFile]:
        for each in self._listing.files:
            decoded = sum(size for _, size in each.groups)
            yield RawFile(each.path, each.size, max(each.size, decoded))

    def labels(self) -> Mapping[str, Sequence[str]]:
        return self._listing.labels

    def schema(self) -> str:
        return self._listing.schema

    def codecs(self) -> Mapping[str, str]:
        return {"pyarrow": version("pyarrow")}

    def items(self) -> Iterator[Item | Skipped | Remark]:
        files, left_out = self._listing.files, self._listing.left_out
        split = files[0].split
        if left_out:
            yield paths_remark(split, "SRC117", left_out, "Parquet files left out")
        for column, why in self._listing.no_columns.items():
            yield Remark(split, column, "SRC117", f"the column `{safe(column)}` {why}")
        yield from self._listing.missing
        yield from self._other_counts()
        seen: dict[str, set[str]] = {each.split: set() for each in files}
        for number, file in enumerate(files):
            if not file.rows:
                yield Remark(file.split, file.path, "SRC118", f"`{safe(file.path)}` has no rows")
            stem = file.path.rpartition(".")[0]
            sizes = (size // rows + _OVERHEAD for rows, size in file.groups for _ in range(rows))
            for at, (size, given) in enumerate(zip(sizes, self._keys(file), strict=False)):
                key = f"{stem}/{at:08}" if given is None else str(given)
                if given is None and self.options.key and not self._known.is_exported:
                    detail = f"the column of keys `{safe(self.options.key)}` has no value"
                    yield Skipped(file.split, key, "SRC114", detail)
                elif given is not None and key in seen[file.split]:
                    detail = f"row {at} has the same key as an earlier row"
                    yield Skipped(file.split, f"{key}#{file.path}#{at}", "SRC114", detail)
                else:
                    if given is not None:
                        seen[file.split].add(key)
                    yield Item(file.split, key, size, _PLACE.pack(number, at))

    def _other_counts(self) -> Iterator[Remark]:
        """Remarks on splits whose number of rows differs from the README."""
        found = self._listing.rows
        splits = _mappings(self._listing.readme.info(self._listing.config).get("splits"))
        said = {str(each.get("name")): each.get("num_examples") for each in splits}
        normal = normal_splits(said)
        for name, count in said.items() if not self.options.splits else ():
            rows = found[normal[name]]
            if type(count) is int and rows != count:
                detail = f"`{safe(name)}` has {rows:,} rows, but README.md says {count:,}"
                yield Remark(normal[name] if rows else min(found), name, "SRC120", detail)

    def _keys(self, file: DataFile) -> Iterator[Any]:
        """The key of each row; None for every row if no column has the keys."""
        column = _KEY if self._known.is_exported else self.options.key
        if not column:
            yield from repeat(None, file.rows)
            return
        with self.raw.open(file.path) as reader, ParquetReader(reader, file.path) as parquet:
            types = {each.name: str(each.type) for each in parquet.schema}
            if "<" in types.get(column, "<") or not re.search("string|int", types[column]):
                raise RawDataError(
                    f"the keys need a column `{column}` of texts or integers, but `{file.path}` "
                    f"has the columns {listed(types, most=20)}"
                )
            for group, (rows, _) in enumerate(file.groups):
                for batch in parquet.batches(group, [column]) if rows else ():
                    yield from batch.column(batch.schema.get_field_index(column)).to_pylist()

    def describe(self) -> Mapping[str, str]:
        files = self._listing.files
        found = {"configuration": safe(self._listing.config)}
        for split, rows in sorted(self._listing.rows.items()):
            count = sum(each.split == split for each in files)
            found[f"split {split}"] = f"rows: {rows:,}, files: {count}"
        columns = dict.fromkeys(leaf.column for leaf in self._known.leaves)
        found["columns"] = ", ".join(safe(name, limit=60) for name in columns)
        for column, why in self._listing.no_columns.items():
            found[f"left out {safe(column, limit=60)}"] = safe(why, limit=200)
        if self._known.is_exported:
            found["layout"] = "exported by tfrecreg: its records are restored"
        return found

    def example(self, item: Item) -> Example | Written | Skipped:
        from tfrecreg_huggingface.columns import cell_features

        known = self._known
        number, row = _PLACE.unpack(item.state)
        if number not in self._opened:
            columns = [leaf.column for leaf in known.leaves]
            names = [*dict.fromkeys(columns), *([_REST] if known.is_exported else [])]
            self._opened[number] = ParquetRows(self.raw, known.paths[number], names)
        cells, at = self._opened[number].row(row)
        features: dict[str, Feature] = {}
        remarks: list[Remark] = []
        if known.is_exported and (rest := cells[_REST][at].as_py()) is not None:
            features.update(decode(rest))
        rounds = self.options.float64 == "round"
        try:
            for leaf in known.leaves:
                made, remark = cell_features(leaf, cells[leaf.column], at, rounds)
                features.update(made)
                if remark:
                    remarks.append(Remark(item.split, item.key, "SRC014", remark))
        except (ImageError, SkipImage) as error:
            return Skipped(item.split, item.key, error.code, error.detail)
        return Written(features, remarks) if remarks else features


def _exported(raw: Storage, metadata: bytes) -> tuple[Mapping[str, Sequence[str]], str]:
    """The labels and the schema of files that `tfrecreg export` wrote."""
    try:
        labels = msgspec.json.decode(metadata, type=_Exported).labels
        schema = raw.read(_SCHEMA).decode()
    except (msgspec.DecodeError, UnicodeDecodeError, MissingFileError) as error:
        raise RawDataError(
            f"the files were exported by tfrecreg, but their metadata or their `{_SCHEMA}` cannot "
            f"be read: {error}",
            hint="--option restore=no reads them like other Parquet files",
        ) from None
    return {name: each for name, each in labels.items() if each}, schema
