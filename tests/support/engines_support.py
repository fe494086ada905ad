"""Functions for worker processes. Workers import it by name, so it imports next to nothing."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from tfrecreg.core.values.errors import RawDataError


def late_first(task: int) -> int:
    time.sleep(0.3 if task == 0 else 0)
    return task * task


def process_of(task: int) -> int:
    return os.getpid()


class Stubborn(Exception):
    """An error that cannot be unpickled: its constructor wants more than its message."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


class Trap:
    """A result that can be packed but not unpacked."""

    def __reduce__(self) -> tuple[object, ...]:
        return _spring, ()


def _spring() -> None:
    raise ValueError("it is a trap")


def misbehave(how: str, task: int) -> object:
    match how:
        case "bug":
            return 1 // 0
        case "exit":
            sys.exit("good night")
        case "lambda":
            return lambda: task
        case "trap":
            return Trap()
        case "stubborn":
            raise Stubborn("one", "another")
        case "refuse" if task == 2:
            raise RawDataError("`two` is one too many", hint="leave it out")
        case "kill" if task == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        case "die" if task == 1:
            os._exit(7)
    return task


def sleep_long(task: int | bytes) -> int | bytes:
    if task not in (0, b"x"):
        time.sleep(60)
    return task


def shout(task: int) -> int:
    print("a plugin prints", task)
    return task


def touch_late(path: str) -> None:
    time.sleep(0.05)
    Path(path).touch()
