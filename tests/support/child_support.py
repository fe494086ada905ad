"""Work in a forked process: its result, its exception or its death.

A process that ends releases its locks, open files and DVC's state. So work that is killed or
stopped, and work with DVC, runs in a process of its own.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from tfrecreg.core.values.errors import TfrecregError

_PATIENCE = 180.0
"""Seconds after which a process hangs. No process takes a tenth of it."""


class Failure(NamedTuple):
    expected: bool
    """Whether it is a `TfrecregError`: anything else would be a traceback."""
    message: str
    hint: str
    exit_code: int
    trace: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        trace = "".join(traceback.format_exception(error))[-6000:]
        if isinstance(error, TfrecregError):
            return cls(True, error.message, error.hint, error.exit_code, trace)
        return cls(False, str(error), "", 1, trace)


class Ended(NamedTuple):
    killed: bool = False
    value: Any = None
    failure: Failure | None = None


class Child:
    """A forked process that does some work; :meth:`told` returns its messages.

    `work` gets a function that sends a value to this process; ``tell(value, wait=True)`` then waits
    for :meth:`go_on`.
    """

    def __init__(self, work: Callable[[Callable[..., None]], Any]) -> None:
        self._pipe, theirs = Pipe()
        self.ended: Ended | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # fork beside threads
            self.pid = os.fork()
        if self.pid == 0:
            self._pipe.close()
            _work_and_exit(work, theirs)
        theirs.close()

    def told(self, timeout: float = _PATIENCE) -> Any:
        """The next message of the process; None if it ended, or sends nothing in that time."""
        if self.ended is not None or not self._pipe.poll(timeout):
            return None
        try:
            message = self._pipe.recv()
        except EOFError:
            message = Ended(killed=True)
        if not isinstance(message, Ended):
            return message
        _, status = os.waitpid(self.pid, 0)
        assert status == (signal.SIGKILL if message.killed else 0), status
        self._pipe.close()
        self.ended = message
        return None

    def go_on(self) -> None:
        self._pipe.send("go on")

    def join(self) -> Ended:
        """How the process ended, after all of its messages."""
        deadline = time.monotonic() + _PATIENCE
        while self.ended is None:
            if self.told(max(0.0, deadline - time.monotonic())) is None and self.ended is None:
                os.kill(self.pid, signal.SIGKILL)
                raise AssertionError(f"process {self.pid} hangs: two that wait for each other?")
        return self.ended


def _work_and_exit(work: Callable[[Callable[..., None]], Any], pipe: Connection) -> None:
    def tell(value: object, *, wait: bool = False) -> None:
        pipe.send(value)
        if wait:
            pipe.recv()

    try:
        try:
            pipe.send(Ended(value=work(tell)))
        except BaseException as error:
            pipe.send(Ended(failure=Failure.of(error)))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def apart(work: Callable[[], Any]) -> Any:
    """The result of some work in a process of its own, which succeeds."""
    ended = Child(lambda tell: work()).join()
    assert not ended.killed
    assert ended.failure is None, ended.failure.trace if ended.failure else ""
    return ended.value


def preload(work: Callable[[], object]) -> None:
    """Import the modules that some work imports, so that forks which do it are quicker."""

    before = set(sys.modules)

    def names() -> set[str]:
        work()
        return set(sys.modules) - before

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in sorted(apart(names)):
            with suppress(ImportError):  # made by some program for itself
                import_module(name)
