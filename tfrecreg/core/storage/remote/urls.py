"""URLs as targets: parsing, and hiding secrets in messages.

A password, or the query of a presigned URL, is a secret. A query is put aside in the memory of this
process when a URL is first seen; everything behind that, storages and messages among it, has the
URL without it. A URL with a password is refused.
"""

from __future__ import annotations

import os
import re

from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import DOCS, safe

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
