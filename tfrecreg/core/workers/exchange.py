"""Small files that a command and its workers exchange, in a folder or a store that both see."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from tfrecreg.core.storage.interface import Appendable
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.paths import is_url, named_url
from tfrecreg.core.storage.raw import store_at
from tfrecreg.core.values.errors import MissingFileError, TfrecregError


def new_exchange(parent: str | None, engine: str) -> Exchange:
    """An empty place with a name of its own.

    Args:
        parent: a folder or a URL; None for the folder of temporary files.
        engine: name of the engine, which the place's name begins with.

    Raises:
        OSError: no folder can be made there.
        UsageError: the URL has a password or a token.
        MissingExtraError: the library for the URL is not installed.
    """
    prefix = f"tfrecreg-{engine}-"
    if parent is None or not is_url(parent):
        return Exchange(tempfile.mkdtemp(prefix=prefix, dir=parent))
    return Exchange(f"{named_url(parent).rstrip('/')}/{prefix}{os.urandom(8).hex()}")


class Exchange:
    """Files by name; a file appears whole. Made by :func:`new_exchange`, and in a worker by its
    place.

    Args:
        place: path or URL.

    All methods but :meth:`end` raise a StorageError where the file system or the store refuses.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self._files: Appendable = store_at(place) if is_url(place) else LocalStorage(place)
        self.pause = 0.002 if self._files.is_local else 0.05
        """Initial interval in seconds between two looks for a file."""

    def is_there(self) -> bool:
        """Whether this process sees the place. In a store it is always True, because stores have no
        empty folders.
        """
        return not self._files.is_local or Path(self.place).is_dir()

    def put(self, name: str, data: bytes) -> None:
        """Add a file. If two are added under one name, one stays."""
        self._files.put_if_absent(name, data)

    def get(self, name: str) -> bytes | None:
        """Its bytes; None if it is not there."""
        try:
            return self._files.read(name, limit=sys.maxsize)
        except MissingFileError:
            return None

    def has(self, name: str) -> bool:
        """Whether it is there."""
        return self._files.stat(name) is not None

    def drop(self, name: str) -> None:
        """Remove it, if it is there."""
        self._files.remove(name)

    def end(self) -> None:
        """Remove the place and all that is in it. What cannot be removed stays."""
        if self._files.is_local:
            shutil.rmtree(self.place, ignore_errors=True)
            return
        with suppress(TfrecregError):
            for entry in list(self._files.list()):
                self._files.remove(entry.path)
