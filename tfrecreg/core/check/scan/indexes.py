"""The indexes beside a target's shards: the keys of records, and hints for reading after damage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.records.index import Index, load_index
from tfrecreg.core.values.errors import TfrecregError


def index_of(shard: Shard) -> Index | None:
    """The index of a shard; None if it is missing or damaged, which `manifest` reports."""
    if shard.index is None:
        return None
    try:
        return load_index(shard.storage, shard.index)
    except TfrecregError:
        return None


def keys_of(
    shards: Sequence[Shard], records: Iterable[tuple[str, int]]
) -> dict[tuple[str | None, int | None], str]:
    """The keys of records, by shard name and record number, if an index has them.

    Only one index is in memory at a time.
    """
    wanted: dict[str, set[int]] = {}
    for name, number in records:
        wanted.setdefault(name, set()).add(number)
    keys: dict[tuple[str | None, int | None], str] = {}
    for shard in shards:
        index = index_of(shard) if shard.name in wanted else None
        if index is not None:
            for number in wanted[shard.name]:
                if 0 <= number < len(index):
                    keys[shard.name, number] = index.key(number)
    return keys


class IndexHints:
    """The offsets and gzip members of a shard. They come from its index, which is read on first
    use.

    If the index is missing or damaged, both are empty.
    """

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self.offsets: Sequence[int] = _Lazy(self._offsets)
        """Offset of each record in the decompressed stream, ascending."""
        self.members: Sequence[tuple[int, int]] = _Lazy(self._members)
        """Where each gzip member begins: its offset in the file, and its offset in the stream."""

    @cached_property
    def _index(self) -> Index | None:
        return index_of(self._shard)

    def _offsets(self) -> Any:
        return self._index.offsets() if self._index is not None else ()

    def _members(self) -> Any:
        return self._index.members if self._index is not None else ()


class _Lazy(Sequence[Any]):
    """A sequence or an array that is created on first use."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> Any:
        return self._make()

    def __getitem__(self, at: Any) -> Any:
        return self._made[at]

    def __len__(self) -> int:
        return len(self._made)
