"""Power is lost at any step: acknowledged data verify, and the next run succeeds.

The log of a deed is replayed up to a point. Then all or some of the data that were not synced by
then are dropped. (In `test_kill_steps` nothing is dropped.) The model is simple, and it
loses more than most file systems do:

- Bytes that were written to a file are lost unless the file was synced after it. Then the file is
  empty, or ends anywhere.
- A name that was made, moved, exchanged or removed is lost unless a folder with the new name (after
  a removal: the folder of the old name) was synced after it. Each change is one step: a move has
  happened with both its names or not at all, as POSIX defines rename(2).
- Steps that were not synced are lost in any combination: nothing orders them.

The log has the calls of `tfrecreg.core.storage` only: git and DVC sync their own files.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeAlias

import pytest
from deeds_support import Deed
from deeds_support import deed as deed  # the fixture
from sweep_support import part
from system_support import CHANGES, System, installed
from system_support import unsynced as unsynced  # and this one


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
        """The number of changes that were asked for."""
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


LASTING = ("build", "first", "release", "yank", "salvage")
"""Deeds whose results must last. A file that `gc` removed may come back, and does no harm."""
ALL = (*LASTING, "gc")
SAMPLE = 3


def recorded(deed: Deed, dies_at: int = 0) -> list[Recorded]:
    """The log of the deed, done from its start. If it dies, the log of a second try follows."""
    deed.reset()
    system = Recording(deed.root, dies_at)
    try:
        with installed(system):
            deed.do()
    except Died:
        system.bury()
        second = Recording(deed.root)
        with installed(second):
            deed.again()
        return system.log + second.log
    return system.log


def points(log: list[Recorded]) -> list[int]:
    """Before each sync, and at the end: the lost data change nowhere else."""
    return [at for at, entry in enumerate(log) if entry.kind == "fsync"] + [len(log)]


def crash(deed: Deed, log: list[Recorded], at: int, lost: Lost) -> None:
    """Lose the power after `at` entries of the log, and have it back."""
    disk = Disk(deed.start)
    for entry in log[:at]:
        disk.replay(entry)
    disk.crash(lost, deed.root)


def trial(deed: Deed, log: list[Recorded], at: int, lost: Lost) -> None:
    crash(deed, log, at, lost)
    acknowledged = at == len(log)

    def survived() -> None:
        if acknowledged:
            deed.expect_done()
        deed.expect_unharmed()
        deed.again()
        deed.expect_done()

    try:
        deed.judge_once(survived, "survived", acknowledged)
    except Exception as error:
        last = log[at - 1] if at else None
        raise AssertionError(f"after {at} of {len(log)} entries, the last {last}") from error


def losses(at: int) -> Iterator[Lost]:
    yield all_lost()
    yield any_lost(at)


@pytest.mark.slow
@pytest.mark.parametrize("deed", ALL, indirect=True)
def test_what_is_acknowledged_survives_and_the_rest_is_made_again(deed: Deed) -> None:
    log = recorded(deed)
    assert not any(entry.kind == "look" for entry in log)
    for at in part(points(log)):
        for lost in losses(at):
            trial(deed, log, at, lost)


def killed_before(deed: Deed, at: int) -> None:
    log = recorded(deed, dies_at=at)
    crash(deed, log, len(log), all_lost())
    try:
        deed.judge_once(deed.expect_done, "done")
    except Exception as error:
        raise AssertionError(f"killed before change {at}") from error


@pytest.mark.parametrize("deed", LASTING, indirect=True)
def test_what_a_second_try_acknowledges_survives_a_first_that_was_killed_sampled(
    deed: Deed,
) -> None:
    total = changes(deed)
    for at in random.Random(2).sample(range(1, total + 1), SAMPLE):
        killed_before(deed, at)


@pytest.mark.slow
@pytest.mark.parametrize("deed", LASTING, indirect=True)
def test_what_a_second_try_acknowledges_survives_a_first_that_was_killed(deed: Deed) -> None:
    for at in part(range(1, changes(deed) + 1)):
        killed_before(deed, at)


def changes(deed: Deed) -> int:
    """How many changes the deed makes."""
    deed.reset()
    system = Recording(deed.root)
    with installed(system):
        deed.do()
    return system.changes
