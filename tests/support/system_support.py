"""System calls of `tfrecreg.core.storage`, observed.

:class:`System` takes the place of the module `os` in the modules of the storage. So a call can fail
like a system call (:class:`Faulty`) or be logged, and the storage's messages for it are tested too.
Nothing is really synced: tests see the request.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, BinaryIO
from unittest.mock import patch

import pytest

from tfrecreg.core.storage import renames

CHANGES = frozenset(
    {"create", "write", "fsync", "close", "mkdir", "rename", "link", "unlink", "rmdir"}
)
"""Calls that change something; the others are `look`, `open`, `list` and `read`."""


_KIND_OF = {
    **dict.fromkeys(("lstat", "stat", "fstat"), "look"),
    **dict.fromkeys(("replace", "rename"), "rename"),
    **{name: name for name in ("fsync", "link", "mkdir", "rmdir", "unlink")},
    "pread": "read",
    "scandir": "list",
}
_RENAMEAT2 = renames._renameat2


class System:
    """`os` for the storage. Other names are the module's own, such as `os.path`."""

    def __init__(self) -> None:
        self._opened: dict[int, str] = {}
        self._files: list[BinaryIO] = []

    def __getattr__(self, name: str) -> Any:
        return partial(self._call, name) if name in _KIND_OF else getattr(os, name)

    def _call(self, name: str, *given: Any) -> Any:
        kind = _KIND_OF[name]
        paths = given[:2] if kind in ("rename", "link") else given[:1]
        paths = tuple(os.fsdecode(self._opened.get(each, each)) for each in paths)
        self.enter(kind, paths[-1])
        made = getattr(os, name)(*given) if name != "fsync" else None
        if kind in CHANGES:
            self.done(kind, *paths)
        return made

    def enter(self, kind: str, path: str) -> None:
        """Called before a call is made; raises the system's error."""

    def done(self, kind: str, path: str, more: str | bytes = b"") -> None:
        """Called after a change; `more` is the other path, or the written bytes."""

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        new = bool(flags & os.O_CREAT) and not os.path.lexists(path)
        self.enter("create" if new else "open", path)
        handle = os.open(path, flags, mode)
        self._opened[handle] = path
        if new:
            self.done("create", path)
        return handle

    def fdopen(self, handle: int, mode: str, buffering: int) -> _File:
        self._files.append(os.fdopen(handle, mode, buffering))
        return _File(self, self._files[-1], self._opened[handle])

    def bury(self) -> None:
        """Close the files that a dead process has left open."""
        for file in self._files:
            file.close()

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


class _File:
    def __init__(self, system: System, file: BinaryIO, path: str) -> None:
        self._system, self._file, self._path = system, file, path
        self.fileno = file.fileno

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
    with ExitStack() as stack:
        for name, module in sorted(sys.modules.items()):
            if name.startswith("tfrecreg.core.storage.") and hasattr(module, "os"):
                stack.enter_context(patch.object(module, "os", system))
        stack.enter_context(patch.object(renames, "_renameat2", system.renameat2))
        removing = SimpleNamespace(rmtree=system.rmtree)
        stack.enter_context(patch("tfrecreg.core.storage.local.shutil", removing))
        yield


@pytest.fixture(scope="module", autouse=True)
def unsynced() -> Iterator[None]:
    """Nothing is synced in a module that imports this: only a power loss would show it."""
    with installed(System()):
        yield


NUMBERS = (errno.ENOSPC, errno.EIO, errno.EMFILE, errno.EACCES)

_KINDS = {
    # Removing and reading take no room, everything takes a disk, only opening takes a descriptor;
    # an open file needs no permission.
    errno.ENOSPC: CHANGES - {"unlink", "rmdir"},
    errno.EIO: CHANGES | {"look", "open", "list", "read"},
    errno.EMFILE: frozenset({"create", "open", "list"}),
    errno.EACCES: (CHANGES - {"write", "fsync", "close"}) | {"look", "open", "list"},
}


class Faulty(System):
    """A system that refuses call `at` of the calls that may fail with the errno `number`, and with
    `lasting` each later such call. With 0 it refuses no call.
    """

    def __init__(self, number: int, at: int, *, lasting: bool = False) -> None:
        super().__init__()
        self.calls = 0
        self.refused: list[tuple[str, str]] = []
        """Kind and path of each refused call."""
        self._number, self._at, self._lasting = number, at, lasting

    def enter(self, kind: str, path: str) -> None:
        if kind not in _KINDS[self._number]:
            return
        self.calls += 1
        if self.calls == self._at or (self._lasting and 0 < self._at < self.calls):
            self.refused.append((kind, path))
            raise OSError(self._number, os.strerror(self._number), path)


class Refusing(System):
    """A system that refuses calls of one kind at paths with one ending, with EIO."""

    def __init__(self, kind: str, ending: str) -> None:
        super().__init__()
        self._kind, self._ending = kind, ending

    def enter(self, kind: str, path: str) -> None:
        if kind == self._kind and path.endswith(self._ending):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
