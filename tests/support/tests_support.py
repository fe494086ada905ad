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
    """Children that are started in the block die of ^C, also where this process ignores it.

    A shell starts what runs in its background (`make test &`) with the signal ignored, which
    children inherit.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def tree(folder: Path, *, ignore: tuple[str, ...] = ()) -> dict[str, bytes]:
    """Every file below `folder` with its bytes."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.relative_to(folder).parts[0] not in ignore
    }


class Entry(NamedTuple):
    """A file, a link or a folder, as far as a copy of it can be the same."""

    mode: int
    links: int
    """Names of a file; 0 of a folder."""
    modified: int
    """Nanoseconds since the epoch."""
    data: bytes
    """The bytes of a file; where a link leads."""


def entries(folder: Path) -> dict[str, Entry]:
    """Everything below `folder` by its path there, a folder before its contents."""
    found = {}
    folders = [""]
    while folders:
        above = folders.pop()
        with os.scandir(folder / above) as scanned:
            for each in scanned:
                path = above + each.name
                status = each.stat(follow_symlinks=False)
                links, data = status.st_nlink, b""
                if stat.S_ISDIR(status.st_mode):
                    folders.append(f"{path}/")
                    links = 0
                elif stat.S_ISLNK(status.st_mode):
                    data = os.fsencode(Path(each.path).readlink())
                elif stat.S_ISREG(status.st_mode):
                    data = Path(each.path).read_bytes()
                found[path] = Entry(status.st_mode, links, status.st_mtime_ns, data)
    return found


def put_back(start: Path, folder: Path) -> None:
    """Restore `folder` from its copy `start`, without touching equal files."""
    wanted, now = entries(start), entries(folder)
    for path in sorted(now, reverse=True):
        left, was = now[path], wanted.get(path)
        if not stat.S_ISDIR(left.mode):
            if left == was:
                continue
            (folder / path).unlink()
        elif was is None or not stat.S_ISDIR(was.mode):
            (folder / path).rmdir()
        del now[path]
    for path, entry in wanted.items():
        if stat.S_ISDIR(entry.mode):
            (folder / path).mkdir(exist_ok=True)
        elif path not in now:
            shutil.copy2(start / path, folder / path, follow_symlinks=False)
    for path in reversed(wanted):
        if stat.S_ISDIR(wanted[path].mode):
            shutil.copystat(start / path, folder / path)
    shutil.copystat(start, folder)


def flip(path: Path, at: int, bits: int = 0x10) -> None:
    """Damage one byte of a file, as a new file: the old bytes may be linked elsewhere."""
    data = bytearray(path.read_bytes())
    data[at] ^= bits
    path.unlink()
    path.write_bytes(bytes(data))
