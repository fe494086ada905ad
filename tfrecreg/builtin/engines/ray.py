"""The engine over a Ray cluster: one at an address, or one on this machine for this command."""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tfrecreg.api import (
    EngineRequest,
    FailureError,
    RemoteEngine,
    engine_failed,
    perform_work,
    safe,
    usable_cores,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RayOptions:
    """The options of ``--engine ray``."""

    address: str | None = None
    """Address of a cluster, such as `ray://host:10001` or `auto`; none for this machine."""
    retries: int = 3
    """How often a task is repeated whose worker died."""
    timeout: float = 30.0
    """Seconds to wait for the address."""

    def __post_init__(self) -> None:
        if self.timeout <= 0:
            raise ValueError(f"`timeout` should be above 0, found {self.timeout:g}")
        if self.retries < 0:
            raise ValueError(f"`retries` should be at least 0, found {self.retries}")


class RayEngine(RemoteEngine[Any]):
    """Runs tasks on the workers of Ray.

    A Ray that the program has already started is used and left running.
    """

    Options = RayOptions

    def __init__(self, request: EngineRequest) -> None:
        super().__init__(request)
        self._options: RayOptions = request.options
        self._ours = False
        self._remote: Any = None

    def connect(self) -> None:
        import ray

        self._ours = not ray.is_initialized()
        if self._ours:
            address = self._options.address
            if address is not None:
                _expect_answer(address, self._options.timeout)
            here = {"num_cpus": self.request.jobs or usable_cores(), "include_dashboard": False}
            try:
                ray.init(
                    address=address or "local",
                    log_to_driver=False,
                    logging_level=logging.CRITICAL,
                    **({} if address else here),
                )
            except Exception as error:
                where = f" at `{safe(address)}`" if address else ""
                raise engine_failed(
                    self.request.name,
                    f"cannot reach or start a cluster{where}",
                    error,
                    hint="`ray start --head` starts one; without an address it is on this machine",
                ) from error
        self._remote = ray.remote(max_retries=self._options.retries)(perform_work)

    def disconnect(self) -> None:
        import ray

        self._remote = None
        if self._ours:
            ray.shutdown()

    def workers(self) -> int:
        import ray

        return self.request.jobs or int(ray.cluster_resources().get("CPU", 1))

    def submit(self, work: bytes) -> Any:
        return self._remote.remote(work)

    def result(self, handle: Any) -> bytes:
        import ray

        try:
            outcome: bytes = ray.get(handle)
            return outcome
        except ray.exceptions.WorkerCrashedError as error:
            raise FailureError(
                f"a task ended every worker that ran it: {safe(type(error).__name__)}",
                hint="they may have run out of memory: give workers more",
            ) from error
        except Exception as error:
            raise engine_failed(self.request.name, "lost a task", error, hint=self.RERUN) from error

    def cancel(self, handles: Sequence[Any]) -> None:
        import ray

        for handle in handles:
            with suppress(Exception):
                ray.cancel(handle, force=True)


def _expect_answer(address: str, timeout: float) -> None:
    """Raise where nothing listens: Ray itself waits for minutes."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not (colon and port.isdecimal()):
        return  # such as `auto`
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout).close()
    except (OSError, OverflowError) as error:
        raise FailureError(
            f"no Ray cluster at `{safe(address)}` answers: {safe(str(error))}",
            hint="`ray start --head` starts one; without an address it is on this machine",
        ) from error
