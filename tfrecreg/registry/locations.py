"""Where the bytes of a build or release are, if they are in a store.

`location.json` beside the manifest has the URL of the folder with the shards. No digest covers it:
the same content has the same manifest wherever its bytes are.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from tfrecreg.errors import ManifestError, NewerFormatError, UsageError
from tfrecreg.registry.registry import Registry
from tfrecreg.storage import LocalStorage, Storage
from tfrecreg.storage.locations import LOCATION_NAME
from tfrecreg.storage.urls import is_url, named_url
from tfrecreg.text import safe

_FORMAT = 1


def render_location(url: str) -> bytes:
    """The file: one line of JSON.

    Args:
        url: of the folder with the shards, from :func:`tfrecreg.storage.urls.named_url`.
    """
    return msgspec.json.encode({"format_version": _FORMAT, "url": url}) + b"\n"


def location_of(registry: Registry, folder: str) -> str | None:
    """The URL of the shards of a build or release; None if they are local files, or kept by DVC.

    Args:
        registry: the registry.
        folder: with the manifest: ``data/mnist`` or ``registry/mnist/1.0.0``.

    Raises:
        ManifestError: the file that says so is damaged.
        NewerFormatError: a newer tfrecreg wrote it.
    """
    path = f"{folder}/{LOCATION_NAME}"
    data = registry.read(path)
    return None if data is None else parse_location(data, path)


def parse_location(data: bytes, path: str) -> str:
    """The URL in a `location.json`.

    Args:
        data: content of the file.
        path: what messages call it.

    Raises:
        ManifestError: it is damaged.
        NewerFormatError: a newer tfrecreg wrote it.
    """
    try:
        found: Any = msgspec.json.decode(data)
    except msgspec.MsgspecError:
        found = None
    version = found.get("format_version") if isinstance(found, dict) else None
    if isinstance(version, int) and version > _FORMAT:
        raise NewerFormatError(
            f"`{safe(path)}` has format {version}, this tfrecreg reads {_FORMAT}",
            hint="install a newer tfrecreg",
        )
    url = found.get("url") if isinstance(found, dict) else None
    if version == _FORMAT and isinstance(url, str) and is_url(url):
        with suppress(UsageError):
            return named_url(url)
    raise ManifestError(
        f"`{safe(path)}` does not say where the bytes are: expected a URL",
        hint="restore it from git, or build again",
    )


def folder_storage(registry: Registry, folder: str) -> Storage:
    """The files of a build, rooted at its folder: with those that are in a store.

    Args:
        registry: the registry.
        folder: ``data/mnist`` or ``versions/mnist/1.0.0``.

    Raises:
        ManifestError, NewerFormatError: as :func:`location_of`.
    """
    local = registry.storage.below(folder)
    url = location_of(registry, folder)
    if url is None:
        return local
    from tfrecreg.storage.remote import RemoteStorage  # few builds need them
    from tfrecreg.storage.two_places import TwoPlaces

    return TwoPlaces(LocalStorage(local.root), RemoteStorage(url))
