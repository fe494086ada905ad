"""From a location, a path or a URL, to its storage."""

from __future__ import annotations

import os

from tfrecreg.storage.interface import Storage
from tfrecreg.storage.local import LocalStorage
from tfrecreg.storage.urls import is_url, named_url, split_url

LOCATION_NAME = "location.json"
"""The file beside a manifest that says where the shards are. The manifest does not list it."""


def storage_at(root: str) -> Storage:
    """The storage with this root: a folder, or a URL without secrets."""
    if not is_url(root):
        return LocalStorage(root)
    from tfrecreg.storage.remote import RemoteStorage  # few need it

    return RemoteStorage(root)


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
