"""System calls that fail with ENOSPC, EIO, EMFILE or EACCES."""

from __future__ import annotations

import errno
import os

from system_support import CHANGES, System

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
    """The storage's system, which refuses.

    Args:
        number: its errno.
        at: the first call that it refuses, of those that may end so; 0 refuses none.
        lasting: whether it refuses every later one as well, those that would clean up among them.
    """

    def __init__(self, number: int, at: int, *, lasting: bool = False) -> None:
        super().__init__()
        self.calls = 0
        self.refused: list[tuple[str, str]] = []
        """The kind and path of each call that was."""
        self._number, self._at, self._lasting = number, at, lasting

    def enter(self, kind: str, path: str) -> None:
        if kind not in _KINDS[self._number]:
            return
        self.calls += 1
        if self.calls == self._at or (self._lasting and 0 < self._at < self.calls):
            self.refused.append((kind, path))
            raise OSError(self._number, os.strerror(self._number), path)


class Refusing(System):
    """The storage's system, which refuses calls of one kind at paths with one ending, with EIO.

    Args:
        kind: of the calls: one of `system_support.CHANGES`, `look`, `open`, `list` or `read`.
        ending: of the paths.
    """

    def __init__(self, kind: str, ending: str) -> None:
        super().__init__()
        self._kind, self._ending = kind, ending

    def enter(self, kind: str, path: str) -> None:
        if kind == self._kind and path.endswith(self._ending):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
