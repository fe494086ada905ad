"""The interface of engines, and functions that run a task and send its outcome as bytes."""

from __future__ import annotations

import pickle
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

from tfrecreg.core.plugins.guard import Diverted, PluginId
from tfrecreg.core.values.errors import FailureError
from tfrecreg.core.values.progress import SILENT, Progress, working
from tfrecreg.core.values.text import safe

T = TypeVar("T")
R = TypeVar("R")

WORTH_SECONDS = 0.75
"""If one process needs more seconds for some work, local worker processes are faster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """The user's choice of an engine, with its options."""

    name: str
    """The text of ``--engine``, for messages: ``futures:loky:get_reusable_executor``."""
    argument: str
    """The part of `name` after the first colon, for example ``loky:get_reusable_executor``."""
    jobs: int | None
    """Number of workers; None for the library's default."""
    options: Any
    """An object of the engine's `Options`."""
    others: Mapping[str, Any]
    """Options that `Options` lacks, as text or as Python values."""
    plugin_id: PluginId
    """The plugin, for messages."""


class Engine(ABC):
    """Runs one function over many tasks.

    Whoever creates an engine closes it. Operations use the engine that they get, and leave it open
    for the next operation.
    """

    @property
    @abstractmethod
    def jobs(self) -> int:
        """Number of tasks that run at the same time."""

    def run_here(self, function: Callable[[], R]) -> R | None:  # noqa: ARG002 - workers run it
        """Call `function` and return its result if this engine runs tasks in this process. Returns
        None if workers run them.
        """
        return None

    def for_work(self, costs: Iterable[float]) -> Engine:  # noqa: ARG002 - others take any work
        """Choose an engine for this work, usually this engine. If the work is too small for worker
        processes, choose an engine that runs tasks in this process.

        Args:
            costs: the seconds that each task takes in one process. The engine stops reading them
                as soon as it can decide.
        """
        return self

    @abstractmethod
    def warm(self, function: Callable[[T], R]) -> None:
        """Prepare to run `function`. The caller need not know the tasks yet."""

    @abstractmethod
    def close(self) -> None:
        """End the workers that :meth:`warm` started; the engine stays usable."""

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    @abstractmethod
    def run(self, function: Callable[[T], R], tasks: Iterable[T]) -> Generator[R, None, None]:
        """The result of `function` for every task, in the order of the tasks.

        Closing the generator early stops the work: running tasks are ended, waiting tasks are not
        started. What `function` prints goes to stderr, because stdout is for the result of a
        command.

        Args:
            function: a pure function that returns a small result. Workers import it by its name.
            tasks: picklable objects. The engine takes each task only when it needs the task.

        Raises:
            FailureError: a worker died.
            TfrecregError: raised by `function`, with its message and hint.
        """

    def map(
        self,
        function: Callable[[T], R],
        tasks: Iterable[T],
        *,
        cost: Callable[[T, R], tuple[int, int]] = lambda task, result: (0, 0),  # noqa: ARG005
        label: str = "",
        total: int = 0,
        progress: Progress = SILENT,
    ) -> list[R]:
        """All results of :meth:`run`, with progress. When it returns, no worker runs a task.

        Args:
            cost: a function that returns how many records and bytes a task had, for the progress.
            label: a name for the activity, for example "exporting mnist".
            total: number of records in all tasks together; 0 if unknown.
        """
        sent: deque[T] = deque()

        def sending() -> Iterator[T]:
            for task in tasks:
                sent.append(task)
                yield task

        results: list[R] = []
        # The generator is closed, so that no worker continues to write after an interrupt.
        with working(progress, label, total), closing(self.run(function, sending())) as found:
            for result in found:
                progress.advance(*cost(sent.popleft(), result))
                results.append(result)
        return results


def call(function: Callable[[T], R], task: T) -> R:
    """The result of `function` for `task`. What the function prints goes to stderr."""
    with Diverted():
        try:
            return function(task)
        except SystemExit as error:
            raise FailureError(f"a task tried to end the program: exit({error.code!r})") from error


class _RemoteError(Exception):
    """The traceback in a worker, as the cause of the exception that the worker raised."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def perform(work: bytes) -> bytes:
    """In a worker: unpickle a function and a task, run the function, and pack the outcome."""
    try:
        function, task = pickle.loads(work)
        return pickle.dumps((True, call(function, task), "", ""))
    except Exception as error:
        return packed_error(error)


def packed_error(error: Exception) -> bytes:
    """In a worker: pack `error` as an outcome. :func:`result_of` raises it in the parent."""
    summary = safe("".join(traceback.format_exception_only(type(error), error)).strip())
    trace = "".join(traceback.format_exception(error))
    try:
        packed = pickle.dumps(error)
    except Exception:  # an error that cannot be pickled is sent as text
        packed = b""
    return pickle.dumps((False, packed, summary, trace))


def result_of(outcome: bytes) -> Any:
    """In the parent: unpack an outcome of :func:`perform`. Return the result or raise the error."""
    summary = trace = ""
    try:
        done, value, summary, trace = pickle.loads(outcome)
        if done:
            return value
        raised: BaseException = pickle.loads(value)
    except Exception as error:
        what = f"a task failed in its worker: {summary}"
        if not summary:
            what = f"the result of a task cannot be unpacked: {type(error).__name__}: {error}"
        raised = FailureError(what, hint="`--jobs 1` runs without workers and shows the error")
    raise raised from _RemoteError(trace)
