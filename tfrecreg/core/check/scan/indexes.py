"""Indexes of shards: the keys of records, and hints for reading after damage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property, partial
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
    """The known keys of records, by shard and record number. One index at a time is in memory."""
    wanted: dict[str, set[int]] = {}
    for name, number in records:
        wanted.setdefault(name, set()).add(number)
    keys: dict[tuple[str | None, int | None], str] = {}
    for shard in shards:
        index = index_of(shard) if shard.name in wanted else None
        if index is not None:
            for number in wanted[shard.name]:
                if number < len(index):
                    keys[shard.name, number] = index.key(number)
    return keys


def index_hints(shard: Shard) -> tuple[Sequence[int], Sequence[tuple[int, int]]]:
    """The offset of each record in the decompressed stream, and the offsets of each gzip member
    in the file and in the stream.

    Both come from the shard's index, which is read on first use. Without a sound index, both are
    empty.
    """
    index = cache(partial(index_of, shard))
    return (
        _Lazy(lambda: () if (found := index()) is None else found.offsets()),
        _Lazy(lambda: () if (found := index()) is None else found.members),
    )


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
