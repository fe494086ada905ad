"""Functions for worker processes. Workers import it by name, so it imports next to nothing."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tfrecreg.core.values.errors import RawDataError

if TYPE_CHECKING:
    import pytest


def lighten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spawned workers import the main module again: here pytest, which they do not need."""
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "__spec__", None)
    monkeypatch.delattr(main, "__file__", raising=False)


def late_first(task: int) -> int:
    time.sleep(0.3 if task == 0 else 0)
    return task * task


def process_of(task: int) -> int:
    return os.getpid()


def refuse_two(task: int) -> int:
    if task == 2:
        raise RawDataError("`two` is one too many", hint="leave it out")
    return task


def fail(task: int) -> int:
    return 1 // 0


class Stubborn(Exception):
    """An error that cannot be unpickled: its constructor wants more than its message."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


def raise_stubborn(task: int) -> int:
    raise Stubborn("one", "another")


def leave(task: int) -> int:
    sys.exit("good night")


def kill_itself(task: int) -> int:
    if task == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def exit_hard(task: int) -> int:
    if task == 1:
        os._exit(7)
    return task


def no_result(task: int) -> object:
    return lambda: task


class Trap:
    """A result that can be packed and not unpacked."""

    def __reduce__(self) -> tuple[object, ...]:
        return _spring, ()


def _spring() -> None:
    raise ValueError("it is a trap")


def trap(task: int) -> Trap:
    return Trap()


def sleep_long(task: int) -> int:
    if task:
        time.sleep(60)
    return task


def length(task: bytes) -> int:
    if len(task) > 1:
        time.sleep(60)
    return len(task)


def shout(task: int) -> int:
    print("a plugin prints", task)
    return task


def touch_late(path: str) -> None:
    time.sleep(0.05)
    Path(path).touch()
