"""Small files that a command and its workers exchange, in a folder or a store that both see."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tfrecreg.errors import MissingFileError, TfrecregError
from tfrecreg.storage.interface import Appendable
from tfrecreg.storage.local import LocalStorage
from tfrecreg.storage.locations import store_at
from tfrecreg.storage.urls import is_url, named_url


@dataclass(frozen=True, slots=True)
class Exchange:
    """Files by name; a file appears whole. Made by :func:`new_exchange` and :func:`exchange_at`.

    Each method but :meth:`end` raises :class:`~tfrecreg.errors.StorageError` if the file system or
    the store refuses.
    """

    storage: Appendable
    """Rooted at the place."""

    @property
    def place(self) -> str:
        """Path or URL, for :func:`exchange_at` in a worker."""
        return self.storage.root

    @property
    def pause(self) -> float:
        """Seconds between two looks for a file, at the beginning."""
        return 0.002 if self.storage.is_local else 0.05

    def is_there(self) -> bool:
        """Whether this process sees the place, as far as that can be known."""
        # Stores have no empty folders: the first file tells.
        return not self.storage.is_local or Path(self.place).is_dir()

    def put(self, name: str, data: bytes) -> None:
        """Add a file. Of two that are added under one name, one stays."""
        self.storage.put_if_absent(name, data)

    def get(self, name: str) -> bytes | None:
        """Its bytes; None if it is not there."""
        try:
            return self.storage.read(name, limit=sys.maxsize)
        except MissingFileError:
            return None

    def has(self, name: str) -> bool:
        """Whether it is there."""
        return self.storage.stat(name) is not None

    def drop(self, name: str) -> None:
        """Remove it, if it is there."""
        self.storage.remove(name)

    def end(self) -> None:
        """Remove the place and all that is in it. What cannot be removed stays."""
        if self.storage.is_local:
            shutil.rmtree(self.place, ignore_errors=True)
            return
        with suppress(TfrecregError):
            for entry in list(self.storage.list()):
                self.storage.remove(entry.path)


def new_exchange(parent: str | None, engine: str) -> Exchange:
    """An empty place with a name of its own.

    Args:
        parent: a folder or a URL; None for the folder of temporary files.
        engine: whose it is; its name begins with it.

    Raises:
        OSError: no folder can be made there.
        UsageError: the URL has a password or a token.
        MissingExtraError: the library for the URL is not installed.
    """
    prefix = f"tfrecreg-{engine}-"
    if parent is None or not is_url(parent):
        return exchange_at(tempfile.mkdtemp(prefix=prefix, dir=parent))
    return exchange_at(f"{named_url(parent).rstrip('/')}/{prefix}{os.urandom(8).hex()}")


def exchange_at(place: str) -> Exchange:
    """The place of a path or URL."""
    return Exchange(store_at(place) if is_url(place) else LocalStorage(place))
