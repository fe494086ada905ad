"""The engine over a Dask cluster: one at an address, or one on this machine for this command."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from tfrecreg.api import (
    EngineRequest,
    FailureError,
    RemoteEngine,
    UsageError,
    engine_failed,
    perform_work,
    safe,
    usable_cores,
)

_LOOK = 2.0
"""Seconds between checks whether there are workers."""
_GONE = (OSError, TimeoutError, asyncio.TimeoutError, CancelledError, asyncio.CancelledError)
"""What Dask raises when the scheduler does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaskOptions:
    """The options of ``--engine dask``."""

    address: str | None = None
    """Address of a scheduler, such as `tcp://host:8786`; none for a cluster on this machine."""
    timeout: float = 30.0
    """Seconds to wait for the scheduler, and for a first worker."""

    def __post_init__(self) -> None:
        if self.timeout <= 0:
            raise ValueError(f"`timeout` should be above 0, found {self.timeout:g}")


class DaskEngine(RemoteEngine[Any]):
    """Runs tasks on the workers of a Dask scheduler.

    Dask repeats the tasks of a worker that dies on the others, up to its setting
    `distributed.scheduler.allowed-failures` per task.
    """

    Options = DaskOptions

    def __init__(self, request: EngineRequest) -> None:
        super().__init__(request)
        self._options: DaskOptions = request.options
        self._cluster: Any = None
        self._client: Any = None

    def connect(self) -> None:
        import distributed

        library: Any = distributed  # it has types for half of its functions
        _silence()
        address: Any = self._options.address
        try:
            with _uncollected():
                if address is None:
                    with self.interrupts_held():  # ^C is this process's to handle
                        address = self._cluster = library.LocalCluster(
                            n_workers=self.request.jobs or usable_cores(),
                            threads_per_worker=1,
                            dashboard_address="127.0.0.1:0",
                            silence_logs=logging.CRITICAL,
                        )
                self._client = library.Client(
                    address, timeout=self._options.timeout, set_as_default=False
                )
        except ValueError as error:
            raise UsageError(
                f"`{safe(str(address))}` is not the address of a Dask scheduler: "
                f"{safe(str(error))}",
                hint="as in `--engine-option address=tcp://HOST:8786`",
            ) from error
        except (OSError, RuntimeError) as error:
            if self._options.address is None:
                what = "cannot start workers on this machine"
                raise engine_failed(
                    self.request.name, what, error, hint="try fewer `--jobs`"
                ) from error
            raise FailureError(
                f"no Dask scheduler at `{safe(str(address))}` answers within "
                f"{self._options.timeout:g} seconds",
                hint="start one with `dask scheduler`, or omit the address for a cluster on this "
                "machine",
            ) from error
        self._await_workers()

    def disconnect(self) -> None:
        client, self._client = self._client, None
        cluster, self._cluster = self._cluster, None
        for each in (client, cluster):
            if each is not None:
                # A lost scheduler cannot be notified that this client leaves.
                with suppress(*_GONE), _uncollected():
                    each.close(timeout=self._options.timeout)

    def workers(self) -> int:
        if self.request.jobs is not None:
            return self.request.jobs
        return len(self._connected())

    def _connected(self) -> dict[str, int]:
        """Threads by address of worker."""
        try:
            found: dict[str, int] = self._client.nthreads()
        except _GONE as error:
            raise self._lost() from error
        return found

    def _await_workers(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=self._options.timeout)
        except (TimeoutError, asyncio.TimeoutError) as error:
            raise self._idle() from error

    def greet(self, work: bytes) -> Iterator[bytes]:
        from distributed.comm.core import CommClosedError

        try:
            answers = self._client.run(perform_work, work, on_error="return")
        except _GONE as error:
            raise self._lost() from error
        for answer in answers.values():
            if isinstance(answer, CommClosedError):
                continue  # the worker ended meanwhile: it gets no task
            if isinstance(answer, BaseException):
                raise engine_failed(self.request.name, "cannot use a worker", answer) from answer
            yield answer

    def submit(self, work: bytes) -> Any:
        try:
            # Not pure: Dask would keep the result of an equal task, whose files may be gone.
            return self._client.submit(perform_work, work, pure=False)
        except (RuntimeError, *_GONE) as error:  # the client has given up
            raise self._lost() from error

    def result(self, handle: Any) -> bytes:
        from distributed.scheduler import KilledWorker

        seen = time.monotonic()
        while True:
            try:
                outcome: bytes = handle.result(timeout=_LOOK)
                return outcome
            except (TimeoutError, asyncio.TimeoutError):
                # A task whose workers all died waits for new ones.
                if self._connected():
                    seen = time.monotonic()
                elif time.monotonic() - seen > self._options.timeout:
                    raise self._idle() from None
            except KilledWorker as error:
                raise FailureError(
                    "a task ended every worker that ran it; the last was "
                    f"`{safe(error.last_worker.address)}`",
                    hint="they may have run out of memory: give workers more, or one thread each",
                ) from error
            except _GONE as error:
                raise self._lost() from error
            except Exception as error:
                raise engine_failed(
                    self.request.name, "lost a task", error, hint=self.RERUN
                ) from error

    def cancel(self, handles: Sequence[Any]) -> None:
        with suppress(RuntimeError, *_GONE):
            self._client.cancel(list(handles), force=True)

    def _lost(self) -> FailureError:
        where = self._options.address or "on this machine"
        return FailureError(f"the Dask scheduler {safe(where)} was lost", hint=self.RERUN)

    def _idle(self) -> FailureError:
        return FailureError(
            f"the Dask scheduler has had no worker for {self._options.timeout:g} seconds",
            hint="start workers with `dask worker ADDRESS --nthreads 1`",
        )


@contextmanager
def _uncollected() -> Iterator[None]:
    """A block in which no garbage is collected.

    A client that could not connect is closed by its finalizer. That waits for a lock which a client
    that starts or ends in this thread holds: a collection at that moment would never end.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _silence() -> None:
    """Keep Dask from logging lost workers and schedulers, which our errors report."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
