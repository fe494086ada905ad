"""Power loss: a log of writes, replayed without what was not synced.

The model is simple, and harder than most file systems are:

- What was written to a file is lost unless the file was synced after it; then the file is empty,
  or ends anywhere.
- A name that was made, moved, exchanged or removed is lost unless a folder with the new name (of a
  removal: the folder of the old one) was synced after it. Each of these is one step: a move is
  there with both its names or not at all, as POSIX has it of rename(2).
- Steps that were not synced are lost in any combination: nothing orders them.

The log has the calls of `tfrecreg.core.storage` only: git and DVC sync their own files.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeAlias

from system_support import CHANGES, System


class Died(BaseException):
    """The process is dead: its further calls do nothing."""


class Recorded(NamedTuple):
    """A change that was made."""

    kind: str
    path: str
    """From the root, POSIX."""
    more: str | bytes


class Recording(System):
    """The storage's system, which keeps a log of all changes below a folder.

    Args:
        root: the folder.
        dies_at: the number of the change before which the process dies; 0 for never.
    """

    def __init__(self, root: Path, dies_at: int = 0) -> None:
        super().__init__()
        self.log: list[Recorded] = []
        self.changes = 0
        """So many were asked for."""
        self._root, self._dies_at = f"{root}/", dies_at

    def enter(self, kind: str, path: str) -> None:
        self.changes += kind in CHANGES and self._within(path) is not None
        if 0 < self._dies_at <= self.changes:
            raise Died

    def done(self, kind: str, path: str, more: str | bytes = b"") -> None:
        where = self._within(path)
        if where is not None:
            to = self._within(more) or "" if isinstance(more, str) else more
            self.log.append(Recorded(kind, where, to))

    def _within(self, path: str) -> str | None:
        return os.path.relpath(path, self._root) if f"{path}/".startswith(self._root) else None


class _File:
    def __init__(self, data: bytes = b"", mtime_ns: int | None = None) -> None:
        self.data, self.synced, self.mtime_ns = bytearray(data), data, mtime_ns


class _Folder:
    def __init__(self) -> None:
        self.names: dict[str, _Node] = {}
        self.first: dict[str, _Node] = {}
        """Its names when the log began."""


_Node: TypeAlias = "_File | _Folder"


class _Step(NamedTuple):
    """Names that change together."""

    changes: list[tuple[_Folder, str, _Node | None]]
    durable_by: tuple[_Folder, ...]


class Lost(NamedTuple):
    """The fate of data that were not synced."""

    keeps_step: Callable[[], bool]
    keeps_bytes: Callable[[int], int]
    """How many of the bytes of an unsynced file remain."""


def all_lost() -> Lost:
    """All of it is gone."""
    return Lost(lambda: False, lambda size: 0)


def none_lost() -> Lost:
    """All of it is there, as after a kill."""
    return Lost(lambda: True, lambda size: size)


def any_lost(seed: int) -> Lost:
    """Any of it is gone, and files end anywhere."""
    chance = random.Random(seed)
    return Lost(lambda: chance.random() < 0.5, lambda size: chance.choice([0, size // 2, size]))


class Disk:
    """A folder as on a disk, and as seen by processes.

    Args:
        root: its first state, all of it synced.
    """

    def __init__(self, root: Path) -> None:
        self._inodes: dict[int, _File] = {}
        self._root = self._taken(root)
        self._steps: list[_Step] = []
        self._durable: set[int] = set()

    def _taken(self, root: Path) -> _Folder:
        folder = _Folder()
        for path in root.iterdir():
            if path.is_dir():
                folder.names[path.name] = self._taken(path)
            else:
                status = path.stat()
                file = self._inodes.get(status.st_ino)
                if file is None:
                    file = _File(path.read_bytes(), status.st_mtime_ns)
                    self._inodes[status.st_ino] = file
                folder.names[path.name] = file
        folder.first = dict(folder.names)
        return folder

    def replay(self, entry: Recorded) -> None:
        """Replay the steps."""
        kind, path, more = entry
        if kind == "fsync":
            self._sync(path)
            return
        if kind == "write":
            file = self._at(path)
            assert isinstance(file, _File)
            assert isinstance(more, bytes)
            file.data += more
            return
        folder, name = self._place(path)
        if kind in ("rename", "exchange", "link"):
            assert isinstance(more, str)
            target, new = self._place(more)
            node = folder.names[name]
            changes: list[tuple[_Folder, str, _Node | None]] = [(target, new, node)]
            by = (target,)
            if kind == "rename":
                changes.append((folder, name, None))
            elif kind == "exchange":
                changes.append((folder, name, target.names[new]))
                by = (target, folder)
            self._step(changes, *by)
            return
        made: _Node | None = None
        if kind in ("create", "mkdir"):
            made = _File() if kind == "create" else _Folder()
        self._step([(folder, name, made)], folder)

    def _sync(self, path: str) -> None:
        node = self._at(path)
        if isinstance(node, _File):
            node.synced = bytes(node.data)
            return
        for number, step in enumerate(self._steps):
            if node in step.durable_by:
                self._durable.add(number)

    def _step(self, changes: list[tuple[_Folder, str, _Node | None]], *by: _Folder) -> None:
        self._steps.append(_Step(changes, by))
        _apply(changes, lambda folder: folder.names)

    def _at(self, path: str) -> _Node:
        node: _Node = self._root
        for name in PurePosixPath(path).parts:
            assert isinstance(node, _Folder)
            if name not in node.names:
                # Made without the storage, and not synced.
                self._step([(node, name, _Folder())], node)
            node = node.names[name]
        return node

    def _place(self, path: str) -> tuple[_Folder, str]:
        where = PurePosixPath(path)
        folder = self._at(str(where.parent))
        assert isinstance(folder, _Folder)
        return folder, where.name

    def crash(self, lost: Lost, target: Path) -> None:
        """Give `target` the disk's contents after the power loss."""
        state: dict[_Folder, dict[str, _Node]] = {}

        def names(folder: _Folder) -> dict[str, _Node]:
            return state.setdefault(folder, dict(folder.first))

        for number, step in enumerate(self._steps):
            if number in self._durable or lost.keeps_step():
                _apply(step.changes, names)
        shutil.rmtree(target)
        self._put(self._root, target, names, lost, {})

    def _put(
        self,
        node: _Node,
        path: Path,
        names: Callable[[_Folder], dict[str, _Node]],
        lost: Lost,
        put: dict[_File, Path],
    ) -> None:
        if isinstance(node, _Folder):
            path.mkdir()
            for name, child in names(node).items():
                self._put(child, path / name, names, lost, put)
        elif node in put:
            path.hardlink_to(put[node])
        else:
            unsynced = len(node.data) - len(node.synced)
            path.write_bytes(node.data[: len(node.synced) + lost.keeps_bytes(unsynced)])
            if node.mtime_ns is not None:
                os.utime(path, ns=(node.mtime_ns, node.mtime_ns))
            put[node] = path


def _apply(
    changes: list[tuple[_Folder, str, _Node | None]],
    names: Callable[[_Folder], dict[str, _Node]],
) -> None:
    for folder, name, node in changes:
        if node is None:
            names(folder).pop(name, None)
        else:
            names(folder)[name] = node
