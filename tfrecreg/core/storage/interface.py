"""What a storage can do: :class:`Readable` reads, :class:`Storage` also writes and renames.

If the file system refuses, a method raises :class:`~tfrecreg.core.values.errors.StorageError`. For
a missing file it raises the subclass :class:`~tfrecreg.core.values.errors.MissingFileError`. For a
path that is absolute or leaves the root, it raises
:class:`~tfrecreg.core.values.errors.UsageError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar, runtime_checkable

from tfrecreg.core.values.errors import StorageError

R = TypeVar("R", bound="Reader")
U = TypeVar("U", bound="Unfinished")

Follow = Literal["inside", "all"]
EntryKind = Literal["file", "dir", "link", "other"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, folder or link in a storage."""

    path: str
    """Relative to the storage's root, POSIX, no leading slash. Names that are not UTF-8 have
    surrogate escapes, as from :func:`os.fsdecode`.
    """
    kind: EntryKind
    """``link`` is a symbolic link (no listing follows it); ``other`` is a FIFO or a device."""
    size: int
    """Size of a file in bytes; 0 for everything else."""
    mtime_ns: int
    inode: int
    device: int = field(default=0, compare=False)
    """Number of the device. Device and inode together identify a folder under any path."""


class Reader(Protocol):
    """An open file, readable at any offset. Reading is safe even if the file is truncated.

    A subclass that does not override :meth:`confirm` and :meth:`forget` reads a file on a disk. The
    file is closed at the end of the ``with`` block.
    """

    size: int
    """Size of the file in bytes when it was opened."""

    def read_at(self, start: int, length: int) -> bytes:
        """Read `length` bytes from `start`, or fewer if the end of the file comes first."""

    def located(self, start: int, length: int) -> tuple[int, int, object] | None:
        """Find an open file with all of these bytes. Returns its descriptor, the position of the
        bytes, and an object to keep while the descriptor is used. None if there is no such file.
        """
        del start, length
        return None

    def confirm(self, start: int, stop: int) -> bool:
        """Read bytes from the store again, without buffers, and compare them with the bytes that
        were read first. True if they are equal, False if no bytes were read before. Raises a
        TransferError if they differ.
        """
        del start, stop
        return False

    def forget(self, start: int, stop: int) -> bool:
        """Drop these bytes from buffers and caches. Returns True if the file is in a store, where a
        new reader may get other bytes.
        """
        del start, stop
        return False

    def close(self) -> None: ...

    def __enter__(self: R) -> R:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Unfinished(Protocol):
    """Files that are being written. An exception in the ``with`` block deletes them."""

    def close(self) -> object: ...

    def abort(self) -> None:
        """Delete the unfinished files."""

    def __enter__(self: U) -> U:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self.close()
            return
        # Raise the original error rather than an error of the cleanup.
        with suppress(StorageError):
            self.abort()


class Writer(Unfinished, Protocol):
    """A file that is being written. When it is closed, it appears under its name and is durable."""

    def write(self, data: bytes | memoryview) -> None: ...

    def close(self) -> None:
        """Sync the file, then rename it to its final name. Replaces an existing file."""


@runtime_checkable
class Readable(Protocol):
    """A tree of files under one root, which is a folder or a URL. Picklable, for worker processes.

    `open`, `read` and `list` follow every symbolic link in the path that they are given, even a
    link out of the root, because raw data and caches are often such links. `stat` follows a link
    out of the root only with ``follow="all"``.
    """

    @property
    def root(self) -> str:
        """The location of the root, for messages: an absolute path or a URL."""

    def local_path(self, path: str = "") -> str | None:  # noqa: ARG002 - for disks
        """The absolute path of a local file or folder, for programs that need a path. None if the
        root is a URL.
        """
        return None

    def below(self, path: str) -> Readable:
        """The storage of the folder `path`, which need not exist yet."""

    def may_refuse(self) -> bool:
        """Whether the storage may refuse to read a file that the user did not name explicitly."""
        return True

    def stat(self, path: str, *, follow: Follow = "inside") -> Entry | None:
        """The entry at `path`, or None.

        With ``inside``, symbolic links that stay inside the root are followed. With ``all``, all
        links are followed. A link that is not followed, or whose target is missing, has the kind
        ``link``.
        """

    def list(self, path: str = "", *, recursive: bool = True) -> Iterator[Entry]:
        """The entries below the folder `path`, sorted by the bytes of their paths. Links are not
        followed. A folder that does not exist has no entries.
        """

    def listing(self) -> frozenset[str] | None:
        """The paths of all files. None if a listing costs more than a request for each file."""
        return None

    def look_ahead(self, paths: Sequence[str]) -> None:  # noqa: ARG002 - for stores
        """Get the facts about files of one folder with one listing, if that is cheaper than a
        request per file. Call it only in a block of
        :func:`tfrecreg.core.storage.paths.looks_remembered`.
        """
        return None  # noqa: RET501 - without it, the method is abstract for mypy

    def open(self, path: str) -> Reader:
        """Open a regular file for reading. FIFOs and devices are refused without blocking."""

    def read(self, path: str, *, limit: int = 1 << 28) -> bytes:
        """The content of a small file. Raises a StorageError if it has more than `limit` bytes."""

    def reading_ahead(
        self,
        paths: Iterable[str],  # noqa: ARG002 - opening local files costs nothing
        listed: Iterable[Entry],  # noqa: ARG002
    ) -> AbstractContextManager[None]:
        """While the context lasts, fetch files before this thread opens them. `paths` are roughly
        in the order in which they are opened.

        Only files in `listed` are fetched ahead, because their sizes are known. Local files are
        never fetched ahead, nor are files of a store that refuses to list.
        """
        return nullcontext()


class Storage(Readable, Protocol):
    """A tree of files on a disk, which can be written, moved and replaced.

    If a link on the way to a path leads out of the root, a method that writes, moves or removes
    raises a UsageError.
    """

    def local_path(self, path: str = "") -> str: ...

    def below(self, path: str) -> Storage: ...

    def create(self, path: str, *, durable: bool = True) -> Writer:
        """Create a file and its parent folders. The file appears when the writer is closed. It is
        then complete and, if `durable`, synced.
        """

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Atomically create `path` with `data`, unless it exists. False if it exists."""

    def rename_dir(self, source: str, target: str) -> bool:
        """Move a folder to a free name. If the name is taken, return False without moving it."""

    def replace_dir(self, source: str, target: str) -> None:
        """Replace the folder `target` with `source`. The old folder is then at `source`.

        If `target` does not exist, this is a plain rename and `source` no longer exists afterwards.
        The exchange is atomic if the file system can exchange names.
        """

    def sync_dir(self, path: str) -> None:
        """Make the names in a folder durable."""

    def link(
        self, source: str, target: str, *, origin: Readable | None = None, follow: bool = True
    ) -> None:
        """Create `target` as a hard link to the file `source` of `origin`, a local storage. The
        name `target` must be free. If the link fails, the file is copied.

        Unless `follow` is set, a symbolic link becomes another one to the same place, and a FIFO, a
        socket or a device gets another name.
        """

    def remove(self, path: str) -> None:
        """Remove a file or a whole folder. It may be missing."""

    def remove_abandoned(self, path: str) -> bool:
        """Remove a killed writer's temporary file (see
        :func:`tfrecreg.core.storage.writer.is_temporary`). Returns False if the writer is alive or
        may be alive.
        """
