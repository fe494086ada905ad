"""From URLs to files: one, those that a glob or a set means, those below a folder, or a build."""

from __future__ import annotations

import glob
from collections.abc import Collection, Iterator
from typing import NamedTuple

from tfrecreg.errors import UsageError
from tfrecreg.shards import parse_shard_name
from tfrecreg.storage.interface import Readable
from tfrecreg.storage.locations import store_at
from tfrecreg.storage.urls import query_of, split_url
from tfrecreg.text import safe

_WEB = ("http:", "https:")


class UrlFile(NamedTuple):
    """A file that a URL names."""

    storage: Readable
    path: str
    """In `storage`."""
    url: str


def expand_url(url: str) -> list[UrlFile]:
    """The files that one URL names, as the same path on a disk would.

    Args:
        url: from :func:`tfrecreg.storage.urls.named_url`: a file, a glob, a folder (every shard
            below it) or a set, ``s3://bucket/train@10``.

    Raises:
        UsageError: nothing matches.
        StorageError: the store cannot be asked.
        FailureError: a library is missing.
    """
    root, path = split_url(url)
    storage = store_at(root)
    missing = f"no file matches `{safe(url, limit=1000)}`"
    matched = [entry.path for entry in storage.glob(path)] if glob.has_magic(path) else []
    if matched:
        found = matched
    elif not glob.has_magic(path) and _is_folder(storage, url, path):
        found = list(_shards_below(storage, path.rstrip("/")))
        missing = f"there is no TFRecord file below the folder `{safe(url, limit=1000)}`"
    elif storage.stat(path) is not None:
        # Its own storage, for the query that only this file has.
        return [UrlFile(storage, path, url)]
    else:
        prefix, _, count = path.rpartition("@")
        found = []
        if prefix and count.isdecimal():
            pattern = f"{glob.escape(prefix)}-[0-9]*-of-{int(count):05d}*"
            found = [entry.path for entry in storage.glob(pattern)]
    if not found:
        if root.startswith(("s3:", "s3a:", "gs:", "gcs:")) and storage.stat("") is None:
            missing = f"there is no bucket `{safe(root, limit=1000)}`"
        raise UsageError(missing, hint="quote globs, and look at the name and the bucket")
    return [UrlFile(storage, each, f"{storage.root}/{each}") for each in found]


def is_file_url(url: str) -> bool:
    """Whether a URL names one file, by its own name."""
    root, path = split_url(url)
    if glob.has_magic(path) or not path or path.endswith("/"):
        return False
    entry = store_at(root).stat(path)
    return entry is not None and entry.kind == "file"


def is_folder_url(url: str) -> bool:
    """Whether a URL names a folder."""
    root, path = split_url(url)
    return not (glob.has_magic(path) or query_of(url)) and _is_folder(store_at(root), url, path)


def files_below(storage: Readable) -> Collection[str] | None:
    """The paths of all files of a folder, by a request for each thousand; None for web servers,
    which need not list what they have.
    """
    if storage.root.startswith(_WEB):
        return None
    return frozenset(entry.path for entry in storage.list() if entry.kind != "dir")


def _is_folder(storage: Readable, url: str, path: str) -> bool:
    """Whether it is a folder. Web servers have none: there a slash at the end says so."""
    if not path or path.endswith("/"):
        return True
    if url.startswith(_WEB):
        return False
    entry = storage.stat(path)
    return entry is not None and entry.kind == "dir"


def _shards_below(storage: Readable, folder: str) -> Iterator[str]:
    """By their names; hidden folders are left out."""
    for entry in storage.list(folder):
        *above, name = entry.path.split("/")
        if entry.kind == "dir" or any(part.startswith(".") for part in above):
            continue
        if parse_shard_name(name) is not None:
            yield entry.path
