"""Runs tasks on a Ray cluster: one at an address, or one that it starts on this machine."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tfrecreg.api import ExecutorEngine, usable_cores


@dataclass(frozen=True, slots=True, kw_only=True)
class RayOptions:
    """The options of ``--engine ray``."""

    address: str | None = None
    """Address of a cluster, such as `ray://host:10001` or `auto`. Default: this machine."""
    retries: int = 3
    """Maximum number of times that a task is repeated if its worker dies."""
    timeout: float = 30.0
    """Seconds to wait for a connection to the address."""

    def __post_init__(self) -> None:
        if self.timeout <= 0:
            raise ValueError(f"`timeout` should be above 0, found {self.timeout:g}")
        if self.retries < 0:
            raise ValueError(f"`retries` should be at least 0, found {self.retries}")


class RayEngine(ExecutorEngine):
    """Runs tasks on the workers of Ray.

    If the program has already started Ray, the engine uses it and leaves it running.
    """

    Options = RayOptions

    @contextmanager
    def executor(self) -> Iterator[Executor]:
        ray: Any = import_module("ray")
        options: RayOptions = self.request.options
        is_ours = not ray.is_initialized()
        if is_ours:
            given: dict[str, Any] = {
                "num_cpus": self.request.jobs or usable_cores(),
                "include_dashboard": False,
            }
            if options.address is not None:
                _, _, place = options.address.rpartition("://")
                host, _, port = place.rpartition(":")
                if port.isdecimal():  # find out if it answers: Ray itself waits for minutes
                    socket.create_connection((host, int(port)), options.timeout).close()
                given = {"address": options.address}
            ray.init(**{"address": "local", **given}, log_to_driver=False, logging_level="CRITICAL")
        try:
            yield _RayExecutor(ray, options.retries)
        finally:
            if is_ours:
                ray.shutdown()

    def workers(self) -> int:
        ray: Any = import_module("ray")
        return int(ray.cluster_resources().get("CPU", 1))


class _RayExecutor(Executor):
    """An executor that runs functions on Ray. Ray returns futures, but has no executor class."""

    def __init__(self, ray: Any, retries: int) -> None:
        self._ray, self._call = ray, ray.remote(max_retries=retries)(_call)

    def submit(self, function: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        task = self._call.remote(function, *given, **named)
        future: Future[Any] = task.future()
        future.add_done_callback(
            lambda done: done.cancelled() and self._ray.cancel(task, force=True)
        )
        return future


def _call(function: Callable[..., Any], *given: Any, **named: Any) -> Any:
    return function(*given, **named)
