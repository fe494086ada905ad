"""Finds the storage of a path or a URL, and defines the storage of raw data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.paths import is_url, is_web, named_url, split_url
from tfrecreg.core.values.errors import UsageError

if TYPE_CHECKING:
    from tfrecreg.core.storage.listed import ListedStorage
    from tfrecreg.core.storage.remote import RemoteStorage


RawStorage: TypeAlias = "LocalStorage | ListedStorage"
"""The folder of raw data."""

S = TypeVar("S")
T = TypeVar("T")


def storage_at(root: str) -> Readable:
    """The storage with this root: a folder, or a URL without secrets."""
    return store_at(root) if is_url(root) else LocalStorage(root)


def store_at(url: str) -> RemoteStorage:
    """The storage behind a URL from :func:`tfrecreg.core.storage.paths.named_url`."""
    from tfrecreg.core.storage.remote import RemoteStorage  # imported here: few need it

    return RemoteStorage(url)


def asked(function: Callable[[S], T], tasks: Iterable[S], roots: Iterable[str]) -> list[T]:
    """Call a function for each task, and return the results. The tasks use storages with these
    `roots`. If a root is a URL, several calls run at the same time.
    """
    if not any(map(is_url, roots)):
        return [function(task) for task in tasks]
    from tfrecreg.core.storage.file_systems import at_once

    return list(at_once(function, tasks))


def raw_storage(place: str, *, start: str = "") -> RawStorage:
    """The storage of the raw data in `place`: a folder or a URL, as the user wrote it."""
    if not is_url(place):
        return LocalStorage(os.path.join(start, os.path.expanduser(place)))
    from tfrecreg.core.storage.listed import listed_storage

    return listed_storage(place)


def expect_raw_folder(place: str, *, start: str = "") -> RawStorage:
    """Like :func:`raw_storage`. Raises a UsageError if the root is missing or not a folder."""
    raw = raw_storage(place, start=start)
    if not isinstance(raw, LocalStorage):
        raw.expect_folder()
    elif not Path(raw.root).is_dir():
        what = "is not a folder" if Path(raw.root).exists() else "does not exist"
        raise UsageError(
            f"the raw data `{raw.root}` {what}", hint="name the folder with --raw PATH"
        )
    return raw


def store_to_fill(place: str) -> RemoteStorage | None:
    """The storage for a URL of a folder in a bucket; None for a path."""
    if not is_url(place):
        return None
    url = named_url(place)
    if is_web(url):
        raise UsageError(
            f"`{url}` is on a web server, but files are sent to buckets only",
        )
    return store_at(url)


def storage_of(path: str) -> tuple[Readable, str]:
    """The storage of one file, and its name there."""
    if not is_url(path):
        folder, name = os.path.split(path)
        return LocalStorage(folder or os.curdir), name
    root, inside = split_url(named_url(path))
    return storage_at(root), inside


def path_of(place: str, folder: str = os.curdir) -> str | None:
    """The absolute path of a place; None for a URL, which some programs cannot open."""
    return None if is_url(place) else os.path.abspath(os.path.join(folder, place))


def absolute_place(place: str, folder: str = os.curdir) -> str:
    """The absolute path, or the URL, of a place, without a final slash. Links are not resolved."""
    return path_of(place, folder) or place.rstrip("/")


def file_from_here(folder: str, path: str, prefix: str) -> str:
    """The path of a file in `folder`, relative to the current folder; its URL if `folder` is a URL.
    A relative `folder` is taken as a path below `prefix`.
    """
    if is_url(folder):
        return f"{folder}/{path}"
    # Other programs expect a path in the work tree.
    near = os.path.relpath(folder) if os.path.isabs(folder) else os.path.join(prefix, folder)
    return os.path.normpath(os.path.join(near, path))


def place_in(folder: str, place: str, *, relative: bool) -> str:
    """The form of `place` to write into a file in `folder`. A path below `folder` becomes relative
    to `folder`. With `relative`, every path becomes relative. A URL is unchanged.
    """
    if is_url(place) or not (relative or Path(place).is_relative_to(folder)):
        return place
    return os.path.relpath(place, folder)


def is_absolute(place: str) -> bool:
    """Whether `place` does not depend on the current folder: an absolute path or a URL."""
    return is_url(place) or os.path.isabs(place)
