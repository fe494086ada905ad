"""All system calls of a process below some folders, at which it is killed, refused or stopped.

Python's audit events report its calls, including those of DVC, of `pathlib` and of lock files.
`system_support` reports the calls of the storage that have no event: writes, syncs and exchanges.
An audit hook cannot be removed, so only a child process gets one (`child_support`).
"""

from __future__ import annotations

import fcntl
import itertools
import os
import signal
import sys
import threading
import time
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
_STILL = 2.0
"""Seconds for which a process stands still at most, while another one neither ends nor waits."""
_TICK = 0.02


class Step(NamedTuple):
    """A call before it is made."""

    kind: str
    path: str
    """Absolute; of two paths the new one."""
    flags: int = 0
    """Of a file that is opened."""


Work = Callable[[], Any]
Wanted = Callable[[Step], bool]


def _listen(roots: Sequence[Path], wanted: Wanted, reached: Callable[[Step], None]) -> None:
    """Call `reached` before each wanted step of this process below `roots`, from here on.

    An exception of `reached` is raised by the call. While `reached` runs, no other thread makes a
    step. Making an existing folder is not a step.
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
                if wanted(step):
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
        self._heard(Step("exchange" if flags == renames._EXCHANGE else "rename", target))
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


def steps_of(work: Work, roots: Sequence[Path], wanted: Wanted) -> list[Step]:
    """The wanted steps of some work, which is done in a child process."""

    def counted() -> list[Step]:
        found: list[Step] = []
        _listen(roots, wanted, found.append)
        work()
        return found

    return list(apart(counted))


def at_step(
    work: Work,
    roots: Sequence[Path],
    wanted: Wanted,
    at: int,
    act: Callable[[Step, Callable[..., None]], None],
) -> Child:
    """A process that does some work, and acts before its wanted step number `at`, from 1.

    `act` gets the step, and the function that sends messages from the process.
    """

    def acting(tell: Callable[..., None]) -> object:
        count = itertools.count(1)

        def reached(step: Step) -> None:
            if next(count) == at:
                act(step, tell)

        _listen(roots, wanted, reached)
        return work()

    return Child(acting)


def killed(work: Work, roots: Sequence[Path], wanted: Wanted, at: int) -> Ended:
    """Do some work in a process that kills itself before a step.

    If the step creates a file, every second time the process dies after it, when the file is empty.
    """

    def die(step: Step, tell: object) -> None:
        if step.kind == "create" and at % 2:
            os.open(step.path, step.flags, 0o666)
        os.kill(os.getpid(), signal.SIGKILL)

    return at_step(work, roots, wanted, at, die).join()


def pausing(step: Step) -> bool:
    """Whether work of another process before this step matters."""
    if "/.git/" in step.path or "/.tfrecreg/dvc/" in step.path:
        return False
    if step.kind == "open":
        shared = ("/data/", "/versions/", "/registry/", "/cache/", "/stage/", "/raw/")
        return any(folder in step.path for folder in shared) and "ignore" not in step.path
    return step.kind in CHANGING


def stopped(work: Work, places: Sequence[Path], at: int) -> tuple[Child, Step | None]:
    """A process stopped before a step below `places` that matters; None if it ended."""
    child = at_step(work, places, pausing, at, lambda step, tell: tell(step, wait=True))
    return child, child.told()


def meeting(first: Work, second: Work, places: Sequence[Path], at: int) -> tuple[Step | None, bool]:
    """Run two processes, which succeed: `second` works while `first` is stopped before its step
    number `at`, and goes on when `second` has ended, or waits for a lock.

    Returns:
        the step, None if `first` ended before it; and whether `second` waited.
    """
    one, step = stopped(first, places, at)
    children, waited = [one], False
    if step is not None:
        other = Child(lambda tell: _announcing(second, tell))
        waited = _until_it_waits(other)
        one.go_on()
        children.append(other)
    for each in children:
        assert each.join().failure is None, f"at {step}: {each.ended}"
    return step, waited


def _announcing(work: Work, tell: Callable[..., None]) -> Any:
    """Do some work, and send a message before each call that may wait."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "time.sleep":
            tell("sleeps")
        elif event == "fcntl.flock" and not arguments[1] & (fcntl.LOCK_NB | fcntl.LOCK_UN):
            tell("locks")

    sys.addaudithook(hook)
    return work()


def _until_it_waits(child: Child) -> bool:
    """Whether a process waits; False if it ended, or sent nothing for too long."""
    deadline = time.monotonic() + _STILL
    while child.ended is None and time.monotonic() < deadline:
        if child.told(_TICK) == "sleeps" or _blocked(child.pid):
            return child.ended is None
    return False


def _blocked(pid: int) -> bool:
    """Whether a process waits for a lock, if the system shows it."""
    locks = Path("/proc/locks")
    text = locks.read_text() if locks.exists() else ""
    return any(str(pid) in line.split() for line in text.splitlines() if " -> " in line)
