"""Paths that a local storage accepts, URLs as targets, and the wording of file system errors.

Opening a dataset asks about each of its files in several places: whether it is a file, whether it
has an index, in which state it is. Inside of :func:`looks_remembered` a store is asked once.

A password, or the query of a presigned URL, is a secret. A query is put aside in the memory of this
process when a URL is first seen; everything behind that, storages and messages among it, has the
URL without it. A URL with a password is refused.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from tfrecreg.core.storage.interface import Entry, Readable
from tfrecreg.core.values.errors import MissingFileError, StorageError, UsageError
from tfrecreg.core.values.text import DOCS, safe

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


_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.:-]*)://(?P<rest>.*)", re.S)
_WEB = frozenset({"http", "https"})
# fmt: off
_STORES = _WEB | {
    "abfs", "abfss", "adl", "az", "box", "dbfs", "dropbox", "ftp", "gcs", "gdrive", "gs", "hdfs",
    "hf", "lakefs", "oci", "ocilake", "oss", "s3", "s3a", "sftp", "smb", "ssh", "tos", "webdav",
    "webhdfs",
}
# fmt: on
"""Protocols whose URLs mean the same in every process, on every machine and in every folder."""
_MORE_STORES = "TFRECREG_REMOTE_PROTOCOLS"
"""The environment variable that names more, in one text with commas. Data cannot set it."""
# In a name a question mark is a wildcard; one with a name and a value behind it is a query.
_QUERY = re.compile(r"\?[A-Za-z0-9_.%-]+=")
_queries: dict[str, str] = {}


def is_url(text: str) -> bool:
    """Whether `text` is a URL, such as ``s3://bucket/train-*``. A reference never is."""
    return "://" in text and _URL.match(text) is not None


def expect_no_url(text: str, what: str) -> None:
    """Refuse a URL where only a path is written to: it would be a folder called ``s3:``."""
    if is_url(text):
        raise UsageError(
            f"`{safe(without_secrets(text), limit=1000)}` is a URL, and only files of this machine "
            "are written here",
            hint=f"name {what} of this machine, and copy it there",
        )


def is_web(url: str) -> bool:
    """Whether a URL is of a web server, which has no folders."""
    return url.partition("://")[0].lower() in _WEB


def without_secrets(url: str) -> str:
    """The URL without user, password, query and fragment, for messages. Not escaped."""
    found = _URL.match(url)
    if found is None:
        return url
    scheme, rest = found["scheme"], found["rest"]
    rest = rest[: _query_at(scheme, rest)]
    authority, slash, path = rest.partition("/")
    if ":" in authority.rpartition("@")[0] or scheme.lower() in _WEB:
        authority = authority.rpartition("@")[2]
    return f"{scheme}://{authority}{slash}{path}"


def named_url(url: str) -> str:
    """A URL without its query, which is kept for :func:`query_of`."""
    found = _URL.match(url)
    assert found is not None
    shown = without_secrets(url)
    named = safe(shown, limit=1000)
    scheme, rest = found["scheme"], found["rest"]
    authority = rest.partition("/")[0]
    if "::" in scheme:
        raise UsageError(
            f"`{named}` is a chain of file systems, which is not read",
            hint="name the file system that has the files: `s3://bucket/train-*`",
        )
    if scheme.lower() == "file":
        raise UsageError(f"`{named}` is a local path written as a URL", hint="name the path itself")
    _expect_store(scheme, named)
    if not authority:
        raise UsageError(
            f"`{named}` names no bucket or host", hint="`s3://bucket/train-*` names files in one"
        )
    user = authority.rpartition("@")[0]
    if user and (":" in user or scheme.lower() in _WEB):
        raise UsageError(
            f"a URL of `{safe(scheme)}://` holds a password or token, which others would see",
            hint="put credentials into the environment or fsspec's configuration: "
            f"{DOCS}/remote-data.md",
        )
    at = _query_at(scheme, rest)
    query = rest[at:]
    if query and scheme.lower() not in _WEB:
        raise UsageError(
            f"`{named}` has a query, which `{safe(scheme)}://` does not have",
            hint="presigned URLs begin with `https://`",
        )
    if query:
        _queries[shown] = query
    return shown


def _expect_store(scheme: str, named: str) -> None:
    """Refuse URLs of files of one process, one folder or another repository."""
    more = {each.strip() for each in os.environ.get(_MORE_STORES, "").split(",")}
    if scheme.lower() not in _STORES and scheme not in more:
        raise UsageError(
            f"`{named}` is not read: `{safe(scheme)}://` is not known as a remote store",
            hint=f"{DOCS}/remote-data.md lists those that are; for another "
            f"protocol of fsspec that you trust, set {_MORE_STORES}={safe(scheme)}",
        )


def query_of(url: str) -> str:
    """The query that a URL had, with its question mark; empty if it had none."""
    return _queries.get(url, "")


def remember_query(url: str, query: str) -> None:
    """Put the query of a URL aside, in a process that got it from another."""
    if query:
        _queries[url] = query


def split_url(url: str) -> tuple[str, str]:
    """The root of a URL (``s3://bucket``) and the path below it, without a slash at its start."""
    scheme, _, rest = url.partition("://")
    authority, _, path = rest.partition("/")
    return f"{scheme}://{authority}", path.lstrip("/")


def _query_at(scheme: str, rest: str) -> int:
    """Where the query or the fragment of a URL begins; its end if it has none."""
    if scheme.lower() in _WEB:
        return min((rest.find(mark) for mark in "?#" if mark in rest), default=len(rest))
    found = _QUERY.search(rest)
    return found.start() if found is not None else len(rest)
