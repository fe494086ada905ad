"""From a location, a path or a URL, to its storage."""

from __future__ import annotations

import os

from tfrecreg.progress import SILENT, Progress
from tfrecreg.storage.interface import Storage
from tfrecreg.storage.local import LocalStorage
from tfrecreg.storage.raw import RawFolder, RawStorage
from tfrecreg.storage.urls import is_url, named_url, split_url

LOCATION_NAME = "location.json"
"""The file beside a manifest that says where the shards are. The manifest does not list it."""


def storage_at(root: str) -> Storage:
    """The storage with this root: a folder, or a URL without secrets."""
    if not is_url(root):
        return LocalStorage(root)
    from tfrecreg.storage.remote import RemoteStorage  # few need it

    return RemoteStorage(root)


def raw_storage(place: str, progress: Progress = SILENT, *, start: str = "") -> RawStorage:
    """The storage of raw data, as a user names them: a folder, or the URL of one.

    Args:
        place: it need not exist.
        progress: updated for what is listed, and for what is read of a folder.
        start: where a relative path starts; empty for the current folder.

    Raises:
        UsageError: a URL with a password or a query, or a path with a NUL.
    """
    if not is_url(place):
        return RawFolder(os.path.join(start, place), progress)
    from tfrecreg.storage.listed import listed_storage  # few need it

    return listed_storage(place, progress)


def storage_of(path: str) -> tuple[Storage, str]:
    """The storage of one file, and its name there.

    Raises:
        UsageError: it is a URL with a password.
    """
    if not is_url(path):
        folder, name = os.path.split(path)
        return LocalStorage(folder or os.curdir), name
    root, inside = split_url(named_url(path))
    return storage_at(root), inside
