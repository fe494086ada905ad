"""Small helpers that most folders use."""

from __future__ import annotations

import os
import shutil
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


@contextmanager
def interruptible() -> Iterator[None]:
    """Children that are started in the block die of ^C, even if a shell started this process in the
    background (`make test &`), where ^C is ignored.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def tree(folder: Path, *, ignore: tuple[str, ...] = ()) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.relative_to(folder).parts[0] not in ignore
    }


class Entry(NamedTuple):
    """A file, a link or a folder, as far as a copy of it can be the same."""

    mode: int
    links: int
    modified: int
    data: bytes
    """The bytes of a file; where a link leads."""


def entries(folder: Path) -> dict[str, Entry]:
    """Everything below `folder` by its path there, a folder before its contents."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        links, data = status.st_nlink, b""
        if stat.S_ISDIR(status.st_mode):
            links = 0
        elif stat.S_ISLNK(status.st_mode):
            data = os.fsencode(path.readlink())
        elif stat.S_ISREG(status.st_mode):
            data = path.read_bytes()
        name = path.relative_to(folder).as_posix()
        found[name] = Entry(status.st_mode, links, status.st_mtime_ns, data)
    return found


def put_back(start: Path, folder: Path) -> None:
    """Restore `folder` from its copy `start`, without touching equal files."""
    wanted = entries(start)
    for path, left in sorted(entries(folder).items(), reverse=True):
        was = wanted.get(path)
        if not stat.S_ISDIR(left.mode):
            if left != was or stat.S_ISLNK(left.mode):
                (folder / path).unlink()
        elif was is None or not stat.S_ISDIR(was.mode):
            (folder / path).rmdir()

    def copy(source: str, target: str) -> None:
        if not Path(target).exists():
            shutil.copy2(source, target)

    shutil.copytree(start, folder, symlinks=True, dirs_exist_ok=True, copy_function=copy)


def flip(path: Path, at: int, bits: int = 0x10) -> None:
    """Damage one byte of a file, as a new file: the old bytes may be linked elsewhere."""
    data = bytearray(path.read_bytes())
    data[at] ^= bits
    path.unlink()
    path.write_bytes(bytes(data))


class Watcher:
    def __init__(self) -> None:
        self.started: list[tuple[str, int]] = []
        self.records = self.stopped = 0
        self.notes: list[str] = []

    def start(self, what: str, total: int, unit: str = "records") -> None:
        self.started.append((what, total))

    def advance(self, records: int, size: int) -> None:
        self.records += records

    def stop(self) -> None:
        self.stopped += 1

    def note(self, message: str) -> None:
        self.notes.append(message)
