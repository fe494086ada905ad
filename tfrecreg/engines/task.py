"""One task: called the same way wherever it runs, and what became of it as bytes."""

from __future__ import annotations

import pickle
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any, TypeVar

from tfrecreg.errors import FailureError, TfrecregError
from tfrecreg.text import safe

__all__ = ["call", "perform", "result_of"]

T = TypeVar("T")
R = TypeVar("R")


class _RemoteError(Exception):
    """Where it happened: the traceback of the worker, as the cause of what it raised."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def call(function: Callable[[T], R], task: T) -> R:
    """`function` of `task`; what it prints goes to stderr.

    Raises:
        FailureError: it tried to end the program.
        BaseException: whatever else `function` raised.
    """
    with redirect_stdout(sys.stderr):
        try:
            return function(task)
        except SystemExit as error:
            raise FailureError(
                f"a task tried to end the program: exit({safe(repr(error.code))})",
                hint="a plugin did: `tfrecreg plugins list` shows which there are",
            ) from error


def perform(work: bytes) -> bytes:
    """In a worker: do a pickled ``(function, task)``, and pack what became of it."""
    try:
        function, task = pickle.loads(work)
        return pickle.dumps((True, call(function, task), "", ""))
    except Exception as error:
        summary = safe("".join(traceback.format_exception_only(type(error), error)).strip())
        trace = "".join(traceback.format_exception(error))
        try:
            packed = pickle.dumps(error)
        except Exception:  # an error that cannot travel is told in words
            packed = b""
        return pickle.dumps((False, packed, summary, trace))


def result_of(outcome: bytes) -> Any:
    """In the parent: the result that :func:`perform` packed.

    Raises:
        FailureError: the result or the error came, and cannot be unpacked here.
        Exception: what the function raised.
    """
    try:
        done, value, summary, trace = pickle.loads(outcome)
    except Exception as error:
        raise FailureError(
            f"the result of a task cannot be unpacked: {type(error).__name__}: {safe(str(error))}",
            hint="`--jobs 1` does without workers, and shows what went wrong",
        ) from error
    if done:
        return value
    try:
        raised: BaseException = pickle.loads(value)
    except Exception:
        raised = FailureError(
            f"a task failed in its worker: {summary}",
            hint="`--jobs 1` does without workers, and shows where",
        )
    if isinstance(raised, TfrecregError):
        raise raised
    raise raised from _RemoteError(trace)
