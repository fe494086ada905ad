"""The files below the raw folder: links followed as far as the options allow, hidden names left
out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tfrecreg.api import Entry, RawDataError, Remark, Storage, link_problem, safe
from tfrecreg_folder.folder_options import FolderOptions

_MAX_DEPTH = 64
_MAX_LINKED = 10_000
_SYSTEM_NAMES = frozenset({"thumbs.db", "desktop.ini", "__macosx", "@eadir", "lost+found"})


class FoundFile(NamedTuple):
    """A file, or a name that cannot be opened."""

    path: str
    size: int
    code: str = ""
    """Why it cannot be opened: the code; empty if it can."""
    detail: str = ""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """What follows the last dot of the name, in lower case; empty without one."""
        stem, dot, suffix = self.name.rpartition(".")
        return suffix.lower() if dot and stem else ""

    @property
    def stem(self) -> str:
        """The path without the suffix."""
        return self.path[: -len(self.suffix) - 1] if self.suffix else self.path


class FileFinder:
    """Finds the files of a raw folder, and counts the names that it leaves out."""

    def __init__(self, raw: Storage, options: FolderOptions) -> None:
        self._raw = raw
        self._follow = options.symlinks
        self._taken = options.taken
        self._linked = 0
        self.hidden: list[tuple[str, int]] = []
        """The first hidden name, and how many there are; empty for none."""
        self.stray: list[tuple[str, int]] = []
        """The same for names with other suffixes."""

    def files(self) -> list[FoundFile]:
        """All files, sorted by their paths."""
        here = self._raw.stat("")
        if here is None or here.kind != "dir":
            raise RawDataError(
                f"no such folder: `{safe(self._raw.root, limit=4096)}`",
                hint="name the folder of the files with --raw",
            )
        return sorted(self._below("", ((here.device, here.inode),)))

    def leave_out(self, files: Iterable[FoundFile]) -> None:
        """Count files among the names that are left out."""
        for each in files:
            _count(self.stray, each.path)

    def remarks(self, split: str) -> Iterator[Remark]:
        """The names left out."""
        for kind, counted in (("hidden", self.hidden), ("stray", self.stray)):
            for first, times in counted:
                names = "name," if times == 1 else "names, the first of them"
                detail = f"{times} {kind} {names} `{safe(first)}`"
                yield Remark(split, first, "SRC015", detail, times)

    def _below(self, folder: str, above: tuple[tuple[int, int], ...]) -> Iterator[FoundFile]:
        for entry in self._raw.list(folder, recursive=False):
            if is_left_out(entry.path):
                _count(self.hidden, entry.path)
                continue
            if entry.kind == "link":
                followed, problem = self._followed(entry)
                if followed is None:
                    yield FoundFile(entry.path, 0, "SRC011", problem)
                    continue
                entry = followed
            if entry.kind == "dir":
                yield from self._folder(entry, above)
            elif entry.kind != "file":
                detail = "a FIFO, a socket or a device, which is never opened"
                yield FoundFile(entry.path, 0, "SRC010", detail)
            else:
                found = FoundFile(entry.path, entry.size)
                if self._taken and found.suffix not in self._taken:
                    _count(self.stray, entry.path)
                elif not _is_utf8(entry.path):
                    yield found._replace(code="SRC012", detail="the name is not UTF-8")
                else:
                    yield found

    def _folder(self, entry: Entry, above: tuple[tuple[int, int], ...]) -> Iterator[FoundFile]:
        here = entry.device, entry.inode
        if here[1] and here in above:
            yield FoundFile(entry.path, 0, "SRC011", "a symbolic link in a circle")
        elif len(above) > _MAX_DEPTH:
            raise RawDataError(
                f"`{safe(entry.path)}` is below {_MAX_DEPTH} folders",
                hint="name the folder of the files with --raw",
            )
        else:
            yield from self._below(entry.path, (*above, here))

    def _followed(self, entry: Entry) -> tuple[Entry | None, str]:
        follow = self._follow
        found = None if follow == "none" else self._raw.stat(entry.path, follow=follow)
        if found is None or found.kind == "link":
            return None, link_problem(follow)
        self._linked += found.kind == "dir"
        if self._linked > _MAX_LINKED:
            raise RawDataError(
                f"`{safe(self._raw.root)}` has more than {_MAX_LINKED} symbolic links to folders",
                hint="--option symlinks=none, or put the folders themselves there",
            )
        return found, ""


def is_left_out(path: str) -> bool:
    """Whether a name is hidden, or one that systems leave in folders."""
    name = path.rpartition("/")[2]
    return name.startswith(".") or name.lower() in _SYSTEM_NAMES


def _count(counted: list[tuple[str, int]], path: str) -> None:
    first, times = counted[0] if counted else (path, 0)
    counted[:] = [(first, times + 1)]


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
