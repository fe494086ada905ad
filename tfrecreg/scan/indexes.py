"""What the indexes beside a target's shards know: the keys of records, and hints after damage."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from tfrecreg.errors import TfrecregError
from tfrecreg.index import Index, load_index
from tfrecreg.scan.interface import Shard


def index_of(shard: Shard) -> Index | None:
    """The index of a shard; None without one, or where it is damaged: the `manifest` validator
    reports that.
    """
    if shard.index is None:
        return None
    try:
        return load_index(shard.storage, shard.index)
    except TfrecregError:
        return None


def keys_of(
    shards: Sequence[Shard], wanted: Mapping[str, Collection[int]]
) -> dict[tuple[str | None, int | None], str]:
    """Shard's name and record's number to its key, where an index knows it.

    One index is held at a time.

    Args:
        shards: those of the target.
        wanted: numbers of records by the name of their shard.
    """
    keys: dict[tuple[str | None, int | None], str] = {}
    for shard in shards:
        index = index_of(shard) if shard.name in wanted else None
        if index is not None:
            for number in wanted[shard.name]:
                if 0 <= number < len(index):
                    keys[shard.name, number] = index.key(number)
    return keys


class IndexHints:
    """The offsets and gzip members of a shard, from its index, read when they are first used.

    Without an index, or with a damaged one, both are empty.
    """

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self.offsets: Sequence[int] = _Lazy(self._offsets)
        """Where each record starts in the decompressed stream, ascending."""
        self.members: Sequence[tuple[int, int]] = _Lazy(self._members)
        """Where each gzip member begins: byte of the file, byte of the stream."""

    @cached_property
    def _index(self) -> Index | None:
        return index_of(self._shard)

    def _offsets(self) -> Any:
        return self._index.offsets() if self._index is not None else ()

    def _members(self) -> Any:
        return self._index.members if self._index is not None else ()


class _Lazy(Sequence[Any]):
    """A sequence or an array that is made when somebody looks at it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> Any:
        return self._make()

    def __getitem__(self, at: Any) -> Any:
        return self._made[at]

    def __len__(self) -> int:
        return len(self._made)
