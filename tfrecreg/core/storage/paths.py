"""The paths that a local storage accepts, and the wording of file system errors.

Listing that follows symbolic links.

What stores were found to have, remembered for a short while.

Opening a dataset asks about each of its files in several places: whether it is a file, whether it
has an index, in which state it is. Inside of :func:`looks_remembered` a store is asked once.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from tfrecreg.core.storage.interface import Entry, Readable
from tfrecreg.core.values.errors import MissingFileError, StorageError, UsageError
from tfrecreg.core.values.text import safe

# pathlib drops `.` and `//` silently and has no descriptors: the checks here need the plain text.


_HINTS = {
    errno.EACCES: "`ls -ld` on it and on the folders above it shows who may",
    errno.EPERM: "`ls -ld` on it and on the folders above it shows who may",
    errno.ENOSPC: "free some space there, then run the command again",
    errno.EDQUOT: "free some of your quota there, then run the command again",
    errno.EFBIG: "the file system or `ulimit -f` allows no larger file: make smaller shards",
    errno.EROFS: "the file system is mounted read-only",
    errno.EIO: "the disk is failing: `dmesg` has the details",
    errno.EMFILE: "raise the limit with `ulimit -n`, or lower `--jobs`",
    errno.EXDEV: "both must be on the same file system",
}


def path_text(path: str) -> str:
    """A path for a message, escaped; never cut, because its end is the most important part."""
    return safe(path, limit=1 << 16)


def locate(root: str, path: str) -> str:
    """The absolute path of `path` below `root`. The empty path is the root itself."""
    if not path:
        return root
    if fault := _fault(path):
        raise UsageError(
            f"`{path_text(path)}` is not a path below `{path_text(root)}`: {fault}",
            hint="paths are relative to that folder, with `/` between names: `train/cat/1.png`",
        )
    return f"{root}{path}" if root.endswith("/") else f"{root}/{path}"


def _fault(path: str) -> str:
    parts = path.split("/")
    if path.startswith("/"):
        return "it is absolute"
    if ".." in parts or "." in parts:
        return f"it has a part `{'..' if '..' in parts else '.'}`"
    if "" in parts:
        return "it has an empty part"
    if "\0" in path:
        return "it holds a NUL"
    try:
        if not path.isascii():
            os.fsencode(path)
    except UnicodeEncodeError:
        return f"it cannot be written in {sys.getfilesystemencoding()}"
    return ""


def leaves(root: str, path: str) -> bool:
    """Whether symbolic links on the way to `path` lead out of `root`. The root may be a link."""
    place = root
    for part in path.split("/"):
        place = f"{place}/{part}"
        try:
            if stat.S_ISLNK(os.lstat(place).st_mode):
                break
        except OSError:
            continue  # a missing path is not a link
    else:
        return False
    base = os.path.realpath(root)
    end = os.path.realpath(os.path.join(root, path))
    return end != base and not end.startswith(os.path.join(base, ""))


def entry_kind(mode: int) -> str:
    """The kind of a file with this mode, for a message."""
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    if stat.S_ISFIFO(mode):
        return "a FIFO"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a device" if stat.S_ISBLK(mode) or stat.S_ISCHR(mode) else "a regular file"


def no_folder(path: str) -> NotADirectoryError:
    """The system's error for a file in the place of a folder, with the file's name."""
    return NotADirectoryError(errno.ENOTDIR, f"`{path_text(path)}` is not a folder", path)


def refusal(action: str, path: str, error: OSError, rest: str = "") -> StorageError:
    """The error for a failed `action` on the absolute `path`."""
    if isinstance(error, FileNotFoundError):
        return MissingFileError(
            f"`{path_text(path)}` does not exist", hint="it was removed, or the path is wrong"
        )
    reason = error.strerror or str(error)
    return StorageError(f"cannot {action} `{path_text(path)}`{rest}: {reason}", hint=advice(error))


def advice(error: OSError) -> str:
    """A hint for a system error; empty if there is none."""
    return _HINTS.get(error.errno or 0, "")


@contextmanager
def translated(action: str, path: str, rest: str = "") -> Iterator[None]:
    """Convert every OSError inside to the StorageError of :func:`refusal`, with its cause
    attached.
    """
    try:
        yield
    except OSError as error:
        raise refusal(action, path, error, rest) from error


def list_through_links(storage: Readable) -> Iterator[Entry]:
    """Everything below the root except folders, with symbolic links followed to any target.

    Each folder is listed once, even if many links lead to it, so circular links are harmless. A
    link whose target is missing keeps the kind ``link``.
    """
    top = storage.stat("", follow="all")
    known = {(top.device, top.inode)} if top is not None else set()
    folders = [""]
    while folders:
        for entry in storage.list(folders.pop(), recursive=False):
            found = entry
            if entry.kind == "link":
                found = storage.stat(entry.path, follow="all") or entry
            if found.kind != "dir":
                yield found
            elif (found.device, found.inode) not in known:
                known.add((found.device, found.inode))
                folders.append(found.path)


Info: TypeAlias = "Mapping[str, Any] | None"
"""What fsspec says of a file; None if there is none."""

_looks: ContextVar[dict[str, Info] | None] = ContextVar("looks", default=None)


@contextmanager
def looks_remembered() -> Iterator[None]:
    """A block in which a store is asked once about each URL; an inner block shares with its outer
    one.
    """
    known = _looks.get()
    token = _looks.set({} if known is None else known)
    try:
        yield
    finally:
        _looks.reset(token)


def looked(url: str, look: Callable[[], Info]) -> Info:
    """What is known about a URL, or else found by `look`."""
    known = _looks.get()
    if known is None:
        return look()
    if url not in known:
        known[url] = look()
    return known[url]


def remembered() -> dict[str, Info] | None:
    """What is known, to add to; None outside of :func:`looks_remembered`."""
    return _looks.get()
