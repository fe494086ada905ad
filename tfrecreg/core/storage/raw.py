"""Raw data of a build: a local folder, or objects that are listed and fetched ahead."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from tfrecreg.core.storage.interface import Entry, Readable
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.paths import path_text
from tfrecreg.core.storage.reader import LocalReader
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
