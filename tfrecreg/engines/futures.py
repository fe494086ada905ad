"""The engine over any executor of `concurrent.futures`: mpi4py, loky, parsl, process pools."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from tfrecreg.engines.local import usable_cores
from tfrecreg.engines.remote import RERUN, RemoteEngine, failed, perform_there
from tfrecreg.errors import FailureError, UsageError
from tfrecreg.guard import one_line
from tfrecreg.text import safe

_WORDS = {"true": True, "false": False, "none": None}


class FuturesEngine(RemoteEngine["Future[bytes]"]):
    """Runs tasks on the executor that a function returns.

    Closing waits for tasks that run: an executor cannot end them.

    Args:
        factory: ``module:callable``. The module is also searched in the current folder.
        options: keyword arguments of the callable. Texts that are whole numbers, `true`, `false`
            or `none` are passed as such.
        jobs: number of workers, passed as `max_workers` if the callable takes that and the options
            do not set it; None for the executor's own number.

    Raises:
        UsageError: `factory` has another form, or `jobs` is below 1.
    """

    def __init__(
        self, factory: str, options: Mapping[str, Any] | None = None, *, jobs: int | None = None
    ) -> None:
        super().__init__(jobs)
        module, colon, function = factory.partition(":")
        if not (colon and module and function):
            raise UsageError(
                f"the engine `futures:{safe(factory)}` should be `futures:MODULE:CALLABLE`",
                hint="as in `futures:loky:get_reusable_executor`",
            )
        self.name = f"futures:{safe(factory)}"
        self._module, self._function = module, function
        self._options = {key: _typed(value) for key, value in (options or {}).items()}
        self._executor: Executor | None = None

    def _connect(self) -> None:
        make = self._callable()
        options = dict(self._options)
        if self._wanted is not None and "max_workers" not in options and _takes(make):
            options["max_workers"] = self._wanted
        try:
            executor = make(**options)
        except Exception as error:
            raise UsageError(
                f"`{safe(self._module)}:{safe(self._function)}` made no executor: "
                f"{one_line(error)}",
                hint="`--engine-option NAME=VALUE` passes keyword arguments",
            ) from error
        if not callable(getattr(executor, "submit", None)):
            raise UsageError(
                f"`{safe(self._module)}:{safe(self._function)}` returned "
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
                f"the engine `{self.name}` cannot be imported: {one_line(error)}",
                hint="`futures:MODULE:CALLABLE` names a function that returns an executor",
            ) from error
        finally:
            with suppress(ValueError):
                sys.path.remove(here)
        return found

    def _disconnect(self) -> None:
        executor, self._executor = self._executor, None
        if executor is not None:
            try:
                executor.shutdown(wait=True, cancel_futures=True)
            except TypeError:  # an executor from before Python 3.9 took no `cancel_futures`
                executor.shutdown(wait=True)

    def _slots(self) -> int:
        own = getattr(self._executor, "_max_workers", None)
        return self._wanted or (own if isinstance(own, int) else usable_cores())

    def _submit(self, work: bytes) -> Future[bytes]:
        assert self._executor is not None
        try:
            return self._executor.submit(perform_there, work)
        except Exception as error:
            raise failed(self.name, "takes no more tasks", error, hint=RERUN) from error

    def _result(self, handle: Future[bytes]) -> bytes:
        try:
            return handle.result()
        except CancelledError as error:
            message = f"the engine `{self.name}` cancelled a task"
            raise FailureError(message, hint=RERUN) from error
        except Exception as error:
            raise failed(self.name, "lost a task", error, hint=RERUN) from error

    def _cancel(self, handles: Sequence[Future[bytes]]) -> None:
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
