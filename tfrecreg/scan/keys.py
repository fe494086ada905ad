"""The keys of records by their numbers, from the indexes beside the shards."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tfrecreg.errors import TfrecregError
from tfrecreg.index import Index, read_index
from tfrecreg.scan.interface import Shard

__all__ = ["index_of", "keys_of"]


def index_of(shard: Shard) -> Index | None:
    """The index of a shard; None without one, or where it is damaged, which the `manifest`
    validator says.
    """
    if shard.index is None:
        return None
    try:
        return read_index(shard.storage.read(shard.index), shard.index)
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
