"""The source `huggingface`: every row of the Parquet files becomes one example."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
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
    MissingFileError,
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
    HuggingFaceOptions,
    Readme,
)

if TYPE_CHECKING:
    from tfrecreg_huggingface.columns import Leaf

_KEY, _SPLIT, _REST = "__key__", "__split__", "__rest__"
"""Columns that `tfrecreg export` adds to the features."""
_SCHEMA = "schema.pbtxt"
_HEAD = "# The contract of a dataset made by the source `huggingface`. Tighten your copy.\n\n"
_OVERHEAD = 64
"""Estimated size in bytes of an example without its values."""
_PLACE = Struct("<IQ")
"""The state of an item: the number of its file, and the number of its row in this file."""


class _Exported(msgspec.Struct):
    """The metadata of files that `tfrecreg export` wrote."""

    labels: dict[str, list[str]]


class _Known(NamedTuple):
    """The parts of the listing that a worker needs."""

    paths: Sequence[str]
    leaves: Sequence[Leaf]
    is_exported: bool


class _Listing:
    """The files and the features of their columns, according to the README and the footers."""

    def __init__(self, raw: Storage, options: HuggingFaceOptions) -> None:
        from tfrecreg_huggingface.columns import exported_columns, hub_types, plan_columns

        self.readme = Readme(raw)
        self.found = DataFiles(raw, options, self.readme)
        metadata, names = self.found.schema.metadata or {}, self.found.schema.names
        self.left_out: Mapping[str, str] = {}
        """The reason for each column that is left out."""
        is_exported = options.restore and b"tfrecreg" in metadata and {_KEY, _REST} <= {*names}
        if is_exported:
            labels, self.schema = _exported(raw, metadata[b"tfrecreg"])
            self.labels: Mapping[str, Sequence[str]] = labels
            chosen = [name for name in names if name not in (_KEY, _SPLIT, _REST)]
            leaves = exported_columns(self.found, chosen)
        else:
            features = self.readme.info(self.found.config).get("features") or []
            types = hub_types(metadata, features)
            leaves, self.left_out = plan_columns(self.found, types, options.columns)
            classes = [leaf for leaf in leaves if leaf.form == "class" and leaf.names]
            self.labels = {leaf.features[0]: leaf.names for leaf in classes}
            self.schema = _HEAD + "".join(leaf.schema() for leaf in leaves)
        self.known = _Known(tuple(each.path for each in self.found.files), leaves, is_exported)
        self.rows: Counter[str] = Counter()
        """Number of rows by split."""
        for each in self.found.files:
            self.rows[each.split] += each.rows


class HuggingFaceSource(Source):
    """Rows of Parquet files. An item's key is its file and row, or the value of a column.

    The parent reads only the footers and the column of keys.
    """

    Options: ClassVar[type[Any]] = HuggingFaceOptions

    def __init__(self, raw: Storage, options: HuggingFaceOptions) -> None:
        self._raw = raw
        self._options = options
        self._opened: dict[int, ParquetRows] = {}

    def __reduce__(self) -> tuple[object, ...]:
        # The listing stays in the parent.
        return type(self), (self._raw, self._options), {"_known": self._known}

    @cached_property
    def _listing(self) -> _Listing:
        return _Listing(self._raw, self._options)

    @cached_property
    def _known(self) -> _Known:
        return self._listing.known

    def raw_files(self) -> Iterator[RawFile]:
        for each in self._listing.found.files:
            decoded = sum(size for _, size in each.groups)
            yield RawFile(each.path, each.size, max(each.size, decoded))

    def labels(self) -> Mapping[str, Sequence[str]]:
        return self._listing.labels

    def schema(self) -> str:
        return self._listing.schema

    def codecs(self) -> Mapping[str, str]:
        return {"pyarrow": version("pyarrow")}

    def items(self) -> Iterator[Item | Skipped | Remark]:
        files, left_out = self._listing.found.files, self._listing.found.left_out
        split = files[0].split
        if left_out:
            detail = f"Parquet files are left out, the first of them `{safe(left_out[0])}`"
            yield Remark(split, left_out[0], "SRC117", detail, len(left_out))
        for column, why in self._listing.left_out.items():
            yield Remark(split, column, "SRC117", f"the column `{safe(column)}` {why}")
        yield from self._listing.found.missing
        yield from self._other_counts()
        seen: dict[str, set[str]] = {each.split: set() for each in files}
        for number, file in enumerate(files):
            if not file.rows:
                yield Remark(file.split, file.path, "SRC118", f"`{safe(file.path)}` has no rows")
            stem = file.path.rpartition(".")[0]
            sizes = (size // rows + _OVERHEAD for rows, size in file.groups for _ in range(rows))
            for at, (size, given) in enumerate(zip(sizes, self._keys(file), strict=False)):
                key = f"{stem}/{at:08}" if given is None else str(given)
                if given is None and self._options.key and not self._known.is_exported:
                    detail = f"the column of keys `{safe(self._options.key)}` has no value"
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
        said = self._listing.readme.examples(self._listing.found.config)
        normal = normal_splits(list(said))
        for name, count in said.items() if not self._options.splits else ():
            rows = found[normal[name]]
            if rows != count:
                detail = f"`{safe(name)}` has {rows:,} rows, but README.md says {count:,}"
                yield Remark(normal[name] if rows else min(found), name, "SRC120", detail)

    def _keys(self, file: DataFile) -> Iterator[Any]:
        """The key of each row; None for every row if no column has the keys."""
        column = _KEY if self._known.is_exported else self._options.key
        if not column:
            yield from repeat(None, file.rows)
            return
        with self._raw.open(file.path) as reader, ParquetReader(reader, file.path) as parquet:
            types = {each.name: str(each.type) for each in parquet.schema}
            if "<" in types.get(column, "<") or not re.search("string|int", types[column]):
                raise RawDataError(
                    f"`{file.path}` has no column `{column}` of texts or integers for the keys; "
                    f"its columns are {listed(types, most=20)}"
                )
            for group, (rows, _) in enumerate(file.groups):
                for batch in parquet.batches(group, [column]) if rows else ():
                    yield from batch.column(batch.schema.get_field_index(column)).to_pylist()

    def describe(self) -> Mapping[str, str]:
        files = self._listing.found.files
        found = {"configuration": safe(self._listing.found.config)}
        for split, rows in sorted(self._listing.rows.items()):
            count = sum(each.split == split for each in files)
            found[f"split {split}"] = f"rows: {rows:,}, files: {count}"
        columns = dict.fromkeys(leaf.column for leaf in self._known.leaves)
        found["columns"] = ", ".join(safe(name, limit=60) for name in columns)
        for column, why in self._listing.left_out.items():
            found[f"left out {safe(column, limit=60)}"] = safe(why, limit=200)
        if self._known.is_exported:
            found["layout"] = "exported by tfrecreg: its records are restored"
        return found

    def example(self, item: Item) -> Example | Written | Skipped:
        from tfrecreg_huggingface.columns import UnusableValue, cell_features

        known = self._known
        number, row = _PLACE.unpack(item.state)
        if number not in self._opened:
            columns = [leaf.column for leaf in known.leaves]
            names = [*dict.fromkeys(columns), *([_REST] if known.is_exported else [])]
            self._opened[number] = ParquetRows(self._raw, known.paths[number], names)
        cells, at = self._opened[number].row(row)
        features: dict[str, Feature] = {}
        remarks: list[Remark] = []
        if known.is_exported and (rest := cells[_REST][at].as_py()) is not None:
            features.update(decode(rest))
        rounds = self._options.float64 == "round"
        try:
            for leaf in known.leaves:
                made, remark = cell_features(leaf, cells[leaf.column], at, rounds)
                features.update(made)
                if remark:
                    remarks.append(Remark(item.split, item.key, "SRC014", remark))
        except (ImageError, UnusableValue) as error:
            return Skipped(item.split, item.key, error.code, error.detail)
        return Written(features, remarks) if remarks else features


def _exported(raw: Storage, metadata: bytes) -> tuple[Mapping[str, Sequence[str]], str]:
    """The labels and the schema of files that `tfrecreg export` wrote."""
    try:
        labels = msgspec.json.decode(metadata, type=_Exported).labels
        schema = raw.read(_SCHEMA).decode()
    except (msgspec.DecodeError, UnicodeDecodeError, MissingFileError) as error:
        raise RawDataError(
            f"the files were exported by tfrecreg, but their metadata or `{_SCHEMA}` beside them "
            f"cannot be read: {error}",
            hint="--option restore=no reads them like other Parquet files",
        ) from None
    return {name: each for name, each in labels.items() if each}, schema
