"""A pool of worker processes that run tasks. The number of processes is bounded. The results
are in the order of the tasks. The processes end with their parent process.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from tfrecreg.core.values.errors import FailureError
from tfrecreg.core.workers.interface import perform, result_of

T = TypeVar("T")
R = TypeVar("R")

_AHEAD = 2
"""Number of tasks per worker that are started before the next result is taken. They are enough to
keep workers busy during an earlier long task, and few enough to bound memory.
"""

_PATIENCE = 5.0
"""Seconds that a process has to exit by itself. After this time it is killed."""


class _Worker:
    """A process, the parent's end of its pipe, and the number of its current task."""

    def __init__(self, function: Callable[[Any], object] | None) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        # The function is sent because unpickling it runs its imports. The process is a daemon, so
        # that the interpreter can exit even if the generator was not closed.
        self.process = context.Process(target=_work, args=(theirs, function), daemon=True)
        try:
            with interrupts_held():
                self.process.start()
        except BaseException:
            self.connection.close()
            raise
        finally:
            theirs.close()
        self.task: int | None = None
        self.proven = False
        """Whether the worker has completed a task."""

    def end(self) -> None:
        """Wait until the process has exited; kill it if it hangs."""
        self.process.join(_PATIENCE)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()

    def death(self) -> FailureError:
        """The error for the death of the worker, with a hint."""
        self.end()
        code = self.process.exitcode or 0
        if code == -signal.SIGKILL:
            hint = "it may have run out of memory: try fewer `--jobs`"
        elif code > 0 and not self.proven:
            hint = (
                "a script that asks for more than one job must keep its code under "
                '`if __name__ == "__main__":`; `--jobs 1` runs without workers'
            )
        else:
            hint = "`--jobs 1` runs without workers and shows the error"
        return FailureError(
            f"a worker process {how_it_ended(code)} before its task was done", hint=hint
        )


class Pool:
    """A context manager with up to `size` workers, at most one per task.

    If an exception ends the context, or the generator of :meth:`run` is closed, the workers are
    killed. Otherwise they exit by themselves. In both cases no worker is left.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._workers: list[_Worker] = []

    def start(self, count: int, function: Callable[[Any], object] | None = None) -> None:
        """Start workers until there are `count` of them, which is at most the pool's size."""
        try:
            while len(self._workers) < count:
                self._workers.append(_Worker(function))
        except OSError as error:
            raise FailureError(f"no worker process could be started: {error.strerror}") from error

    def run(self, function: Callable[[T], R], tasks: Iterable[T]) -> Generator[R, None, None]:
        """The result of `function` for every task, in order. See
        :class:`tfrecreg.core.workers.interface.Engine`.
        """
        tasks = iter(tasks)
        # All workers start before the first task is sent. A worker receives a task that is larger
        # than the pipe's buffer only after its imports, and the other workers would begin their
        # imports only then.
        first = list(islice(tasks, self._size))
        self.start(len(first))
        waiting = chain(first, tasks)
        results: dict[int, bytes] = {}
        begun = taken = 0
        more = True
        while more or taken < begun:
            while more and begun - taken < self._size * _AHEAD:
                if all(worker.task is not None for worker in self._workers):
                    break
                try:
                    task = next(waiting)
                except StopIteration:
                    more = False
                    break
                work = pickle.dumps((function, task))
                worker = next(worker for worker in self._workers if worker.task is None)
                worker.task = begun
                try:
                    worker.connection.send_bytes(work)
                except OSError:
                    raise worker.death() from None
                begun += 1
            if taken in results:
                taken += 1
                yield result_of(results.pop(taken - 1))
            elif taken < begun:
                results.update(self._next_results())

    def _next_results(self) -> Generator[tuple[int, bytes], None, None]:
        """Wait until workers have results, and yield each task's number and outcome. Raises an
        error if a worker died.
        """
        busy = [worker for worker in self._workers if worker.task is not None]
        pipes = {worker.connection for worker in busy}
        # The sentinels are also waited for: a fork by other code may keep the other end of a pipe
        # open.
        ready = set(wait([*pipes, *(worker.process.sentinel for worker in busy)]))
        for worker in busy:
            if worker.connection not in ready and worker.process.sentinel not in ready:
                continue
            assert worker.task is not None
            try:
                if not worker.connection.poll():
                    raise EOFError
                outcome = worker.connection.recv_bytes()
            except (EOFError, OSError):
                raise worker.death() from None
            number, worker.task, worker.proven = worker.task, None, True
            yield number, outcome

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.close(kill=kind is not None)

    def close(self, *, kill: bool = False) -> None:
        """End the workers and wait until they are gone."""
        for worker in self._workers:
            if kill:
                worker.process.kill()  # first, or it reports an error of the pipe
            worker.connection.close()  # this ends an idle worker
        for worker in self._workers:
            worker.end()
            worker.process.close()
        self._workers = []


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Delay ^C until after the ``with`` block. A process that is started in the block never gets
    the ^C.

    That process starts with the signal blocked, so its imports cannot be interrupted.
    """
    resource_tracker.ensure_running()  # starting the tracker would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def how_it_ended(code: int) -> str:
    """How a process ended, in words. Its exit code is negative if a signal ended it."""
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"was killed by {name}"


def _work(connection: Connection, function: object) -> None:
    """The main loop of a worker: one task after another, until the parent closes the pipe."""
    del function  # the function was sent for its imports
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles ^C
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    # If the parent has died, nobody takes the result, and no error is needed.
    with suppress(EOFError, ConnectionError):
        while True:
            work = connection.recv_bytes()
            connection.send_bytes(perform(work))


def _leave_with_parent() -> None:
    """End this worker when its parent ends, even if the parent is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
