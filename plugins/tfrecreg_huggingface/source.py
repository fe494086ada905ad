"""The source `huggingface`: every row of the Parquet files becomes one example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import repeat
from typing import Any, ClassVar

import msgspec

from tfrecreg.api import (
    Example,
    ImageError,
    Item,
    RawDataError,
    RawFile,
    Remark,
    Skipped,
    Source,
    Storage,
    Written,
    decode,
    normal_splits,
    safe,
)
from tfrecreg_huggingface.cells import Cells, UnusableValue
from tfrecreg_huggingface.columns import ColumnPlan, Leaf, exported_columns, plan_columns
from tfrecreg_huggingface.data_files import (
    DataFile,
    DataFiles,
    Footers,
    find_data_files,
    read_footers,
)
from tfrecreg_huggingface.hub_types import HubTypes, types_from_metadata, types_from_readme
from tfrecreg_huggingface.huggingface_options import HuggingFaceOptions
from tfrecreg_huggingface.readme import Readme, read_readme
from tfrecreg_huggingface.row_groups import MEMORY_BYTES, RowGroups, read_keys

_KEY, _SPLIT, _REST = "__key__", "__split__", "__rest__"
"""Columns that `tfrecreg export` writes beside the features."""
_SCHEMA = "schema.pbtxt"
_OVERHEAD = 64
"""Estimated bytes of an example beside its values."""


class _Place(msgspec.Struct, array_like=True):
    """The data of an item beside its key, packed as MessagePack into its state."""

    file: int
    group: int
    row: int
    rows: int
    """How many the row group has."""


class _Context(msgspec.Struct, frozen=True):
    """What a worker needs to know of the listing."""

    paths: tuple[str, ...]
    leaves: tuple[Leaf, ...]
    in_memory: bool
    is_exported: bool


@dataclass
class _Listing:
    found: DataFiles
    readme: Readme
    columns: ColumnPlan
    labels: Mapping[str, Sequence[str]]
    schema: str


_PLACE = msgspec.msgpack.Decoder(_Place)


class HuggingFaceSource(Source):
    """Rows of Parquet files. An item's key is its file and row, or the value of a column.

    The parent reads the footers alone. An item carries its row group and its row.
    """

    Options: ClassVar[type[Any]] = HuggingFaceOptions

    def __init__(self, raw: Storage, options: HuggingFaceOptions) -> None:
        self._raw = raw
        self._options = options
        self._listing: _Listing | None = None
        self._context: _Context | None = None
        self._groups: RowGroups | None = None
        self._cells: Cells | None = None

    def __reduce__(self) -> tuple[object, ...]:
        # The listing stays in the parent, and decoded rows where they are. Workers need the
        # context, also in a part of a build, which lists nothing.
        return type(self), (self._raw, self._options), {"_context": self._known()}

    def raw_files(self) -> Iterator[RawFile]:
        for each in self._list().found.files:
            decoded = sum(group.bytes for group in each.groups)
            yield RawFile(each.path, each.size, max(each.size, decoded))

    def labels(self) -> Mapping[str, Sequence[str]]:
        return self._list().labels

    def items(self) -> Iterator[Item | Skipped | Remark]:
        listing = self._list()
        files, left_out = listing.found.files, listing.found.left_out
        split = files[0].split
        if left_out:
            first, times = left_out[0], len(left_out)
            some = "1 Parquet file is left out," if times == 1 else f"{times} Parquet files are "
            some += "" if times == 1 else "left out, the first"
            detail = f"{some} `{safe(first)}`"
            yield Remark(split, first, "SRC080", detail, times)
        for column, why in listing.columns.left_out.items():
            yield Remark(split, column, "SRC080", f"the column `{safe(column)}` {why}")
        yield from listing.found.missing
        yield from self._other_counts()
        for each in files:
            if not any(group.rows for group in each.groups):
                yield Remark(each.split, each.path, "SRC059", f"`{safe(each.path)}` has no rows")
        seen: dict[str, set[str]] = {each.split: set() for each in files}
        for number, file in enumerate(files):
            stem = file.path.rpartition(".")[0]
            at = 0
            for group, keys in zip(range(len(file.groups)), self._keys(file), strict=False):
                rows, size = file.groups[group]
                estimate = size // max(rows, 1) + _OVERHEAD
                for row in range(rows):
                    key = f"{stem}/{at:08}"
                    at += 1
                    if keys is not None:
                        given = keys[row]
                        if given is None and not self._known().is_exported:
                            detail = f"`{safe(self._options.key)}` has no value"
                            yield Skipped(file.split, key, "SRC083", detail)
                            continue
                        key = key if given is None else str(given)
                        if key in seen[file.split]:
                            detail = f"another row has this key already; this is row {at - 1}"
                            where = f"{key}#{file.path}#{at - 1}"
                            yield Skipped(file.split, where, "SRC083", detail)
                            continue
                        seen[file.split].add(key)
                    state = msgspec.msgpack.encode(_Place(number, group, row, rows))
                    yield Item(file.split, key, estimate, state)

    def schema(self) -> str:
        return self._list().schema

    def describe(self) -> Mapping[str, str]:
        """Summary of the raw data, for `--dry-run`."""
        listing = self._list()
        found = {"configuration": safe(listing.found.config)}
        for split, rows in self._rows().items():
            files = [each for each in listing.found.files if each.split == split]
            some = "1 row" if rows == 1 else f"{rows:,} rows"
            where = "1 file" if len(files) == 1 else f"{len(files)} files"
            found[f"split {split}"] = f"{some} in {where}"
        columns = dict.fromkeys(leaf.column for leaf in listing.columns.leaves)
        found["columns"] = ", ".join(safe(name, limit=60) for name in columns)
        for column, why in listing.columns.left_out.items():
            found[f"left out {safe(column, limit=60)}"] = safe(why, limit=200)
        for key, value in listing.readme.suggestions(listing.found.config).items():
            found[f"{key}, for datasets/NAME.toml"] = value
        if self._known().is_exported:
            found["layout"] = "exported by tfrecreg: its records are restored"
        return found

    def codecs(self) -> Mapping[str, str]:
        """The library that decodes the files."""
        return {"pyarrow": version("pyarrow")}

    def example(self, item: Item) -> Example | Written | Skipped:
        context = self._known()
        place = _PLACE.decode(item.state)
        if self._groups is None:
            columns = dict.fromkeys(leaf.column for leaf in context.leaves)
            names = [*columns, *([_REST] if context.is_exported else [])]
            self._groups = RowGroups(self._raw, context.paths, names, context.in_memory)
            self._cells = Cells(self._options.float64 == "round")
        assert self._cells is not None
        cells = self._groups.row(place.file, place.group, place.row, place.rows)
        features: Example = {}
        remarks: list[Remark] = []
        if context.is_exported:
            (rest,) = cells[_REST].to_pylist()
            features = {} if rest is None else decode(rest)
        try:
            for leaf in context.leaves:
                made, remark = self._cells.features(leaf, cells[leaf.column])
                features = {**features, **made}
                if remark:
                    remarks.append(Remark(item.split, item.key, "SRC014", remark))
        except (ImageError, UnusableValue) as error:
            return Skipped(item.split, item.key, error.code, error.detail)
        return Written(features, remarks) if remarks else features

    def _rows(self) -> dict[str, int]:
        """The number of rows of each split, in order of their names."""
        rows: Counter[str] = Counter()
        for each in self._list().found.files:
            rows[each.split] += sum(group.rows for group in each.groups)
        return dict(sorted(rows.items()))

    def _other_counts(self) -> Iterator[Remark]:
        """Splits that do not have as many rows as the README says."""
        if self._options.splits:
            return
        listing, found = self._list(), self._rows()
        said = listing.readme.examples(listing.found.config)
        normal = normal_splits(list(said))
        for name, count in said.items():
            rows = found.get(normal[name], 0)
            if rows != count:
                detail = f"README.md says {count:,} rows of `{safe(name)}`, the files have {rows:,}"
                yield Remark(normal[name] if rows else min(found), name, "SRC084", detail)

    def _keys(self, file: DataFile) -> Iterator[list[Any] | None]:
        """The keys of each row group; None where rows have no keys of their own."""
        column = _KEY if self._known().is_exported else self._options.key
        if not column:
            return repeat(None, len(file.groups))
        return iter(read_keys(self._raw, file.path, column))

    def _known(self) -> _Context:
        if self._context is None:
            self._list()
            assert self._context is not None
        return self._context

    def _list(self) -> _Listing:
        if self._listing is None:
            readme = read_readme(self._raw)
            found = find_data_files(self._raw, self._options, readme)
            files = found.files
            footers = read_footers(self._raw, files)
            exported = self._exported(footers)
            if exported is not None:
                columns, labels, schema = exported
            else:
                types = self._types(footers, readme, found.config)
                columns = plan_columns(footers, types, self._options.columns)
                classes = [leaf for leaf in columns.leaves if leaf.form == "class" and leaf.names]
                labels = {leaf.label: leaf.names for leaf in classes}
                schema = _HEAD + "".join(leaf.schema() for leaf in columns.leaves)
            size = sum(group.bytes for each in files for group in each.groups)
            self._context = _Context(
                paths=tuple(each.path for each in files),
                leaves=columns.leaves,
                in_memory=size <= MEMORY_BYTES,
                is_exported=exported is not None,
            )
            self._listing = _Listing(found, readme, columns, labels, schema)
        return self._listing

    def _types(self, footers: Footers, readme: Readme, config: str) -> HubTypes:
        """Images, class names and so on: those of the README, and before them of the files."""
        metadata = footers.schema.metadata or {}
        found = dict(types_from_readme(readme.info(config).get("features") or []))
        if b"huggingface" in metadata:
            found.update(types_from_metadata(metadata[b"huggingface"]))
        return found

    def _exported(
        self, footers: Footers
    ) -> tuple[ColumnPlan, Mapping[str, Sequence[str]], str] | None:
        """Columns, labels and schema of files that `tfrecreg export` wrote; None for others."""
        metadata = footers.schema.metadata or {}
        names = footers.schema.names
        if not (self._options.restore and b"tfrecreg" in metadata and {_KEY, _REST} <= {*names}):
            return None
        hint = "export it again, or read the rows as any others: --option restore=no"
        found = self._raw.stat(_SCHEMA, follow="all")
        if found is None or found.kind != "file":
            raise RawDataError(
                f"the files were exported by tfrecreg, but `{_SCHEMA}` is missing beside them",
                hint=hint,
            )
        try:
            document = msgspec.json.decode(metadata[b"tfrecreg"], type=_Exported)
            schema = self._raw.read(_SCHEMA).decode()
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise RawDataError(
                "the files were exported by tfrecreg, but their metadata cannot be read: "
                f"{safe(str(error), limit=200)}",
                hint=hint,
            ) from None
        chosen = [name for name in names if name not in _BESIDE]
        leaves = exported_columns(footers, chosen)
        labels = {name: each for name, each in document.labels.items() if each}
        return ColumnPlan(leaves, {}), labels, schema


class _Exported(msgspec.Struct):
    labels: dict[str, list[str]]


_BESIDE = (_KEY, _SPLIT, _REST)
_HEAD = "# The contract of a dataset made by the source `huggingface`. Tighten your copy.\n\n"
