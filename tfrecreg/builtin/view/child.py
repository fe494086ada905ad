"""Work in a process of its own: TensorFlow takes more memory and time to start than the viewer."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from tfrecreg.engines.pool import interrupts_held
from tfrecreg.errors import FailureError, TfrecregError
from tfrecreg.text import safe

Told = Callable[[int], None]
"""Tells how many records are done."""
_AGAIN = "start `tfrecreg view` again"


class Child:
    """A process that runs functions, one at a time. Started on first use. Safe for threads."""

    def __init__(self) -> None:
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._lock = threading.Lock()
        self._closed = False

    def call(self, function: Callable[..., Any], *given: Any, report: Told | None = None) -> Any:
        """The result of ``function(report, *given)`` in the process."""
        with self._lock:
            try:
                connection = self._connection or self._start()
                connection.send((function, given))
                while True:
                    kind, found = connection.recv()
                    if kind == "done":
                        return found
                    if kind == "error":
                        raise found
                    if report is not None:
                        report(found)
            except (EOFError, OSError) as error:
                self._end()
                raise FailureError("its process ended before it was done", hint=_AGAIN) from error

    def close(self) -> None:
        """End the process, whatever it does."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()
            process.join()

    def _start(self) -> Connection:
        if self._closed:
            raise FailureError("the viewer ends", hint=_AGAIN)
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs,))
        with interrupts_held():
            process.start()
        theirs.close()
        self._process, self._connection = process, ours
        return ours

    def _end(self) -> None:
        process, self._process = self._process, None
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        if process is not None:
            process.kill()
            process.join()


def _serve(connection: Connection) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    _silence()
    while True:
        try:
            function, given = connection.recv()
            try:
                answer = "done", function(lambda done: connection.send(("so far", done)), *given)
            except TfrecregError as error:
                answer = "error", error
            except Exception as error:
                what = f"{type(error).__name__}: {safe(str(error), limit=300)}"
                answer = "error", FailureError(what, hint="this is a bug: report it")
            connection.send(answer)
        except (EOFError, OSError):
            return  # the viewer ended


def _silence() -> None:
    """What TensorFlow and its like print as they start is not for the viewer's terminal."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
