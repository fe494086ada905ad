"""Work in a forked process: its result, its exception or its death.

A process that ends releases its locks, open files and DVC's state. So work that is killed or
stopped, and work with DVC, runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

from tfrecreg.core.values.errors import TfrecregError

_PATIENCE = 180.0
"""Seconds after which a process hangs. No process takes a tenth of it."""


@dataclass(frozen=True)
class Failure:
    """The exception of some work."""

    kind: str
    expected: bool
    """Whether it is a `TfrecregError`: anything else would be a traceback."""
    message: str
    hint: str
    exit_code: int
    trace: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        return cls(
            kind=type(error).__name__,
            expected=isinstance(error, TfrecregError),
            message=str(getattr(error, "message", error)),
            hint=getattr(error, "hint", ""),
            exit_code=getattr(error, "exit_code", 1),
            trace="".join(traceback.format_exception(error))[-6000:],
        )


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    killed: bool
    value: Any = None
    """What its work returned: anything that JSON has."""
    failure: Failure | None = None


class Child:
    """A forked process that does some work; :meth:`told` returns its messages.

    Args:
        work: gets a function that sends a JSON value to this process, and optionally waits for
            :meth:`go_on`: ``tell(value, wait=True)``.
    """

    def __init__(self, work: Callable[[Callable[..., None]], Any]) -> None:
        self._reader, writer = os.pipe()
        go, self._go = os.pipe()
        self._pending = b""
        self.ended: Ended | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # fork beside threads
            self.pid = os.fork()
        if self.pid == 0:
            os.close(self._reader)
            os.close(self._go)
            _work_and_exit(work, writer, go)
        os.close(writer)
        os.close(go)

    def told(self, timeout: float = _PATIENCE) -> Any:
        """Its next message; None if it ended, or sends nothing in that time."""
        line = self._line(timeout)
        if line is None:
            return None
        if "told" in line:
            return line["told"]
        self._end(line)
        return None

    def go_on(self) -> None:
        """Let it go on that waits."""
        os.write(self._go, b".")

    def join(self) -> Ended:
        """How it ended, after all of its messages."""
        deadline = time.monotonic() + _PATIENCE
        while self.ended is None:
            if self.told(max(0.0, deadline - time.monotonic())) is None and self.ended is None:
                os.kill(self.pid, signal.SIGKILL)
                self._end({"hangs": True})
                raise AssertionError(f"process {self.pid} hangs: two that wait for each other?")
        return self.ended

    def _line(self, timeout: float) -> dict[str, Any] | None:
        """A line, ``{}`` at the end, None without one in time."""
        deadline = time.monotonic() + timeout
        polled = select.poll()
        polled.register(self._reader, select.POLLIN)
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left < 0 or not polled.poll(left * 1000):
                return None
            data = os.read(self._reader, 1 << 16)
            if not data:
                return {}
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def _end(self, line: dict[str, Any]) -> None:
        _, status = os.waitpid(self.pid, 0)
        os.close(self._reader)
        os.close(self._go)
        if os.WIFSIGNALED(status):
            assert os.WTERMSIG(status) == signal.SIGKILL, status
            self.ended = Ended(killed=True)
            return
        failure = Failure(**line["failure"]) if "failure" in line else None
        self.ended = Ended(killed=False, value=line.get("value"), failure=failure)


def _work_and_exit(work: Callable[[Callable[..., None]], Any], writer: int, go: int) -> None:
    def tell(value: object, *, wait: bool = False) -> None:
        os.write(writer, json.dumps({"told": value}).encode() + b"\n")
        if wait:
            os.read(go, 1)

    code = 1
    try:
        try:
            line = {"value": work(tell)}
        except BaseException as error:
            line = {"failure": asdict(Failure.of(error))}
        os.write(writer, json.dumps(line).encode() + b"\n")
        code = 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def apart(work: Callable[[], Any]) -> Any:
    """Do some work in a process of its own and return its result. An exception is an assertion
    here."""
    ended = Child(lambda tell: work()).join()
    assert not ended.killed
    assert ended.failure is None, ended.failure.trace if ended.failure else ""
    return ended.value


def preload(work: Callable[[], object]) -> None:
    """Import the modules that some work imports, so that forks which do it are quicker."""

    def names() -> list[str]:
        before = set(sys.modules)
        work()
        return sorted(set(sys.modules) - before)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in apart(names):
            try:
                import_module(name)
            except ImportError:
                continue  # made by some program for itself
