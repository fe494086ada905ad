"""All system calls of a process below some folders.

Python's audit events report its own calls, also of DVC, of `pathlib` and of lock files, which no
storage sees. `system_support` reports the storage's other calls: writes, syncs and exchanges. An
audit hook cannot be removed, so only a process of its own has one (`child_support`).
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from child_support import Child, Ended, apart
from system_support import System, installed

from tfrecreg.core.storage import renames

CHANGING = frozenset(
    {"create", "write", "rename", "exchange", "link", "symlink", "unlink", "mkdir", "rmdir"}
)
"""Kinds of steps that change something; the others are `open`, `list`, `read`, `fsync`, `close`."""

_EVENTS = {  # the kind, which argument is the path, and which the folder that it is relative to
    "os.rename": ("rename", 1, 3),
    "os.link": ("link", 1, 3),
    "os.symlink": ("symlink", 1, 2),
    "os.remove": ("unlink", 0, 1),
    "os.mkdir": ("mkdir", 0, 2),
    "os.rmdir": ("rmdir", 0, 1),
    "os.listdir": ("list", 0, None),
    "os.scandir": ("list", 0, None),
}
_PAST_PYTHON = ("read", "write", "fsync", "close")
_FOREVER = ExitStack()


class Step(NamedTuple):
    """A call before it is made."""

    kind: str
    path: str
    """Absolute; of two paths the new one."""
    flags: int = 0
    """Of a file that is opened."""


def listen(roots: Sequence[Path], reached: Callable[[Step], None]) -> None:
    """Have `reached` called before each step of this process below `roots`, from here on.

    What it raises, the call raises. While it runs no other thread makes a step. Making a folder
    that exists already is no step.
    """
    below = tuple(f"{root}/" for root in roots)
    turn = threading.Lock()
    owner = 0

    def heard(step: Step) -> None:
        nonlocal owner
        if owner == threading.get_ident() or not f"{step.path}/".startswith(below):
            return
        if step.kind == "mkdir" and os.path.lexists(step.path):
            return
        with turn:
            owner = threading.get_ident()
            try:
                reached(step)
            finally:
                owner = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            where = _absolute(path, None)
            if where is not None and isinstance(flags, int):
                new = flags & os.O_CREAT and not os.path.lexists(where)
                heard(Step("create" if new or flags & os.O_TRUNC else "open", where, flags))
        elif event in _EVENTS:
            kind, at, folder = _EVENTS[event]
            where = _absolute(arguments[at], None if folder is None else arguments[folder])
            if where is not None:
                heard(Step(kind, where))

    _FOREVER.enter_context(installed(_PastPython(heard)))
    sys.addaudithook(hook)


class _PastPython(System):
    """The storage's system, which reports the calls without audit events."""

    def __init__(self, heard: Callable[[Step], None]) -> None:
        super().__init__()
        self._heard = heard

    def enter(self, kind: str, path: str) -> None:
        if kind in _PAST_PYTHON:
            self._heard(Step(kind, path))

    def renameat2(self, source: str, target: str, flags: int) -> bool:
        kind = "exchange" if flags == renames._EXCHANGE else "rename"
        self._heard(Step(kind, target))
        return super().renameat2(source, target, flags)


def _absolute(path: object, folder: object) -> str | None:
    if not isinstance(path, str | bytes | os.PathLike):
        return None
    text = os.fsdecode(path)
    if isinstance(folder, int) and folder >= 0 and not text.startswith("/"):
        try:
            text = f"{os.readlink(f'/proc/self/fd/{folder}')}/{text}"  # noqa: PTH115
        except OSError:
            return None
    return os.path.abspath(text)  # noqa: PTH100 - `resolve` would follow links


def steps_of(
    work: Callable[[], object], roots: Sequence[Path], wanted: Callable[[Step], bool]
) -> list[Step]:
    """Those steps of some work that are wanted. It is done, in a process of its own."""

    def counted() -> list[Step]:
        found: list[Step] = []

        def reached(step: Step) -> None:
            if wanted(step):
                found.append(step)

        listen(roots, reached)
        work()
        return found

    return [Step(*each) for each in apart(counted)]


def killed(
    work: Callable[[], object], roots: Sequence[Path], wanted: Callable[[Step], bool], at: int
) -> Ended:
    """Do some work in a process that kills itself at its wanted step number `at`, from 1.

    That is right before the step; of a file that is opened to be written, every second time right
    behind it, when it is empty. Between any two steps is nothing else to be killed at.
    """
    return Child(lambda tell: _at(work, roots, wanted, at, _die)).join()


def refused(
    work: Callable[[], object],
    roots: Sequence[Path],
    wanted: Callable[[Step], bool],
    at: int,
    number: int,
) -> Ended:
    """Do some work in a process whose wanted step number `at` is refused with an errno."""

    def refuse(step: Step, at: int) -> None:
        raise OSError(number, os.strerror(number), step.path)

    return Child(lambda tell: _at(work, roots, wanted, at, refuse)).join()


def _at(
    work: Callable[[], object],
    roots: Sequence[Path],
    wanted: Callable[[Step], bool],
    at: int,
    act: Callable[[Step, int], None],
) -> Any:
    count = Counter[str]()

    def reached(step: Step) -> None:
        if wanted(step):
            count["steps"] += 1
            if count["steps"] == at:
                act(step, at)

    listen(roots, reached)
    return work()


def _die(step: Step, at: int) -> None:
    if step.kind == "create" and at % 2:
        os.open(step.path, step.flags, 0o666)
    os.kill(os.getpid(), signal.SIGKILL)
