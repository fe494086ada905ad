"""Small files that a command and its workers exchange, in a folder or a store that both see."""

from __future__ import annotations

import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tfrecreg.errors import MissingFileError, TfrecregError
from tfrecreg.storage.interface import Appendable
from tfrecreg.storage.locations import store_at
from tfrecreg.storage.urls import is_url, named_url


class Exchange(ABC):
    """Files by name; a file appears whole. Made by :func:`new_exchange` and :func:`exchange_at`."""

    pause: float
    """Seconds between two looks for a file, at the beginning."""

    @property
    @abstractmethod
    def place(self) -> str:
        """Path or URL, for :func:`exchange_at` in a worker."""

    @abstractmethod
    def is_there(self) -> bool:
        """Whether this process sees the place, as far as that can be known."""

    @abstractmethod
    def put(self, name: str, data: bytes) -> None:
        """Add a file. Of two that are added under one name, one stays.

        Raises:
            OSError, StorageError: the file system or the store refused.
        """

    @abstractmethod
    def get(self, name: str) -> bytes | None:
        """Its bytes; None if it is not there.

        Raises:
            OSError, StorageError: the file system or the store refused.
        """

    @abstractmethod
    def has(self, name: str) -> bool:
        """Whether it is there; raises as :meth:`get` does."""

    @abstractmethod
    def drop(self, name: str) -> None:
        """Remove it, if it is there; raises as :meth:`get` does."""

    @abstractmethod
    def end(self) -> None:
        """Remove the place and all that is in it. What cannot be removed stays."""


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
        return FolderExchange(Path(tempfile.mkdtemp(prefix=prefix, dir=parent)))
    return exchange_at(f"{named_url(parent).rstrip('/')}/{prefix}{os.urandom(8).hex()}")


def exchange_at(place: str) -> Exchange:
    """The place of a path or URL."""
    return StoreExchange(store_at(place)) if is_url(place) else FolderExchange(Path(place))


@dataclass(frozen=True, slots=True)
class FolderExchange(Exchange):
    """In a folder."""

    folder: Path
    pause = 0.002

    @property
    def place(self) -> str:
        return str(self.folder)

    def is_there(self) -> bool:
        return self.folder.is_dir()

    def put(self, name: str, data: bytes) -> None:
        target = self.folder / name
        temporary = target.with_suffix(f".{os.urandom(8).hex()}.tmp")
        temporary.write_bytes(data)
        temporary.replace(target)

    def get(self, name: str) -> bytes | None:
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()

    def drop(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)

    def end(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class StoreExchange(Exchange):
    """In a store behind a URL."""

    store: Appendable
    pause = 0.05

    @property
    def place(self) -> str:
        return self.store.root

    def is_there(self) -> bool:
        return True  # stores have no empty folders: the first file tells

    def put(self, name: str, data: bytes) -> None:
        self.store.put_if_absent(name, data)

    def get(self, name: str) -> bytes | None:
        try:
            return self.store.read(name)
        except MissingFileError:
            return None

    def has(self, name: str) -> bool:
        return self.store.stat(name) is not None

    def drop(self, name: str) -> None:
        self.store.remove(name)

    def end(self) -> None:
        with suppress(TfrecregError):
            for entry in list(self.store.list()):
                self.store.remove(entry.path)
