"""Checks paths for a local storage, parses URLs, and writes the messages for file system errors.

Code that opens a dataset asks several times about each file: is it a file, does it have an index,
did it change? Inside :func:`looks_remembered`, each URL is requested once.

A password and the query of a presigned URL are secrets. When a URL is first seen, its query is put
aside in this process's memory. From then on, storages and messages have the URL without the query.
A URL with a password is refused.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from tfrecreg.core.storage.interface import Entry, Readable
from tfrecreg.core.values.errors import MissingFileError, StorageError, UsageError
from tfrecreg.core.values.text import DOCS, safe

# pathlib drops `.` and `//` silently and has no descriptors, and the checks here need the plain
# text.


def path_text(path: str) -> str:
    """A path for a message, escaped but never cut, because its end matters most."""
    return safe(path, limit=1 << 16)


def locate(root: str, path: str) -> str:
    """The absolute path of `path`, which is below `root`. An empty `path` is the root itself."""
    if not path:
        return root
    below = "\0" not in path and {"", ".", ".."}.isdisjoint(path.split("/"))
    if not below or not (path.isascii() or _is_encodable(path)):
        raise UsageError(f"`{path}` is not a path below `{root}`")
    return f"{root}{path}" if root.endswith("/") else f"{root}/{path}"


def _is_encodable(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


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


def no_folder(path: str) -> NotADirectoryError:
    """The system's error for a path that should be a folder but is not."""
    return NotADirectoryError(errno.ENOTDIR, f"`{path}` is not a folder", path)


def refusal(action: str, path: str, error: OSError, rest: str = "") -> StorageError:
    """The error for a failed `action` on the absolute `path`."""
    if isinstance(error, FileNotFoundError):
        return MissingFileError(f"`{path}` does not exist")
    reason = error.strerror or str(error)
    return StorageError(f"cannot {action} `{path}`{rest}: {reason}")


def expect_small(size: int, limit: int, path: str) -> None:
    """Refuse to read a whole file at once if it has more than `limit` bytes."""
    if size > limit:
        raise StorageError(f"`{path}` has {size} bytes, but at most {limit} bytes are read at once")


@contextmanager
def translated(action: str, path: str, rest: str = "") -> Iterator[None]:
    """Convert an OSError in the block to the StorageError of :func:`refusal`."""
    try:
        yield
    except OSError as error:
        raise refusal(action, path, error, rest) from error


def list_through_links(storage: Readable) -> Iterator[Entry]:
    """Everything below the root except folders. All symbolic links are followed.

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

_looks: ContextVar[dict[str, Info] | None] = ContextVar("looks", default=None)


@contextmanager
def looks_remembered() -> Iterator[None]:
    """Request each URL only once inside the ``with`` block. An inner block shares the results of
    its outer block.
    """
    known = _looks.get()
    token = _looks.set({} if known is None else known)
    try:
        yield
    finally:
        _looks.reset(token)


def remembered() -> dict[str, Info] | None:
    """The known facts by URL, in a mapping to which callers add facts. None outside
    :func:`looks_remembered`.
    """
    return _looks.get()


INDEX_SUFFIX = ".index"
"""The name of an index is the name of its shard plus this suffix."""
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.:-]*)://(?P<rest>.*)", re.S)
_WEB = frozenset({"http", "https"})
# fmt: off
_STORES = _WEB | {
    "abfs", "abfss", "adl", "az", "box", "dbfs", "dropbox", "ftp", "gcs", "gdrive", "gs", "hdfs",
    "hf", "lakefs", "oci", "ocilake", "oss", "s3", "s3a", "sftp", "smb", "ssh", "tos", "webdav",
    "webhdfs",
}
# fmt: on
"""Protocols whose URLs name the same file in every process, in every folder and on every machine.
"""
_MORE_STORES = "TFRECREG_REMOTE_PROTOCOLS"
"""The environment variable that adds protocols, separated by commas. Data cannot set it."""
# A question mark in a name is a wildcard; a question mark before ``name=value`` begins a query.
_QUERY = re.compile(r"\?[A-Za-z0-9_.%-]+=")
_queries: dict[str, str] = {}


def is_url(text: str) -> bool:
    """Whether `text` is a URL, such as ``s3://bucket/train-*``. A reference never is."""
    return "://" in text and _URL.match(text) is not None


def expect_no_url(text: str, why: str) -> None:
    """Refuse a URL where a path is expected: the path would begin with a folder ``s3:``."""
    if is_url(text):
        raise UsageError(f"`{without_secrets(text)}` is a URL, and {why}")


def is_web(url: str) -> bool:
    """Whether a URL belongs to a web server, which has no folders."""
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
    """A URL without its query. :func:`query_of` returns the query. A path stays as it is."""
    found = _URL.match(url)
    if found is None:
        return url
    shown = without_secrets(url)
    scheme, rest = found["scheme"], found["rest"]
    authority = rest.partition("/")[0]
    more = {each.strip() for each in os.environ.get(_MORE_STORES, "").split(",")}
    if scheme.lower() not in _STORES and scheme not in more:
        # The URL may mean a file of one process, of one folder or of another repository.
        raise UsageError(
            f"`{shown}` is not read: `{scheme}://` is not known as a remote store",
            hint=f"{DOCS}/remote-data.md lists the known stores; for another "
            f"protocol of fsspec that you trust, set {_MORE_STORES}={scheme}",
        )
    if not authority:
        raise UsageError(f"`{shown}` names no bucket or host")
    user = authority.rpartition("@")[0]
    if user and (":" in user or scheme.lower() in _WEB):
        raise UsageError(
            f"a URL of `{scheme}://` has a password or token, which others could see",
            hint="put credentials into the environment or fsspec's configuration: "
            f"{DOCS}/remote-data.md",
        )
    at = _query_at(scheme, rest)
    query = rest[at:]
    if query and scheme.lower() not in _WEB:
        raise UsageError(f"`{shown}` has a query, but URLs of `{scheme}://` have none")
    if query:
        _queries[shown] = query
    return shown


def query_of(url: str) -> str:
    """The query that the URL had, with its question mark; empty if it had no query."""
    return _queries.get(url, "")


def remember_query(url: str, query: str) -> None:
    """Keep a URL's query, which another process sent to this process with the URL."""
    if query:
        _queries[url] = query


def split_url(url: str) -> tuple[str, str]:
    """The root of a URL (``s3://bucket``) and the path below it, without a slash at its start."""
    scheme, _, rest = url.partition("://")
    authority, _, path = rest.partition("/")
    return f"{scheme}://{authority}", path.lstrip("/")


def _query_at(scheme: str, rest: str) -> int:
    """The position of the query or fragment in `rest`; the length of `rest` if it has neither."""
    if scheme.lower() in _WEB:
        return min((rest.find(mark) for mark in "?#" if mark in rest), default=len(rest))
    found = _QUERY.search(rest)
    return found.start() if found is not None else len(rest)
