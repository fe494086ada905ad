"""The engine over any executor of `concurrent.futures`: mpi4py, loky, parsl, process pools."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from concurrent.futures import CancelledError, Executor, Future
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from tfrecreg.api import (
    EngineRequest,
    FailureError,
    RemoteEngine,
    UsageError,
    engine_failed,
    one_line,
    perform_work,
    safe,
    usable_cores,
)

_WORDS = {"true": True, "false": False, "none": None}


class FuturesEngine(RemoteEngine["Future[bytes]"]):
    """Runs tasks on the executor that a function returns.

    Closing waits for tasks that run: an executor cannot end them.
    """

    takes_any_option = True

    def __init__(self, request: EngineRequest) -> None:
        super().__init__(request)
        self._module, colon, self._function = request.argument.partition(":")
        self._factory = safe(request.argument)
        if not (colon and self._module and self._function):
            raise UsageError(
                f"the engine `futures:{self._factory}` should be `futures:MODULE:CALLABLE`",
                hint="as in `futures:loky:get_reusable_executor`",
            )
        self._executor: Executor | None = None

    def connect(self) -> None:
        make = self._callable()
        options = {key: _typed(value) for key, value in self.request.others.items()}
        if self.request.jobs is not None and "max_workers" not in options and _takes(make):
            options["max_workers"] = self.request.jobs
        try:
            executor = make(**options)
        except Exception as error:
            raise UsageError(
                f"`{self._factory}` made no executor: {one_line(error)}",
                hint="`--engine-option NAME=VALUE` passes keyword arguments",
            ) from error
        if not callable(getattr(executor, "submit", None)):
            raise UsageError(
                f"`{self._factory}` returned "
                f"{safe(type(executor).__name__)}, expected a `concurrent.futures.Executor`",
                hint="as `futures:loky:get_reusable_executor` does",
            )
        self._executor = executor

    def _callable(self) -> Any:
        here = str(Path.cwd())
        sys.path.append(here)  # the last, so that it shadows nothing
        try:
            found: Any = import_module(self._module)
            for part in self._function.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError, ValueError) as error:
            raise UsageError(
                f"the engine `futures:{self._factory}` cannot be imported: {one_line(error)}",
                hint="`futures:MODULE:CALLABLE` names a function that returns an executor",
            ) from error
        finally:
            with suppress(ValueError):
                sys.path.remove(here)
        return found

    def disconnect(self) -> None:
        executor, self._executor = self._executor, None
        if executor is not None:
            try:
                executor.shutdown(wait=True, cancel_futures=True)
            except TypeError:  # an executor from before Python 3.9 took no `cancel_futures`
                executor.shutdown(wait=True)

    def workers(self) -> int:
        own = getattr(self._executor, "_max_workers", None)
        return self.request.jobs or (own if isinstance(own, int) else usable_cores())

    def submit(self, work: bytes) -> Future[bytes]:
        assert self._executor is not None
        try:
            return self._executor.submit(perform_work, work)
        except Exception as error:
            raise engine_failed(
                self.request.name, "takes no more tasks", error, hint=self.RERUN
            ) from error

    def result(self, handle: Future[bytes]) -> bytes:
        try:
            return handle.result()
        except CancelledError as error:
            message = f"the engine `futures:{self._factory}` cancelled a task"
            raise FailureError(message, hint=self.RERUN) from error
        except Exception as error:
            raise engine_failed(self.request.name, "lost a task", error, hint=self.RERUN) from error

    def cancel(self, handles: Sequence[Future[bytes]]) -> None:
        running = [handle for handle in handles if not handle.cancel()]
        for handle in running:
            # What runs now still writes: wait until it has ended.
            with suppress(Exception, CancelledError):
                handle.exception()


def _typed(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value.lower() in _WORDS:
        return _WORDS[value.lower()]
    return int(value) if value.removeprefix("-").isdecimal() and value.isascii() else value


def _takes(make: Any) -> bool:
    """Whether a callable has a parameter `max_workers`."""
    try:
        return "max_workers" in inspect.signature(make).parameters
    except (TypeError, ValueError):
        return False
