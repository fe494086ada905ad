"""Threads for requests to a store, which do not keep a process from ending.

Many independent requests are made by :func:`at_once`, and reading ahead uses the same threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, wait
from contextvars import copy_context
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")

AT_ONCE = 16
"""Number of requests of a process that are made at the same time."""
_LISTEN = 0.5
"""Seconds after which a wait is restarted: a signal just before a wait does not end it."""


class DaemonThreads(Generic[T]):
    """Threads of this process that call functions in the order in which they are given.

    Not threads of an executor: the end of the process would wait for their requests. They end with
    this object, when they have made the calls that were given.
    """

    def __init__(self, count: int, name: str) -> None:
        self.process = os.getpid()
        """The process that has them: threads do not survive a fork."""
        self._count = count
        self._queue: SimpleQueue[tuple[Future[T], Callable[..., T], tuple[Any, ...]] | None]
        self._queue = SimpleQueue()
        for _ in range(count):
            Thread(target=_work, args=(self._queue,), name=name, daemon=True).start()

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Call a function; the future has its result, and can be cancelled before it starts."""
        future: Future[T] = Future()
        self._queue.put((future, function, arguments))
        return future

    def __del__(self) -> None:
        for _ in range(self._count):
            self._queue.put(None)


_threads: DaemonThreads[Any] | None = None


def shared_threads() -> DaemonThreads[Any]:
    """The threads of this process for requests that wait for no other ones."""
    global _threads
    if _threads is None or _threads.process != os.getpid():
        _threads = DaemonThreads(AT_ONCE, "tfrecreg-requests")
    return _threads


def awaited(future: Future[T]) -> T:
    """The result of a call, or its exception. An interrupt ends the waiting."""
    while not future.done():
        wait([future], _LISTEN)
    return future.result()


def at_once(function: Callable[[S], T], tasks: Iterable[S]) -> Generator[T, None, None]:
    """The result of a function for every task, in their order; :data:`AT_ONCE` calls run together.

    Each call sees the context variables of its caller. At most twice as many tasks are taken before
    their results are. After an error no further call begins, and it is raised when those that run
    have ended. An interrupt does not wait for them.
    """
    waiting: deque[Future[T]] = deque()
    try:
        for task in tasks:
            waiting.append(shared_threads().submit(copy_context().run, function, task))
            if len(waiting) == 2 * AT_ONCE:
                yield awaited(waiting.popleft())
        while waiting:
            yield awaited(waiting.popleft())
    except Exception:
        wait([each for each in waiting if not each.cancel()])
        raise
    finally:
        for each in waiting:
            each.cancel()


def _work(queue: SimpleQueue[Any]) -> None:
    """The work of a thread."""
    while (call := queue.get()) is not None:
        future, function, arguments = call
        if not future.set_running_or_notify_cancel():
            continue
        try:
            future.set_result(function(*arguments))
        except BaseException as error:
            future.set_exception(error)
        del call, future, function, arguments  # they hold a block, and its reader
