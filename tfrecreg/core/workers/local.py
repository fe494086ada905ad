"""The local engine: runs tasks in worker processes on this machine, or in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from itertools import accumulate, chain, islice
from typing import TYPE_CHECKING, TypeVar

from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.workers.interface import WORTH_SECONDS, Engine, call

if TYPE_CHECKING:
    from tfrecreg.core.workers.pool import Pool

T = TypeVar("T")
R = TypeVar("R")


def usable_cores() -> int:
    """Number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class LocalEngine(Engine):
    """Runs tasks in `jobs` worker processes, or in this process if `jobs` is 1.

    Workers are spawned, not forked, because a fork of a process with threads (NumPy's,
    TensorFlow's) may deadlock. So a script with more than one job must keep its code under
    ``if __name__ == "__main__":``, as `multiprocessing` requires.
    """

    jobs = 1

    def __init__(self, jobs: int = 1) -> None:
        if jobs < 1:
            raise UsageError(f"--jobs should be at least 1, found {jobs}")
        self.jobs = jobs
        self._warm: Pool | None = None

    def run_here(self, function: Callable[[], R]) -> R | None:
        return function() if self.jobs == 1 else None

    def for_work(self, costs: Iterable[float]) -> LocalEngine:
        if any(cost > WORTH_SECONDS for cost in accumulate(costs)):
            return self
        return LocalEngine(1)

    def warm(self, function: Callable[[T], R]) -> None:
        if self.jobs > 1 and self._warm is None:
            self._warm = self._pool()
            self._warm.start(self.jobs, function)

    def _pool(self) -> Pool:
        from tfrecreg.core.workers.pool import Pool  # one job does not need multiprocessing

        return Pool(self.jobs)

    def close(self) -> None:
        pool, self._warm = self._warm, None
        if pool is not None:
            pool.close()

    def run(self, function: Callable[[T], R], tasks: Iterable[T]) -> Generator[R, None, None]:
        iterator = iter(tasks)
        # A single task runs in this process, where it is faster. The result is the same.
        first = list(islice(iterator, 2)) if self.jobs > 1 else []
        if len(first) > 1:
            pool, self._warm = self._warm or self._pool(), None
            with pool:
                yield from pool.run(function, chain(first, iterator))
            return
        for task in chain(first, iterator):
            yield call(function, task)
