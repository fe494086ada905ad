"""The storage protocols, by permitted operations: :class:`Readable`, :class:`Appendable`,
:class:`Storage`.

Files on a disk can do all of it, those behind URLs are read and added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar, runtime_checkable

from tfrecreg.core.values.errors import StorageError

R = TypeVar("R", bound="Reader")
U = TypeVar("U", bound="Unfinished")

Follow = Literal["inside", "all"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, folder or link in a storage."""

    path: str
    """Relative to the storage's root, POSIX, no leading slash. Names that are not UTF-8 have
    surrogate escapes, as from :func:`os.fsdecode`.
    """
    kind: Literal["file", "dir", "link", "other"]
    """``link`` is a symbolic link (never followed by a listing); ``other`` a FIFO, device ..."""
    size: int
    """Size of a file in bytes; 0 for everything else."""
    mtime_ns: int
    inode: int
    device: int = field(default=0, compare=False)
    """Number of the device. Together with the inode it identifies a folder, independently of its
    path.
    """


class Reader(Protocol):
    """An open file, readable at any offset. Safe if the file is truncated.

    A class that inherits from it is closed at the end of its ``with`` block.
    """

    size: int
    """Size in bytes when it was opened."""

    def read_at(self, start: int, length: int) -> bytes:
        """Up to `length` bytes from `start`; fewer only where the file ends.

        Raises:
            StorageError: the file system failed to read (such as EIO).
        """

    def located(self, start: int, length: int) -> tuple[int, int, object] | None:
        """The descriptor of a local file that has these bytes, and where they start in it.

        Returns:
            These two, and what to hold on to while the descriptor is used; None if no open file has
            all of the bytes. By default there is none.
        """
        del start, length
        return None

    def close(self) -> None: ...

    def __enter__(self: R) -> R:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@runtime_checkable
class RereadableReader(Reader, Protocol):
    """A file in a store, which may deliver other bytes when it is read again."""

    def confirm(self, start: int, stop: int) -> bool:
        """Read bytes again, past all buffers, and compare them with those that were delivered."""


class Unfinished(Protocol):
    """Something being written. Leaving the ``with`` block by an exception deletes it."""

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
    """A file being written: invisible under its name until it is closed, and then durable."""

    def write(self, data: bytes | memoryview) -> None: ...

    def close(self) -> None:
        """Sync, then move the file to its name, replacing an existing file."""


@runtime_checkable
class Readable(Protocol):
    """A tree of files under one root. Picklable, for worker processes.

    Every method raises :class:`~tfrecreg.core.values.errors.StorageError` if the file system
    refuses (its
    subclass :class:`~tfrecreg.core.values.errors.MissingFileError` if a file is missing), and
    :class:`~tfrecreg.core.values.errors.UsageError` for a path that is absolute or leaves the root.

    `open`, `read` and `list` of a named path follow symbolic links to any target, because raw data
    and caches often are such links; `stat` does not follow links out of the root unless requested.
    """

    @property
    def root(self) -> str:
        """Its location, for messages: an absolute path or a URL."""

    @property
    def is_local(self) -> bool:
        """Whether the root is a path, so that reading costs no requests, other programs can open
        the files, and no network alters their bytes.
        """

    def __hash__(self) -> int: ...

    def below(self, path: str) -> Readable:
        """The storage of the folder `path`, which need not exist yet.

        Raises:
            UsageError: `path` is absolute or leaves the root.
        """

    def stat(self, path: str, *, follow: Follow = "inside") -> Entry | None:
        """The entry at `path`, or None.

        Args:
            path: below the root.
            follow: which symbolic links are followed: those that stay ``inside`` the root, or
                ``all``. A link that is not followed, or whose target is missing, has the kind
                ``link``.
        """

    def list(self, path: str = "", *, recursive: bool = True) -> Iterator[Entry]:
        """The entries below the folder `path`, sorted by the bytes of their paths; links are not
        followed.

        A folder that does not exist lists as empty.
        """

    def open(self, path: str) -> Reader:
        """Open a regular file for reading. FIFOs and devices are refused without blocking.

        Raises:
            MissingFileError: `path` does not exist.
        """

    def read(self, path: str, *, limit: int = 1 << 28) -> bytes:
        """A whole small file. More than `limit` bytes is a StorageError, not an allocation."""

    def reading_ahead(
        self, paths: Iterable[str], listed: Iterable[Entry]
    ) -> AbstractContextManager[None]:
        """Fetch files ahead of `open`, while the context lasts and in this thread.

        Local files are not fetched, and those that are not listed are left to `open`. So are all
        files of a store that refuses to list: reading needs no right to do so.

        Args:
            paths: in about the order in which they are opened.
            listed: has their sizes. It is not iterated over if nothing is fetched.
        """


class Appendable(Readable, Protocol):
    """Adds files under free names and removes files, but replaces none."""

    def below(self, path: str) -> Appendable: ...

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create `path` with `data` unless it exists, atomically. False if it exists."""

    def remove(self, path: str) -> None:
        """Remove a file, in a :class:`Storage` also a whole folder. It may be missing."""


class Store(Appendable, Protocol):
    """Files behind a URL: none is replaced."""

    def below(self, path: str) -> Store: ...

    def glob(self, pattern: str) -> Iterator[Entry]:
        """The files that a pattern below the root matches, sorted by the bytes of their paths."""

    def put_file_if_absent(self, path: str, source: str) -> bool:
        """As :meth:`put_if_absent`, with the bytes of a local file, a part at a time."""

    def look_ahead(self, start: str) -> bool:
        """Ask about all files whose paths begin so, by one listing, inside of
        :func:`tfrecreg.core.storage.paths.looks_remembered`.
        """


class Storage(Appendable, Protocol):
    """Writes, moves and replaces files and folders.

    No method writes, moves or removes through a link that leaves the root: that is a UsageError.
    """

    def below(self, path: str) -> Storage: ...

    def create(self, path: str, *, durable: bool = True) -> Writer:
        """Create a file and its parent folders. It appears when it is closed, complete and synced.

        Args:
            path: its name.
            durable: False for temporary files that are useless after a crash: they are not synced.
        """

    def rename_dir(self, source: str, target: str) -> bool:
        """Move a folder to a free name; return False without moving it if the name is taken."""

    def replace_dir(self, source: str, target: str) -> None:
        """Put the folder `source` in the place of `target`; the old folder is then at `source`.

        If `target` does not exist, this is a plain rename and `source` no longer exists afterwards.
        Atomic if the file system can exchange names.
        """

    def sync_dir(self, path: str) -> None:
        """Make names in a folder durable."""

    def link(self, source: str, target: str, *, origin: Readable | None = None) -> None:
        """Create `target` with the bytes of `source`: as a hard link, or as a copy if that fails.

        Args:
            source: a file.
            target: its second name, which is free.
            origin: the storage that `source` is in, a local one; None for this one.
        """

    def remove_abandoned(self, path: str) -> bool:
        """Remove a temporary file (see :func:`tfrecreg.core.storage.writer.is_temporary`) of a
        killed writer.

        Returns:
            False, without removing it, if its writer is alive or that is unknown.
        """
