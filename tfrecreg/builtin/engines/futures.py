"""Runs tasks on any executor of `concurrent.futures`: mpi4py, loky, parsl, process pools."""

from __future__ import annotations

import inspect
import pkgutil
import sys
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from tfrecreg.api import ExecutorEngine, UsageError, one_line

_WORDS = {"true": True, "false": False, "none": None}


class FuturesEngine(ExecutorEngine):
    """Runs tasks on the executor that a function returns.

    Closing the engine waits for running tasks, because an executor cannot stop them.
    """

    takes_any_option = True

    def executor(self) -> Executor:
        here = str(Path.cwd())
        is_known = here in sys.path
        if not is_known:
            sys.path.append(here)  # at the end, so that it shadows nothing
        try:
            make: Any = pkgutil.resolve_name(self.request.argument)
            made = make(**self._arguments(make))
            if not isinstance(made, Executor):
                raise TypeError(f"it returned {type(made).__name__}")
        except Exception as error:
            raise UsageError(
                f"the engine `{self.request.name}` has no executor: {one_line(error)}",
                hint="in `futures:MODULE:CALLABLE`, CALLABLE has to return an executor",
            ) from error
        finally:
            if not is_known:
                sys.path.remove(here)
        return made

    def _arguments(self, make: Callable[..., Any]) -> dict[str, Any]:
        options = dict(self.request.others)
        for key, text in options.items():
            if isinstance(text, str) and text.lower() in _WORDS:
                options[key] = _WORDS[text.lower()]
            elif isinstance(text, str) and text.isascii() and text.removeprefix("-").isdecimal():
                options[key] = int(text)
        jobs = self.request.jobs
        if jobs is not None and "max_workers" in inspect.signature(make).parameters:
            options.setdefault("max_workers", jobs)
        return options
