"""Shards that lie beside those that were named: not missing, only not looked at."""

from __future__ import annotations

from collections.abc import Iterable

from tfrecreg.errors import StorageError
from tfrecreg.scan.interface import Shard
from tfrecreg.shards import ShardName, parse_shard_name

__all__ = ["Siblings"]


class Siblings:
    """What lies in the folders of shards. A folder is listed once, if it is asked for."""

    def __init__(self) -> None:
        self._folders: dict[tuple[str, str], list[ShardName]] = {}

    def numbers(self, shard: Shard, name: ShardName) -> set[int]:
        """The numbers of all files of the set in the folder of one of its shards.

        Args:
            shard: one of the set.
            name: what its name says.
        """
        return {
            each.number
            for each in self._beside(shard)
            if (each.stem, each.of) == (name.stem, name.of)
        }

    def _beside(self, shard: Shard) -> list[ShardName]:
        folder = shard.path.rpartition("/")[0]
        place = shard.storage.root, folder
        if place not in self._folders:
            self._folders[place] = list(_names(shard, folder))
        return self._folders[place]


def _names(shard: Shard, folder: str) -> Iterable[ShardName]:
    try:
        for entry in shard.storage.list(folder, recursive=False):
            name = parse_shard_name(entry.path.rpartition("/")[2])
            if name is not None and name.of is not None and entry.kind in ("file", "link"):
                yield name
    except StorageError:
        return  # a folder that may be passed through and not be listed shows nothing beside
