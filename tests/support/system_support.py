"""System calls of `tfrecreg.core.storage`, observed.

:class:`System` takes the place of the module `os` in the modules of the storage. So a call can fail
like a system call (`fault_support`) or be logged (`power_support`), and the storage's messages for
it are tested too. Nothing is really synced: tests see the request.
"""

# It replaces the functions of os.
# ruff: noqa: PTH102, PTH105, PTH106, PTH108, PTH116

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, BinaryIO
from unittest.mock import patch

import pytest

from tfrecreg.core.storage import renames

CHANGES = frozenset(
    {"create", "write", "fsync", "close", "mkdir", "rename", "link", "unlink", "rmdir"}
)
"""Calls that change something; the others are `look`, `open`, `list` and `read`."""


class System:
    """`os` for the storage. Other names are the module's own, such as `os.path`."""

    def __init__(self) -> None:
        self._opened: dict[int, str] = {}
        self._files: list[_File] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def enter(self, kind: str, path: str) -> None:
        """Called before a call is made; raises the system's error."""

    def done(self, kind: str, path: str, more: str | bytes = b"") -> None:
        """Called after a change; `more` is the other path, or the written bytes."""

    def lstat(self, path: str | bytes) -> os.stat_result:
        self.enter("look", os.fsdecode(path))
        return os.lstat(path)

    def stat(self, path: str) -> os.stat_result:
        self.enter("look", path)
        return os.stat(path)

    def fstat(self, handle: int) -> os.stat_result:
        self.enter("look", self._opened[handle])
        return os.fstat(handle)

    def scandir(self, path: str | bytes) -> Any:
        self.enter("list", os.fsdecode(path))
        return os.scandir(path)

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        new = bool(flags & os.O_CREAT) and not os.path.lexists(path)
        self.enter("create" if new else "open", path)
        handle = os.open(path, flags, mode)
        self._opened[handle] = path
        if new:
            self.done("create", path)
        return handle

    def fdopen(self, handle: int, mode: str, buffering: int) -> _File:
        self._files.append(_File(self, os.fdopen(handle, mode, buffering), self._opened[handle]))
        return self._files[-1]

    def bury(self) -> None:
        """Close the files that a dead process has left open."""
        for file in self._files:
            file.bury()

    def close(self, handle: int) -> None:
        os.close(handle)

    def pread(self, handle: int, length: int, start: int) -> bytes:
        self.enter("read", self._opened[handle])
        return os.pread(handle, length, start)

    def fsync(self, handle: int) -> None:
        self.enter("fsync", self._opened[handle])
        self.done("fsync", self._opened[handle])

    def mkdir(self, path: str) -> None:
        self.enter("mkdir", path)
        os.mkdir(path)
        self.done("mkdir", path)

    def replace(self, source: str, target: str) -> None:
        self.enter("rename", target)
        os.replace(source, target)
        self.done("rename", source, target)

    rename = replace

    def link(self, source: str, target: str) -> None:
        self.enter("link", target)
        os.link(source, target)
        self.done("link", source, target)

    def unlink(self, path: str) -> None:
        self.enter("unlink", path)
        os.unlink(path)
        self.done("unlink", path)

    def rmdir(self, path: str) -> None:
        self.enter("rmdir", path)
        os.rmdir(path)
        self.done("rmdir", path)

    def rmtree(self, path: str) -> None:
        """`shutil.rmtree`, one call after the other."""
        for entry in sorted(self.scandir(path), key=lambda each: each.name):
            remove = self.rmtree if entry.is_dir(follow_symlinks=False) else self.unlink
            remove(entry.path)
        self.rmdir(path)

    def renameat2(self, source: str, target: str, flags: int) -> bool:
        self.enter("rename", target)
        if not _RENAMEAT2(source, target, flags):
            return False
        self.done("exchange" if flags == renames._EXCHANGE else "rename", source, target)
        return True


_RENAMEAT2 = renames._renameat2


class _File:
    """An open file of the storage."""

    def __init__(self, system: System, file: BinaryIO, path: str) -> None:
        self._system, self._file, self._path = system, file, path

    def fileno(self) -> int:
        return self._file.fileno()

    def write(self, data: memoryview) -> int:
        try:
            self._system.enter("write", self._path)
        except OSError:
            # A disk that is full takes some of it first.
            self._file.write(data[: len(data) // 2])
            raise
        written = self._file.write(data)
        self._system.done("write", self._path, bytes(data[:written]))
        return written

    def bury(self) -> None:
        self._file.close()

    def close(self) -> None:
        if self._file.closed:
            return
        writes = self._file.writable()
        self._file.close()  # after any error of close(2) the descriptor is gone
        if writes:
            self._system.enter("close", self._path)


@contextmanager
def installed(system: System) -> Iterator[None]:
    """Have all of the storage call `system`."""
    patches = [
        patch.object(module, "os", system)
        for name, module in sorted(sys.modules.items())
        if name.startswith("tfrecreg.core.storage.") and hasattr(module, "os")
    ]
    patches.append(patch.object(renames, "_renameat2", system.renameat2))
    shutil = SimpleNamespace(rmtree=system.rmtree)
    patches.append(patch("tfrecreg.core.storage.local.shutil", shutil))
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


@pytest.fixture(scope="module", autouse=True)
def unsynced() -> Iterator[None]:
    """Nothing is synced in a module that imports this: only a power loss would show it."""
    with installed(System()):
        yield
