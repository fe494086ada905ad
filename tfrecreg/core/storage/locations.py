"""From a location, a path or a URL, to its storage."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, TypeVar

from tfrecreg.core.storage.interface import Readable, Store
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.raw import RawFolder, RawStorage
from tfrecreg.core.storage.remote.urls import is_url, named_url, split_url
from tfrecreg.core.values.progress import SILENT, Progress

# The room for URLs is imported here only. Few commands need it.
_STORES = "tfrecreg.core.storage.remote.remote"
_LISTED = "tfrecreg.core.storage.listed"
_THREADS = "tfrecreg.core.storage.remote.daemon_threads"

T = TypeVar("T")


def storage_at(root: str) -> Readable:
    """The storage with this root: a folder, or a URL without secrets."""
    return store_at(root) if is_url(root) else LocalStorage(root)


def store_at(url: str) -> Store:
    """The storage behind a URL from :func:`tfrecreg.core.storage.remote.urls.named_url`."""
    store: Store = import_module(_STORES).open_store(url)
    return store


def asked(function: Callable[[Any], T], tasks: Iterable[Any], *, in_store: bool) -> list[T]:
    """The results of a function; of one that asks a store, several calls at the same time."""
    return [*(import_module(_THREADS).at_once if in_store else map)(function, tasks)]


def raw_storage(place: str, progress: Progress = SILENT, *, start: str = "") -> RawStorage:
    """The storage of raw data, as a user names them: a folder, or the URL of one."""
    if not is_url(place):
        return RawFolder(os.path.join(start, os.path.expanduser(place)), progress)
    listed: RawStorage = import_module(_LISTED).listed_storage(place, progress)
    return listed


def storage_of(path: str) -> tuple[Readable, str]:
    """The storage of one file, and its name there."""
    if not is_url(path):
        folder, name = os.path.split(path)
        return LocalStorage(folder or os.curdir), name
    root, inside = split_url(named_url(path))
    return storage_at(root), inside


def absolute_place(place: str, folder: str = os.curdir) -> str:
    """A path or a URL as it is the same everywhere, without a slash at its end. Links stay."""
    if is_url(place):
        return place.rstrip("/")
    return os.path.abspath(os.path.join(folder, place))


def is_absolute(place: str) -> bool:
    """Whether a path or URL is the same in every folder."""
    return is_url(place) or os.path.isabs(place)
