"""What a source says of a folder that nobody has named it for, and what it may look at to say so.

A :class:`RawPreview` bounds the work by what it offers: the first names of some folders and the
first bytes of some files. So a folder of a million files, or a bucket, is answered for in a moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import islice
from typing import Literal, NamedTuple

from tfrecreg.core.storage.interface import Entry, Readable

Strength = Literal["exact", "layout", "general", "refused"]
STRENGTHS: tuple[Strength, ...] = ("exact", "layout", "general", "refused")
"""The strongest first: a stronger recognition beats all weaker ones."""
MAX_NAMES = 10_000
_FOLDERS = 100
_FILES = 20
_BYTES = 1 << 16
_WALKED = 100_000
_WILD = "*?["


class Recognition(NamedTuple):
    """Why a source can read a folder."""

    strength: Strength
    """``exact``: names or contents that only this format has. ``layout``: the arrangement of files
    that the source reads, which other data may have, too. ``general``: files of a kind that it
    reads. ``refused``: files of a kind that it refuses, with a reason that helps.
    """
    reason: str
    """What was found, in words that follow the name of the folder and ``has``: ``4 IDX files``."""
    aside: Sequence[str] = ()
    """Names right in the folder that the source would not read."""


class RawPreview:
    """A bounded look at raw data: names of at most 100 folders, 10,000 of each, and 65,536 bytes of
    at most 20 files. :meth:`below` lists no further folder after 100,000 files.

    Beyond these bounds folders and files look empty. Links are followed.
    """

    def __init__(self, raw: Readable) -> None:
        self._raw = raw
        self._listed: dict[str, list[Entry]] = {}
        self._read = 0
        self._is_cut = False

    def entries(self, folder: str = "") -> Sequence[Entry]:
        """The names directly in a folder, in the order of their bytes.

        Args:
            folder: below the raw folder; empty for that folder itself.
        """
        found = self._listed.get(folder)
        if found is None:
            if len(self._listed) >= _FOLDERS:
                self._is_cut = True
                return ()
            listed = islice(self._raw.list(folder, recursive=False), MAX_NAMES)
            found = self._listed[folder] = [self._target(each) for each in listed]
            self._is_cut = self._is_cut or len(found) == MAX_NAMES
        return found

    def folders(self, folder: str = "") -> list[str]:
        """The paths of the folders directly in a folder, without hidden ones."""
        return [each.path for each in self.entries(folder) if each.kind == "dir" and _shown(each)]

    def files(self, folder: str = "") -> list[str]:
        """The paths of the files directly in a folder, without hidden ones."""
        return [each.path for each in self.entries(folder) if each.kind == "file" and _shown(each)]

    def below(self, levels: int = 3) -> list[str]:
        """The paths of all files down to some levels of folders, without hidden ones."""
        found: list[str] = []
        folders = [""]
        for _ in range(levels + 1):
            for each in folders:
                if len(found) < _WALKED:
                    found += self.files(each)
                else:
                    self._is_cut = True
            folders = [path for each in folders for path in self.folders(each)]
        return found

    def counted(self, number: int, what: str) -> str:
        """`2 label files`, for a reason; `at least 2 label files` if a bound hides some names."""
        bound = "at least " if self._is_cut else ""
        return f"{bound}{number:,} {what}{'' if number == 1 else 's'}"

    def aside(self, used: Iterable[str]) -> list[str]:
        """The names directly in the folder that are not hidden and do not lead to `used`."""
        tops = {path.partition("/")[0] for path in used}
        return [each.path for each in self.entries() if _shown(each) and each.path not in tops]

    def start(self, path: str) -> bytes:
        """The first bytes of a file; empty if there is no such file."""
        return self._part(path, at_end=False)

    def end(self, path: str) -> bytes:
        """The last bytes of a file; empty if there is no such file."""
        return self._part(path, at_end=True)

    def _part(self, path: str, *, at_end: bool) -> bytes:
        found = self._raw.stat(path, follow="all")
        if found is None or found.kind != "file" or self._read >= _FILES:
            return b""
        self._read += 1
        with self._raw.open(path) as reader:
            length = min(reader.size, _BYTES)
            return reader.read_at(reader.size - length if at_end else 0, length)

    def matches(self, glob: str) -> Iterator[str]:
        """The paths of files that match a glob such as ``annotations/*.json``."""
        parts = glob.split("/")
        if not {"", ".", ".."}.intersection(parts):
            yield from self._below("", parts)

    def _below(self, folder: str, parts: Sequence[str]) -> Iterator[str]:
        wanted = "file" if len(parts) == 1 else "dir"
        if not any(each in parts[0] for each in _WILD):
            path = f"{folder}/{parts[0]}" if folder else parts[0]
            found = self._raw.stat(path, follow="all")
            entries: Iterable[Entry] = () if found is None else (replace(found, path=path),)
        else:
            entries = self.entries(folder)
        for entry in entries:
            name = entry.path.rpartition("/")[2]
            if entry.kind != wanted or not _shown(entry) or not fnmatchcase(name, parts[0]):
                continue
            if wanted == "file":
                yield entry.path
            else:
                yield from self._below(entry.path, parts[1:])

    def _target(self, entry: Entry) -> Entry:
        if entry.kind != "link":
            return entry
        found = self._raw.stat(entry.path, follow="all")
        return entry if found is None else replace(found, path=entry.path)


def _shown(entry: Entry) -> bool:
    return not entry.path.rpartition("/")[2].startswith(".")
