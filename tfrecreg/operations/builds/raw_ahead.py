"""Which raw objects behind a URL the items of a task are made from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tfrecreg.operations.builds.request import Prepared
from tfrecreg.sources.guarded import GuardedSource
from tfrecreg.sources.interface import Item
from tfrecreg.storage.listed import ListedStorage
from tfrecreg.storage.read_ahead import ListedObject


@dataclass(frozen=True, slots=True)
class RawAhead:
    """Finds objects by the listing of this process, and by what the source says of its items."""

    source: GuardedSource
    raw: ListedStorage

    @classmethod
    def of(cls, prepared: Prepared) -> RawAhead | None:
        """For the source of a build; None if its raw data are local, or it does not say."""
        if not isinstance(prepared.raw, ListedStorage) or not prepared.source.locates:
            return None
        return cls(prepared.source, prepared.raw)

    def objects(self, items: Iterable[Item]) -> tuple[ListedObject, ...]:
        """The objects of these items, in their order.

        Raises:
            PluginError: the source failed.
            StorageError: the store cannot be asked.
        """
        return tuple(self._objects(items))

    def _objects(self, items: Iterable[Item]) -> Iterator[ListedObject]:
        for item in items:
            path = self.source.raw_path(item.split, item.key)
            entry = None if path is None else self.raw.stat(path)
            if entry is not None and entry.kind == "file":
                yield ListedObject(entry.path, entry.size)
