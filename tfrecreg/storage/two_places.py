"""A build in two places: its shards in a store, all its other files in a folder."""

from __future__ import annotations

import heapq
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from tfrecreg.errors import StorageError
from tfrecreg.shards import parse_shard_name
from tfrecreg.storage.interface import Entry, Follow, Readable, Reader, Store
from tfrecreg.storage.local import LocalStorage
from tfrecreg.storage.locations import LOCATION_NAME
from tfrecreg.storage.paths import path_text


@dataclass(frozen=True, slots=True)
class TwoPlaces:
    """The folder of a build whose shards are in a store. Picklable.

    See :class:`tfrecreg.storage.interface.Readable` for the methods.
    """

    local: LocalStorage
    """Rooted at the folder."""
    remote: Store
    """Rooted where the shards are."""

    @property
    def root(self) -> str:
        """The URL, because reads go through the network."""
        return self.remote.root

    @property
    def is_local(self) -> bool:
        return False

    def below(self, path: str) -> TwoPlaces:
        return TwoPlaces(LocalStorage(self.local.below(path).root), self.remote.below(path))

    def stat(self, path: str, *, follow: Follow = "inside") -> Entry | None:
        return self._place_of(path).stat(path, follow=follow)

    def list(self, path: str = "", *, recursive: bool = True) -> Iterator[Entry]:
        here = (
            entry
            for entry in self.local.list(path, recursive=recursive)
            if entry.path != LOCATION_NAME and not is_shard(entry.path)
        )
        there: Iterator[Entry] = iter(())
        if not path:
            found = self.remote.list(recursive=False)
            there = (entry for entry in found if entry.kind == "file" and is_shard(entry.path))
        yield from heapq.merge(
            here, there, key=lambda entry: entry.path.encode("utf-8", "surrogateescape")
        )

    def open(self, path: str) -> Reader:
        return self._place_of(path).open(path)

    def read(self, path: str, *, limit: int = 1 << 28) -> bytes:
        return self._place_of(path).read(path, limit=limit)

    def reading_ahead(
        self, paths: Iterable[str], listed: Iterable[Entry]
    ) -> AbstractContextManager[None]:
        return self.remote.reading_ahead(paths, listed)

    def _place_of(self, path: str) -> Readable:
        return self.remote if is_shard(path) else self.local


@contextmanager
def temporary_folder(purpose: str) -> Iterator[LocalStorage]:
    """A folder for files to upload. It is removed at the end of the block.

    Args:
        purpose: part of its name: ``"build"``.

    Raises:
        StorageError: it cannot be made.
    """
    try:
        made = tempfile.mkdtemp(prefix=f"tfrecreg-{purpose}-")
    except OSError as error:
        raise StorageError(
            f"no folder can be made in `{path_text(tempfile.gettempdir())}`: {error.strerror}",
            hint="TMPDIR names another folder",
        ) from error
    try:
        yield LocalStorage(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def is_shard(path: str) -> bool:
    """Whether a path in a build names a shard, which is in the store."""
    return "/" not in path and parse_shard_name(path) is not None
