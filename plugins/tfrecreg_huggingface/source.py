"""The source `huggingface`: every row of the Parquet files becomes one example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import repeat
from struct import Struct
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import msgspec

from tfrecreg.api import (
    Example,
    Feature,
    ImageError,
    Item,
    ParquetReader,
    ParquetRows,
    RawDataError,
    RawFile,
    Remark,
    Skipped,
    Source,
    Storage,
    Written,
    decode,
    listed,
    normal_splits,
    safe,
)
from tfrecreg_huggingface.files import (
    DataFile,
    DataFiles,
    Footers,
    HuggingFaceOptions,
    Readme,
    find_data_files,
    read_footers,
)

if TYPE_CHECKING:
    from tfrecreg_huggingface.columns import Leaf

_KEY, _SPLIT, _REST = "__key__", "__split__", "__rest__"
"""Columns that `tfrecreg export` writes beside the features."""
_SCHEMA = "schema.pbtxt"
_OVERHEAD = 64
"""Estimated bytes of an example beside its values."""


_PLACE = Struct("<IQ")
"""The state of an item: the numbers of its file and of its row there."""


class _Context(NamedTuple):
    """What a worker needs to know of the listing."""

    paths: Sequence[str]
    leaves: Sequence[Leaf]
    is_exported: bool


@dataclass
class _Listing:
    found: DataFiles
    readme: Readme
    left_out: Mapping[str, str]
    """Columns, and why."""
    labels: Mapping[str, Sequence[str]]
    schema: str
    context: _Context


class HuggingFaceSource(Source):
    """Rows of Parquet files. An item's key is its file and row, or the value of a column.

    The parent reads the footers alone, and the column of keys.
    """

    Options: ClassVar[type[Any]] = HuggingFaceOptions

    def __init__(self, raw: Storage, options: HuggingFaceOptions) -> None:
        self._raw = raw
        self._options = options
        self._listing: _Listing | None = None
        self._context: _Context | None = None
        self._rows: dict[int, ParquetRows] = {}

    def __reduce__(self) -> tuple[object, ...]:
        # The listing stays in the parent. Workers need the context, also in a part of a build.
        return type(self), (self._raw, self._options), {"_context": self._known()}

    def raw_files(self) -> Iterator[RawFile]:
        for each in self._list().found.files:
            decoded = sum(size for _, size in each.groups)
            yield RawFile(each.path, each.size, max(each.size, decoded))

    def labels(self) -> Mapping[str, Sequence[str]]:
        return self._list().labels

    def items(self) -> Iterator[Item | Skipped | Remark]:
        listing = self._list()
        files, left_out = listing.found.files, listing.found.left_out
        split = files[0].split
        if left_out:
            detail = f"{len(left_out)} Parquet files are left out, the first `{safe(left_out[0])}`"
            if len(left_out) == 1:
                detail = f"1 Parquet file is left out, `{safe(left_out[0])}`"
            yield Remark(split, left_out[0], "SRC080", detail, len(left_out))
        for column, why in listing.left_out.items():
            yield Remark(split, column, "SRC080", f"the column `{safe(column)}` {why}")
        yield from listing.found.missing
        yield from self._other_counts()
        seen: dict[str, set[str]] = {each.split: set() for each in files}
        for number, file in enumerate(files):
            if not file.rows:
                yield Remark(file.split, file.path, "SRC059", f"`{safe(file.path)}` has no rows")
            stem = file.path.rpartition(".")[0]
            sizes = (size // rows + _OVERHEAD for rows, size in file.groups for _ in range(rows))
            for at, (size, given) in enumerate(zip(sizes, self._keys(file), strict=False)):
                key = f"{stem}/{at:08}" if given is None else str(given)
                if given is None and self._options.key and not self._known().is_exported:
                    detail = f"`{safe(self._options.key)}` has no value"
                    yield Skipped(file.split, key, "SRC083", detail)
                elif given is not None and key in seen[file.split]:
                    detail = f"another row has this key already; this is row {at}"
                    yield Skipped(file.split, f"{key}#{file.path}#{at}", "SRC083", detail)
                else:
                    if given is not None:
                        seen[file.split].add(key)
                    yield Item(file.split, key, size, _PLACE.pack(number, at))

    def schema(self) -> str:
        return self._list().schema

    def describe(self) -> Mapping[str, str]:
        """Summary of the raw data, for `--dry-run`."""
        listing = self._list()
        found = {"configuration": safe(listing.found.config)}
        for split, rows in self._counts().items():
            files = [each for each in listing.found.files if each.split == split]
            some = "1 row" if rows == 1 else f"{rows:,} rows"
            where = "1 file" if len(files) == 1 else f"{len(files)} files"
            found[f"split {split}"] = f"{some} in {where}"
        columns = dict.fromkeys(leaf.column for leaf in listing.context.leaves)
        found["columns"] = ", ".join(safe(name, limit=60) for name in columns)
        for column, why in listing.left_out.items():
            found[f"left out {safe(column, limit=60)}"] = safe(why, limit=200)
        for key, value in listing.readme.suggestions(listing.found.config).items():
            found[f"{key}, for datasets/NAME.toml"] = value
        if listing.context.is_exported:
            found["layout"] = "exported by tfrecreg: its records are restored"
        return found

    def codecs(self) -> Mapping[str, str]:
        """The library that decodes the files."""
        return {"pyarrow": version("pyarrow")}

    def example(self, item: Item) -> Example | Written | Skipped:
        from tfrecreg_huggingface.columns import UnusableValue, cell_features

        context = self._known()
        number, row = _PLACE.unpack(item.state)
        if number not in self._rows:
            columns = dict.fromkeys(leaf.column for leaf in context.leaves)
            names = [*columns, _REST] if context.is_exported else list(columns)
            self._rows[number] = ParquetRows(self._raw, context.paths[number], names)
        cells, at = self._rows[number].row(row)
        features: dict[str, Feature] = {}
        remarks: list[Remark] = []
        if context.is_exported and (rest := cells[_REST][at].as_py()) is not None:
            features.update(decode(rest))
        try:
            for leaf in context.leaves:
                rounds = self._options.float64 == "round"
                made, remark = cell_features(leaf, cells[leaf.column], at, rounds)
                features.update(made)
                if remark:
                    remarks.append(Remark(item.split, item.key, "SRC014", remark))
        except (ImageError, UnusableValue) as error:
            return Skipped(item.split, item.key, error.code, error.detail)
        return Written(features, remarks) if remarks else features

    def _counts(self) -> dict[str, int]:
        """The number of rows of each split, in order of their names."""
        rows: Counter[str] = Counter()
        for each in self._list().found.files:
            rows[each.split] += each.rows
        return dict(sorted(rows.items()))

    def _other_counts(self) -> Iterator[Remark]:
        """Splits that do not have as many rows as the README says."""
        if self._options.splits:
            return
        listing, found = self._list(), self._counts()
        said = listing.readme.examples(listing.found.config)
        normal = normal_splits(list(said))
        for name, count in said.items():
            rows = found.get(normal[name], 0)
            if rows != count:
                detail = f"README.md says {count:,} rows of `{safe(name)}`, the files have {rows:,}"
                yield Remark(normal[name] if rows else min(found), name, "SRC084", detail)

    def _keys(self, file: DataFile) -> Iterator[Any]:
        """The key of each row; None where it has none of its own."""
        column = _KEY if self._known().is_exported else self._options.key
        if not column:
            yield from repeat(None, file.rows)
            return
        with self._raw.open(file.path) as reader, ParquetReader(reader, file.path) as parquet:
            if column not in parquet.schema.names:
                raise RawDataError(
                    f"there is no column `{safe(column)}`, which the option `key` names",
                    hint=f"the columns are {listed(parquet.schema.names, most=20)}",
                )
            kind = str(parquet.schema.field(column).type)
            if kind.removeprefix("large_") != "string" and "int" not in kind:
                raise RawDataError(
                    f"the column `{safe(column)}` of `{safe(file.path)}` is {kind}, and keys are "
                    "texts or integers",
                    hint="name another one: `--option key=NAME`",
                )
            for group, (rows, _) in enumerate(file.groups):
                for batch in parquet.batches(group, [column]) if rows else ():
                    yield from batch.column(batch.schema.get_field_index(column)).to_pylist()

    def _known(self) -> _Context:
        if self._context is None:
            self._context = self._list().context
        return self._context

    def _list(self) -> _Listing:
        if self._listing is None:
            from tfrecreg_huggingface.columns import hub_types, plan_columns  # imports pyarrow

            readme = Readme(self._raw)
            found = find_data_files(self._raw, self._options, readme)
            footers = read_footers(self._raw, found.files)
            exported = self._exported(footers)
            left_out: Mapping[str, str] = {}
            if exported is not None:
                leaves, labels, schema = exported
            else:
                features = readme.info(found.config).get("features") or []
                types = hub_types(footers.schema.metadata or {}, features)
                leaves, left_out = plan_columns(footers, types, self._options.columns)
                classes = [leaf for leaf in leaves if leaf.form == "class" and leaf.names]
                labels = {leaf.features[0]: leaf.names for leaf in classes}
                schema = _HEAD + "".join(leaf.schema() for leaf in leaves)
            paths = tuple(each.path for each in found.files)
            context = _Context(paths, leaves, exported is not None)
            self._listing = _Listing(found, readme, left_out, labels, schema, context)
        return self._listing

    def _exported(
        self, footers: Footers
    ) -> tuple[Sequence[Leaf], Mapping[str, Sequence[str]], str] | None:
        """Columns, labels and schema of files that `tfrecreg export` wrote; None for others."""
        from tfrecreg_huggingface.columns import exported_columns

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
        return leaves, labels, schema


class _Exported(msgspec.Struct):
    labels: dict[str, list[str]]


_BESIDE = (_KEY, _SPLIT, _REST)
_HEAD = "# The contract of a dataset made by the source `huggingface`. Tighten your copy.\n\n"
