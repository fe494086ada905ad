"""Raw data that tell how far a source is with listing them, whatever source that is."""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.progress import Progress, Ticker
from tfrecreg.storage import Entry, LocalStorage
from tfrecreg.storage.reader import LocalReader

__all__ = ["WatchedStorage"]


class WatchedStorage(LocalStorage):
    """Counts the files that are listed, and the bytes that are read.

    Workers get it as a plain storage: what they do is counted where their results arrive.
    """

    __slots__ = ("_ticker",)

    _ticker: Ticker

    def __init__(self, raw: LocalStorage, progress: Progress) -> None:
        LocalStorage.__init__(self, raw.root)
        object.__setattr__(self, "_ticker", Ticker(progress))

    def __reduce__(self) -> tuple[type[LocalStorage], tuple[str]]:
        return LocalStorage, (self.root,)

    def list(self, path: str = "", *, recursive: bool = True) -> Iterator[Entry]:
        for entry in LocalStorage.list(self, path, recursive=recursive):
            if entry.kind != "dir":
                self._ticker.add(1, 0)
            yield entry

    def open(self, path: str) -> LocalReader:
        return _WatchedReader(LocalStorage.open(self, path), self._ticker)


class _WatchedReader(LocalReader):
    def __init__(self, reader: LocalReader, ticker: Ticker) -> None:
        self._path, self._file, self.size = reader._path, reader._file, reader.size
        self._ticker = ticker

    def read_at(self, start: int, length: int) -> bytes:
        data = LocalReader.read_at(self, start, length)
        self._ticker.add(0, len(data))
        return data
