"""The outcome of a task as bytes: its result, or the exception that it raised."""

from __future__ import annotations

import pickle
import traceback
from typing import Any

from tfrecreg.core.values.errors import FailureError
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.interface import call


class _RemoteError(Exception):
    """The traceback of the worker, as the cause of the exception that it raised."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def perform(work: bytes) -> bytes:
    """In a worker: run a pickled ``(function, task)``, and pack its outcome."""
    try:
        function, task = pickle.loads(work)
        return pickle.dumps((True, call(function, task), "", ""))
    except Exception as error:
        return packed_error(error)


def packed_error(error: Exception) -> bytes:
    """In a worker: an outcome that :func:`result_of` raises."""
    summary = safe("".join(traceback.format_exception_only(type(error), error)).strip())
    trace = "".join(traceback.format_exception(error))
    try:
        packed = pickle.dumps(error)
    except Exception:  # an error that cannot be pickled is sent as text
        packed = b""
    return pickle.dumps((False, packed, summary, trace))


def result_of(outcome: bytes) -> Any:
    """In the parent: the result that :func:`perform` packed."""
    try:
        done, value, summary, trace = pickle.loads(outcome)
    except Exception as error:
        raise FailureError(
            f"the result of a task cannot be unpacked: {type(error).__name__}: {safe(str(error))}",
            hint="`--jobs 1` runs without workers and shows the error",
        ) from error
    if done:
        return value
    try:
        raised: BaseException = pickle.loads(value)
    except Exception:
        raised = FailureError(
            f"a task failed in its worker: {summary}",
            hint="`--jobs 1` runs without workers and shows the error",
        )
    raise raised from _RemoteError(trace)
