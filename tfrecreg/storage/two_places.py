"""A build in two places: its shards in a store, all its other files in a folder."""

from __future__ import annotations

import heapq
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from blake3 import blake3

from tfrecreg.errors import StorageError, UsageError
from tfrecreg.shards import parse_shard_name
from tfrecreg.storage.interface import Appendable, Entry, Follow, Readable, Reader, Store, Writer
from tfrecreg.storage.local import LocalStorage
from tfrecreg.storage.locations import LOCATION_NAME
from tfrecreg.storage.paths import locate, path_text


@dataclass(frozen=True, slots=True)
class TwoPlaces:
    """The folder of a build whose shards are in a store. Picklable.

    See :class:`tfrecreg.storage.interface.Storage` for the methods. A shard is written into the
    folder, sent when it is closed, and then removed from the folder. What is in the store is
    neither replaced nor removed.
    """

    local: LocalStorage
    """Rooted at the folder."""
    remote: Store
    """Rooted where the shards are."""

    @property
    def root(self) -> str:
        """The URL: what is read from here comes through the network."""
        return self.remote.root

    @property
    def is_local(self) -> bool:
        return False

    def below(self, path: str) -> TwoPlaces:
        return TwoPlaces(LocalStorage(self.local.below(path).root), self.remote.below(path))

    def stat(self, path: str, *, follow: Follow = "inside") -> Entry | None:
        return self._of(path).stat(path, follow=follow)

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
        return self._of(path).open(path)

    def read(self, path: str, *, limit: int = 1 << 28) -> bytes:
        return self._of(path).read(path, limit=limit)

    def reading_ahead(
        self, paths: Iterable[str], listed: Iterable[Entry]
    ) -> AbstractContextManager[None]:
        return self.remote.reading_ahead(paths, listed)

    def create(self, path: str, *, durable: bool = True) -> Writer:
        if not is_shard(path):
            return self.local.create(path, durable=durable)
        return _Upload(self, path, self.local.create(path, durable=False))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return self._of(path).put_if_absent(path, data)

    def rename_dir(self, source: str, target: str) -> bool:
        return self.local.rename_dir(source, target)

    def replace_dir(self, source: str, target: str) -> None:
        self.local.replace_dir(source, target)

    def sync_dir(self, path: str) -> None:
        self.local.sync_dir(path)

    def link(self, source: str, target: str, *, origin: Readable | None = None) -> None:
        if not is_shard(target):
            self.local.link(source, target, origin=origin)
            return
        if origin is None or not origin.is_local:
            raise UsageError(
                f"`{path_text(target)}` cannot be linked to a file in a store",
                hint="upload a local file",
            )
        self.remote.upload(f"{origin.root}/{source}", target)

    def remove(self, path: str) -> None:
        self.local.remove(path)

    def remove_abandoned(self, path: str) -> bool:
        return self.local.remove_abandoned(path)

    def send(self, path: str) -> None:
        """Put a copy of a file of the folder into the store.

        Raises:
            StorageError: the store refused, or has other bytes under that name.
        """
        self.remote.upload(f"{self.local.root}/{path}", path)

    def fetch(self, path: str, digest: str, limit: int) -> None:
        """Put a copy of a small file of the store into the folder, unless it is there.

        Args:
            path: of the file.
            digest: blake3 that its bytes should have, as hex.
            limit: most bytes that it may have.

        Raises:
            StorageError: the store refused, or has other bytes.
        """
        with suppress(StorageError):
            if blake3(self.local.read(path, limit=limit)).hexdigest() == digest:
                return
        data = self.remote.read(path, limit=limit)
        if blake3(data).hexdigest() != digest:
            raise StorageError(
                f"`{path_text(locate(self.remote.root, path))}` has other bytes than those "
                "that were sent",
                hint="run the build again",
            )
        with self.local.create(path) as writer:
            writer.write(data)

    def for_workers(self) -> WorkerPlaces:
        """The same for tasks of workers that may not see the folder. It is made here, so that
        workers of this machine use it.
        """
        Path(self.local.root).mkdir(parents=True, exist_ok=True)
        return WorkerPlaces(self.local.root, self.remote)

    def _of(self, path: str) -> Appendable:
        return self.remote if is_shard(path) else self.local


@dataclass(frozen=True, slots=True)
class WorkerPlaces:
    """The two places of a build, for workers that may not see its folder. Picklable."""

    folder: str
    """Root of the local folder of the build. Text: nobody requires workers to see it."""
    remote: Store

    @contextmanager
    def opened(self) -> Iterator[TwoPlaces]:
        """The places in this process. Where it does not see the folder, a temporary folder of its
        own takes its place: what is to outlive the task has to be sent.

        Raises:
            StorageError: no temporary folder can be made.
        """
        if os.path.isdir(self.folder):
            yield TwoPlaces(LocalStorage(self.folder), self.remote)
            return
        with temporary_folder("build") as made:
            yield TwoPlaces(made, self.remote)


@contextmanager
def temporary_folder(purpose: str) -> Iterator[LocalStorage]:
    """A folder for what is on its way to a store. It is removed at the end of the block.

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
    """Whether a path in a build is that of a shard, which lies in the store."""
    return "/" not in path and parse_shard_name(path) is not None


class _Upload:
    """A shard being written. See :class:`tfrecreg.storage.interface.Writer`."""

    def __init__(self, places: TwoPlaces, path: str, writer: Writer) -> None:
        self._places, self._path, self._writer = places, path, writer
        self._open = True

    def write(self, data: bytes | memoryview) -> None:
        self._writer.write(data)

    def close(self) -> None:
        if not self._open:
            return
        self._writer.close()
        self._open = False
        try:
            self._places.send(self._path)
        finally:
            self._places.local.remove(self._path)

    def abort(self) -> None:
        self._open = False
        self._writer.abort()

    def __enter__(self) -> _Upload:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
            return
        # Raise the original error rather than an error of the cleanup.
        with suppress(StorageError):
            self.abort()
