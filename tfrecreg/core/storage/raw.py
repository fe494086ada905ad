"""Raw data of a build: a local folder, or objects that are listed and fetched ahead.

From a location, a path or a URL, to its storage.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeVar

from tfrecreg.core.storage.interface import Entry, Readable, Store
from tfrecreg.core.storage.local import LocalReader, LocalStorage
from tfrecreg.core.storage.paths import is_url, named_url, path_text, split_url
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.progress import SILENT, Progress, Ticker


class RawStorage(Readable, Protocol):
    """The folder of raw data."""

    def expect_folder(self) -> None:
        """Raise a UsageError if there is nothing, or something else."""

    def forget(self) -> None:
        """Look at the files again when they are asked for."""

    def told_in(self, folder: str, *, relative: bool) -> str:
        """Its location as a file in `folder` should have it: relative to that, if it is below or
        if `relative` says so.
        """

    def objects(self, paths: Iterable[str]) -> tuple[Entry, ...]:
        """Those of these files that are worth fetching ahead, for :meth:`reading_ahead`."""


class RawFolder(LocalStorage):
    """Raw data on this machine. See :class:`RawStorage` for the methods.

    Counts listed and read files; not in workers, whose results are counted when they arrive.
    """

    __slots__ = ("_ticker",)

    _ticker: Ticker | None

    def __init__(self, root: str | os.PathLike[str], progress: Progress = SILENT) -> None:
        LocalStorage.__init__(self, root)
        # The base class is frozen.
        object.__setattr__(self, "_ticker", None if progress is SILENT else Ticker(progress))

    def __reduce__(self) -> tuple[type[RawFolder], tuple[str]]:
        return RawFolder, (self.root,)

    def list(self, path: str = "", *, recursive: bool = True) -> Iterator[Entry]:
        for entry in LocalStorage.list(self, path, recursive=recursive):
            if self._ticker is not None and entry.kind != "dir":
                self._ticker.add(1, 0)
            yield entry

    def open(self, path: str) -> LocalReader:
        reader = LocalStorage.open(self, path)
        return reader if self._ticker is None else _WatchedReader(reader, self._ticker)

    def expect_folder(self) -> None:
        if not Path(self.root).is_dir():
            what = "is not a folder" if Path(self.root).exists() else "does not exist"
            raise UsageError(
                f"the raw data `{path_text(self.root)}` {what}",
                hint="name the folder with --raw PATH",
            )

    def forget(self) -> None:
        pass

    def told_in(self, folder: str, *, relative: bool) -> str:
        if relative or Path(self.root).is_relative_to(folder):
            return os.path.relpath(self.root, folder)
        return self.root

    def objects(self, paths: Iterable[str]) -> tuple[Entry, ...]:  # noqa: ARG002 - all are near
        return ()


class _WatchedReader(LocalReader):
    def __init__(self, reader: LocalReader, ticker: Ticker) -> None:
        self._path, self._file, self.size = reader._path, reader._file, reader.size
        self._ticker = ticker

    def read_at(self, start: int, length: int) -> bytes:
        data = LocalReader.read_at(self, start, length)
        self._ticker.add(0, len(data))
        return data


# The room for URLs is imported here only. Few commands need it.
_STORES = "tfrecreg.core.storage.remote"
_LISTED = "tfrecreg.core.storage.listed"
_THREADS = "tfrecreg.core.storage.file_systems"

T = TypeVar("T")


def storage_at(root: str) -> Readable:
    """The storage with this root: a folder, or a URL without secrets."""
    return store_at(root) if is_url(root) else LocalStorage(root)


def store_at(url: str) -> Store:
    """The storage behind a URL from :func:`tfrecreg.core.storage.paths.named_url`."""
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
