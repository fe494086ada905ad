"""What a storage can do. :class:`tfrecreg.storage.LocalStorage` is the one there is today."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Protocol

Follow = Literal["inside", "all"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing a storage holds."""

    path: str
    """Relative to the storage's root, POSIX, no leading slash. Names that are not UTF-8 carry
    surrogate escapes, as :func:`os.fsdecode` makes them."""
    kind: Literal["file", "dir", "link", "other"]
    """``link`` is a symbolic link (never followed by a listing); ``other`` a FIFO, device ..."""
    size: int
    """Bytes of a file; 0 for everything else."""
    mtime_ns: int
    inode: int
    device: int = field(default=0, compare=False)
    """Together with the inode it tells one folder from all others, whatever path led there."""


class Reader(Protocol):
    """An open file, read at any place. Safe against files that shrink meanwhile."""

    size: int
    """Bytes when it was opened."""

    def read_at(self, start: int, length: int) -> bytes:
        """Up to `length` bytes from `start`; fewer only where the file ends.

        Raises:
            StorageError: the file system failed to deliver (EIO and the like).
        """

    def close(self) -> None: ...

    def __enter__(self) -> Reader: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Writer(Protocol):
    """A file in the making: invisible under its name until it was closed, and then durable.

    Leaving the ``with`` block by an exception drops it without a trace.
    """

    def write(self, data: bytes | memoryview) -> None: ...

    def close(self) -> None:
        """Sync, then let the file appear under its name, replacing what was there."""

    def abort(self) -> None:
        """Drop it: nothing appears."""

    def __enter__(self) -> Writer: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Storage(Protocol):
    """A tree of files under one root. Picklable: it travels to worker processes.

    Every method raises :class:`~tfrecreg.errors.StorageError` where the file system refuses (its
    kind :class:`~tfrecreg.errors.MissingFileError` where what it needs is not there), and
    :class:`~tfrecreg.errors.UsageError` for a path that is absolute or leaves the root.

    `open`, `read` and `list` of a named path follow symbolic links wherever these lead, for raw
    data and caches often are such links; `stat` tells where they leave the root, unless it is asked
    to follow all. Nothing is ever written, moved or removed through a link that leaves the root:
    that is a UsageError.
    """

    @property
    def root(self) -> str:
        """Where it is, for messages to people: an absolute path or a URL."""

    def below(self, path: str) -> Storage:
        """The storage of the folder `path`, which need not exist yet.

        Raises:
            UsageError: `path` is absolute or leaves the root.
        """

    def stat(self, path: str, *, follow: Follow = "inside") -> Entry | None:
        """The entry at `path`, or None.

        Args:
            path: below the root.
            follow: which symbolic links are followed: those that stay ``inside`` the root, or
                ``all``. A link that is not followed, or that leads nowhere, has the kind ``link``.
        """

    def list(self, path: str = "", *, recursive: bool = True) -> Iterator[Entry]:
        """What is below the folder `path`, sorted by the bytes of the path; links not followed.

        A folder that does not exist lists as empty.
        """

    def open(self, path: str) -> Reader:
        """Open a regular file for reading. FIFOs and devices are refused without blocking.

        Raises:
            MissingFileError: there is nothing at `path`.
        """

    def read(self, path: str, *, limit: int = 1 << 28) -> bytes:
        """A whole small file. More than `limit` bytes is a StorageError, not an allocation."""

    def create(self, path: str, *, durable: bool = True) -> Writer:
        """Begin a file (parents are made). It appears when it is closed, whole and synced.

        Args:
            path: its name.
            durable: False for scratch that no crash needs to survive: it is not synced.
        """

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create `path` with `data` unless it exists; atomically. False where it existed."""

    def rename_dir(self, source: str, target: str) -> bool:
        """Move a folder to a name that is free; False, and nothing moved, where it is taken."""

    def replace_dir(self, source: str, target: str) -> None:
        """Put folder `source` in the place of `target`; the old one ends up under `source`.

        Where `target` does not exist it is a plain rename and `source` is gone afterwards.
        Atomic where the file system can exchange names.
        """

    def sync_dir(self, path: str) -> None:
        """Make names in a folder durable."""

    def link(self, source: str, target: str, *, origin: Storage | None = None) -> None:
        """Make `target` the same bytes as `source`: a hard link, or a copy where that fails.

        Args:
            source: a file.
            target: its second name, which is free.
            origin: the storage that `source` is in; None for this one.
        """

    def remove(self, path: str) -> None:
        """Remove a file or a whole folder; nothing there is no error."""

    def remove_abandoned(self, path: str) -> bool:
        """Remove a temporary file (see :func:`tfrecreg.storage.is_temporary`) of a killed writer.

        Returns:
            False, and nothing is removed, where its writer is alive or nobody can tell.
        """
