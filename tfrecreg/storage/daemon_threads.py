"""Threads for requests to a store, which do not keep a process from ending."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class DaemonThreads(Generic[T]):
    """Threads of this process that call functions in the order in which they are given.

    Not those of an executor: the end of the process would wait for their requests.

    Args:
        count: number of threads.
        name: of each, for debuggers.
    """

    def __init__(self, count: int, name: str) -> None:
        self.process = os.getpid()
        """The process that has them: threads do not survive a fork."""
        self._queue: SimpleQueue[tuple[Future[T], Callable[..., T], tuple[Any, ...]]]
        self._queue = SimpleQueue()
        for _ in range(count):
            Thread(target=_work, args=(self._queue,), name=name, daemon=True).start()

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Call a function; the future has its result, and can be cancelled before it starts."""
        future: Future[T] = Future()
        self._queue.put((future, function, arguments))
        return future


def _work(queue: SimpleQueue[Any]) -> None:
    """The work of a thread."""
    while True:
        future, function, arguments = queue.get()
        if not future.set_running_or_notify_cancel():
            continue
        try:
            future.set_result(function(*arguments))
        except BaseException as error:
            future.set_exception(error)
        del future, function, arguments  # they hold a block, and its reader
