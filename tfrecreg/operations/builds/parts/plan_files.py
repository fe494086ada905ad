"""The folder of a plan: `plan.json`, the schema, and compressed lists of the items of each shard.

Nothing in it is code, and all of it is covered by the digest in `plan.json`. Parts add `build/`,
`receipts/` and `parts/`. The folder may be in a store, and so may the one that the shards go to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, overload

from blake3 import blake3

from tfrecreg.amounts import SkipLimit
from tfrecreg.documents import refusing
from tfrecreg.errors import MissingFileError, UsageError
from tfrecreg.manifest.model import INDEX_FOLDER, SCHEMA_NAME, SchemaEntry
from tfrecreg.operations.builds.base import Base, BaseShard
from tfrecreg.operations.builds.parts.lines import TextDigest, read_lines, write_lines
from tfrecreg.operations.builds.parts.plan_model import (
    PLAN_NAME,
    PlanDocument,
    ShardOfPlan,
    parse_plan,
    render_plan,
)
from tfrecreg.operations.builds.plan import Plan, PlannedShard
from tfrecreg.operations.builds.sink import BUILD
from tfrecreg.shards import shard_name
from tfrecreg.sources.guarded import GuardedSource
from tfrecreg.sources.interface import Item, Remark, Skipped
from tfrecreg.storage.interface import Appendable, Readable, Storage, Store
from tfrecreg.storage.local import LocalStorage
from tfrecreg.storage.locations import store_at
from tfrecreg.storage.urls import is_bucket, is_url, named_url
from tfrecreg.text import safe

R = TypeVar("R")

_ITEMS = "items"
_LISTED = "listed.jsonl.gz"
_RAW = "raw.jsonl.gz"
_RAW_OF_ITEMS = "raw"
PLAN_FILES = frozenset({PLAN_NAME, SCHEMA_NAME, _ITEMS, _LISTED, _RAW, _RAW_OF_ITEMS})
"""Names of files and folders of a plan."""
PLAN_LIMIT = 1 << 30
"""Largest `plan.json` that is read, in bytes: more than a million shards."""


class _ItemRow(NamedTuple):
    """A line of the items of a shard."""

    key: str
    size: int
    state: bytes


class _ListedRow(NamedTuple):
    """A line about a skipped item or a remark."""

    skipped: Skipped | None
    remark: Remark | None


class _RawRow(NamedTuple):
    """A line of the raw files."""

    path: str
    size: int
    mtime_ns: int


def _items_path(shard: str) -> str:
    return f"{_ITEMS}/{shard}.jsonl.gz"


def _raw_path(shard: str) -> str:
    return f"{_RAW_OF_ITEMS}/{shard}.jsonl.gz"


def plan_store(folder: str) -> Store | None:
    """The store of the folder of a plan, as a user names it: a path or a URL; None for a path.

    Raises:
        UsageError: a URL with a password, or one that files cannot be put below.
    """
    if not is_url(folder):
        return None
    root = named_url(folder)
    if not is_bucket(root):
        raise UsageError(
            f"a plan cannot be in `{safe(root, limit=1000)}`: parts cannot write files there",
            hint="name a folder in a bucket, or on a file system that all machines of the build "
            "see",
        )
    return store_at(root)


def write_lists(folder: Storage, shard: PlannedShard, raw: RawOfItems) -> ShardOfPlan:
    """Write the items of a shard, one after the other, and the raw files they are made from."""
    rows = (_ItemRow(item.key, item.size, item.state) for item in shard.items)
    return ShardOfPlan(
        path=shard.path,
        split=shard.split,
        number=shard.number,
        size=sum(item.size for item in shard.items),
        items=write_lines(folder, _items_path(shard.path), rows),
        base=shard.base.entry.path if shard.base is not None else None,
        lost_items=shard.lost_items,
        raw_files=raw.write(folder, shard),
    )


class RawOfItems:
    """Raw files of a plan, dealt to the shards whose items are made from them.

    Args:
        source: names the file of an item, if known.
        files: raw file to its size and modification time in nanoseconds.
    """

    def __init__(self, source: GuardedSource, files: Mapping[str, tuple[int, int]]) -> None:
        self._source = source
        self._files = files
        self._left = dict(files)

    def write(self, folder: Storage, shard: PlannedShard) -> TextDigest | None:
        """Write the files of the items of a shard; None if they are unknown to the source."""
        if not self._source.locates:
            return None
        paths = (self._source.raw_path(item.split, item.key) for item in shard.items)
        found = {
            path: self._files[path] for path in paths if path is not None and path in self._files
        }
        for path in found:
            self._left.pop(path, None)
        return _write_raw_files(folder, _raw_path(shard.path), found)

    def write_left(self, folder: Storage) -> TextDigest:
        """Write the files that no item names: annotations, or all files of a source that does not
        know.
        """
        return _write_raw_files(folder, _RAW, self._left)


def write_listed(folder: Storage, plan: Plan) -> TextDigest:
    """Write the skipped items and the remarks of the listing."""
    rows: list[list[Any]] = [[[*each], None] for each in plan.skipped]
    rows += [[None, [*each]] for each in plan.remarks]
    return write_lines(folder, _LISTED, rows)


def _write_raw_files(
    folder: Storage, path: str, files: Mapping[str, tuple[int, int]]
) -> TextDigest:
    return write_lines(folder, path, ([name, *files[name]] for name in sorted(files)))


def write_schema_text(folder: Storage, schema: str) -> SchemaEntry:
    """Write the schema."""
    encoded = schema.encode("utf-8")
    with folder.create(SCHEMA_NAME) as writer:
        writer.write(encoded)
    return SchemaEntry(blake3=blake3(encoded).hexdigest(), bytes=len(encoded))


def write_document(folder: Storage, document: PlanDocument) -> None:
    """Write `plan.json`: the last file of a plan."""
    with folder.create(PLAN_NAME) as writer:
        writer.write(render_plan(document))


class _ItemsOfShard(Sequence[Item]):
    """The items of a shard on disk. The pickle has the items themselves."""

    def __init__(self, storage: Readable, shard: ShardOfPlan) -> None:
        self._storage = storage
        self._shard = shard

    def __len__(self) -> int:
        return self._shard.items.lines

    @overload
    def __getitem__(self, at: int) -> Item: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, at: int | slice) -> Item | tuple[Item, ...]:
        return self._read()[at]

    def __iter__(self) -> Iterator[Item]:
        return iter(self._read())

    def __reduce__(self) -> tuple[type[tuple[Item, ...]], tuple[tuple[Item, ...]]]:
        return tuple, (self._read(),)

    def _read(self) -> tuple[Item, ...]:
        shard = self._shard
        return _read_items(self._storage, shard.path, shard.split, shard.items)


@lru_cache(maxsize=2)
def _read_items(storage: Readable, shard: str, split: str, said: TextDigest) -> tuple[Item, ...]:
    """The items of a shard. Memory holds those of two shards at most."""
    path = _items_path(shard)
    rows = read_lines(storage, path, said, _ItemRow, where=f"{storage.root}/{path}")
    return tuple(Item(split, row.key, row.size, row.state) for row in rows)


@dataclass(frozen=True, slots=True)
class PlanFolder:
    """A plan, with the files of its parts."""

    storage: Appendable
    """Rooted at the folder."""
    document: PlanDocument
    store: Store | None
    """Rooted at the folder that the shards go to; None if that is in the folder of the plan."""

    @classmethod
    def open(cls, folder: str) -> PlanFolder:
        """Read `plan.json`.

        Raises:
            UsageError: the folder has no plan, or it was changed.
        """
        store = plan_store(folder)
        storage = LocalStorage(folder) if store is None else store
        try:
            data = storage.read(PLAN_NAME, limit=PLAN_LIMIT)
        except MissingFileError:
            raise UsageError(
                f"`{safe(folder, limit=1000)}` holds no plan: `{PLAN_NAME}` is missing",
                hint="`tfrecreg parts plan NAME DIR` writes one",
            ) from None
        document = parse_plan(data, f"{folder}/{PLAN_NAME}")
        _expect_sound(document, f"{folder}/{PLAN_NAME}")
        if document.data is not None:
            shards: Store | None = store_at(document.data)
        else:
            shards = None if store is None else store.below(BUILD)
        return cls(storage, document, shards)

    @property
    def name(self) -> str:
        """The folder, for messages."""
        return safe(self.storage.root, limit=1000)

    @property
    def shards(self) -> Readable:
        """Rooted at the folder that the shards and their indexes go to."""
        return self.storage.below(BUILD) if self.store is None else self.store

    @property
    def local(self) -> LocalStorage | None:
        """Rooted at the folder, where shards are made in it; None if they go to a store."""
        return LocalStorage(self.storage.root) if self.store is None else None

    def expect_dataset(self, name: str | None) -> None:
        """Refuse a plan of another dataset than `name`, if one was named.

        Raises:
            UsageError: it is another one.
        """
        dataset = self.document.dataset
        if name not in (None, dataset):
            raise UsageError(
                f"`{self.name}` is a plan of `{dataset}`, not of `{safe(name or '')}`",
                hint=f"tfrecreg parts publish {self.name} {dataset}",
            )

    def planned(self, shard: ShardOfPlan, base: Base | None) -> PlannedShard:
        """A shard with its items, which are read when they are needed.

        Reading the items raises a :class:`UsageError` if their list was changed.
        """
        return PlannedShard(
            shard.split,
            shard.number,
            shard.path,
            f"{INDEX_FOLDER}/{shard.path}.index",
            _ItemsOfShard(self.storage, shard),
            _of_base(base, shard),
            shard.lost_items,
            shard.size,
        )

    def reading_items(self, shards: Iterable[PlannedShard]) -> AbstractContextManager[None]:
        """Fetch the items of shards ahead, if they are in a store: while the context lasts, in this
        thread and in about this order.
        """
        paths = (_items_path(shard.path) for shard in shards)
        return self.storage.reading_ahead(paths, self.storage.list(_ITEMS))

    def plan(self, shards: Sequence[PlannedShard], base: Base | None) -> Plan:
        """The plan of these shards."""
        skipped: list[Skipped] = []
        remarks: list[Remark] = []
        for row in self._lines(_LISTED, self.document.listed, _ListedRow):
            if row.skipped is not None:
                skipped.append(row.skipped)
            if row.remark is not None:
                remarks.append(row.remark)
        document = self.document
        return Plan(
            document.dataset, tuple(shards), tuple(skipped), document.order, tuple(remarks), base
        )

    def raw_files(self, shards: Sequence[ShardOfPlan]) -> dict[str, tuple[int, int]]:
        """Raw file to its size and modification time in nanoseconds, when the plan was made.

        Args:
            shards: those of the document whose files are wanted. Files that may belong to any
                shard are among them.
        """
        of_items = [
            (_raw_path(shard.path), shard.raw_files)
            for shard in shards
            if shard.raw_files is not None
        ]
        listed = self.storage.list(_RAW_OF_ITEMS)
        with self.storage.reading_ahead((path for path, _ in of_items), listed):
            return {
                row.path: (row.size, row.mtime_ns)
                for path, said in [(_RAW, self.document.raw_files), *of_items]
                for row in self._lines(path, said, _RawRow)
            }

    def schema(self) -> str:
        """The text of the schema.

        Raises:
            UsageError: it was changed.
        """
        said = self.document.schema
        try:
            data = self.storage.read(SCHEMA_NAME, limit=max(said.bytes, 1))
            if blake3(data).hexdigest() == said.blake3:
                return data.decode("utf-8")
        except MissingFileError:
            pass
        raise UsageError(
            f"`{self.name}/{SCHEMA_NAME}` is not the schema that the plan names",
            hint="restore it, or write the plan again, into a new folder",
        )

    def settings(self) -> dict[str, Any]:
        """The settings that go to `datasets/NAME.toml`; empty if it has them already."""
        found: dict[str, Any] = json.loads(self.document.settings)
        return found

    def _lines(self, path: str, said: TextDigest, row: type[R]) -> Iterator[R]:
        return read_lines(self.storage, path, said, row, where=f"{self.storage.root}/{path}")


def _expect_sound(document: PlanDocument, where: str) -> None:
    """Settings parse, and names of files come from the dataset, the splits and the numbers."""
    shown, hint = safe(where, limit=1000), "write the plan again, into a new folder"
    with refusing(UsageError, f"`{shown}` is not a plan", hint=hint):
        SkipLimit.parse(document.max_skipped)
        SkipLimit.parse(document.max_dropped)
        if not isinstance(json.loads(document.settings), dict):
            raise ValueError("`settings` is not an object")
    data = document.data
    if data is not None and not (is_url(data) and is_bucket(named_url(data))):
        raise UsageError(
            f"`{shown}` puts the shards into `{safe(data, limit=1000)}`, expected a folder in a "
            "bucket",
            hint=hint,
        )
    counts: dict[str, int] = {}
    for shard in document.shards:
        counts[shard.split] = counts.get(shard.split, 0) + 1
    seen: dict[str, int] = {}
    for shard in document.shards:
        number = seen.get(shard.split, 0)
        seen[shard.split] = number + 1
        expected = shard_name(document.dataset, shard.split, number, counts[shard.split])
        if (shard.path, shard.number) != (expected, number):
            raise UsageError(
                f"`{shown}` names the shard `{safe(shard.path)}`, expected `{expected}`", hint=hint
            )


def _of_base(base: Base | None, shard: ShardOfPlan) -> BaseShard | None:
    if base is None or shard.base is None:
        return None
    found = next((each for each in base.shards if each.entry.path == shard.base), None)
    if found is None:
        raise UsageError(
            f"the base `{base.name}` has no shard `{safe(shard.base)}`, which the plan keeps",
            hint="write the plan again, into a new folder",
        )
    return found
