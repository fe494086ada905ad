"""Runs tasks on a Dask cluster: one at an address, or one that it starts on this machine."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tfrecreg.api import ExecutorEngine, FailureError, TfrecregError, UsageError, usable_cores
from tfrecreg.core.workers.pool import interrupts_held

_GONE = (OSError, TimeoutError, asyncio.TimeoutError, CancelledError, asyncio.CancelledError)
"""Errors that Dask raises when the scheduler does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaskOptions:
    """The options of ``--engine dask``."""

    address: str | None = None
    """Address of a scheduler, such as `tcp://host:8786`. Default: a cluster on this machine."""
    timeout: float = 30.0
    """Seconds to wait for the scheduler, and for a worker if there are none."""

    def __post_init__(self) -> None:
        if self.timeout <= 0:
            raise ValueError(f"`timeout` should be above 0, found {self.timeout:g}")


class DaskEngine(ExecutorEngine):
    """Runs tasks on the workers of a Dask scheduler.

    If a worker dies, Dask repeats its tasks on other workers, up to
    `distributed.scheduler.allowed-failures` times per task.
    """

    Options = DaskOptions
    _lost = (ValueError,)  # Dask may unpack a result as an error if its worker has just died
    _client: Any = None

    @contextmanager
    def executor(self) -> Iterator[Executor]:
        library: Any = import_module("distributed")
        for name in list(logging.root.manager.loggerDict):
            if name.partition(".")[0] in ("distributed", "tornado"):
                logging.getLogger(name).setLevel(logging.CRITICAL)  # our errors report the reason
        # When a client that failed to connect is collected as garbage, it waits for a lock that
        # another client holds during its start.
        gc.collect()
        address, timeout = self.request.options.address, self.request.options.timeout
        here = {
            "n_workers": self.request.jobs or usable_cores(),
            "threads_per_worker": 1,
            "dashboard_address": "127.0.0.1:0",
            "silence_logs": logging.CRITICAL,
        }
        try:
            # ^C is handled by this process only, not by workers which it starts.
            with nullcontext() if address else interrupts_held():
                self._client = library.Client(
                    address, timeout=timeout, set_as_default=False, **({} if address else here)
                )
        except ValueError as error:
            raise UsageError(
                f"`{address}` is not the address of a Dask scheduler: {error}"
            ) from error
        try:
            self._await_worker()
            # Not pure: Dask would reuse the result of an equal task, whose files may be gone.
            yield self._client.get_executor(pure=False)
        finally:
            self._client.close(timeout=timeout)

    def _await_worker(self) -> None:
        timeout = self.request.options.timeout
        try:
            self._client.wait_for_workers(1, timeout=timeout)
        except (TimeoutError, asyncio.TimeoutError) as error:
            raise FailureError(
                f"the Dask scheduler has had no worker for {timeout:g} seconds"
            ) from error

    def workers(self) -> int:
        return len(self._client.nthreads())

    def watch(self) -> None:
        """Wait for new workers if all have died."""
        if not self.workers():
            self._await_worker()

    def failure(self, error: BaseException) -> TfrecregError:
        if isinstance(error, _GONE) or getattr(self._client, "status", "") == "closed":
            where = self.request.options.address or "on this machine"
            return FailureError(
                f"the Dask scheduler {where} does not answer",
                hint="start one with `dask scheduler`, and run the command again",
            )
        return super().failure(error)
