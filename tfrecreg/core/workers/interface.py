"""The engine, the call of a task that all engines share, and its outcome as bytes."""

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
"""Work of this process from which on worker processes pay: they take about a third of that to
start.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """The user's choice of an engine, with its options."""

    name: str
    """As in ``--engine``, for messages: ``futures:loky:get_reusable_executor``."""
    argument: str
    """The text after the engine's name and a colon: ``loky:get_reusable_executor``."""
    jobs: int | None
    """Number of workers; None for the library's default."""
    options: Any
    """An object of the engine's `Options`."""
    others: Mapping[str, Any]
    """Options that `Options` does not have, as text or as values of Python."""
    plugin_id: PluginId
    """The plugin, for messages."""


class Engine(ABC):
    """Runs one function over many tasks.

    The creator of an engine closes it. Operations use the engine that they get, and leave it open
    for the next operation.
    """

    @property
    @abstractmethod
    def jobs(self) -> int:
        """Number of tasks that run at the same time."""

    @property
    @abstractmethod
    def is_local(self) -> bool:
        """Whether tasks run on this machine, where they see the folders of the caller."""

    def for_work(self, costs: Iterable[float], worth: float = WORTH_SECONDS) -> Engine:  # noqa: ARG002
        """The engine itself, or this very process for work so small that local workers do not pay.

        Workers on other machines were named by the user, so they get any work.

        Args:
            costs: of the tasks, in seconds of one process, or in the unit of `worth`; only as many
                are taken as decide it.
            worth: their sum above which workers pay.
        """
        return self

    @abstractmethod
    def warm(self, function: Callable[[T], R]) -> None:
        """Prepare to run `function` over many tasks while the caller still determines them.

        Optional: otherwise :meth:`run` starts the workers later.

        Raises:
            FailureError: a worker could not be started.
        """

    @abstractmethod
    def close(self) -> None:
        """End the workers that :meth:`warm` started and that did not get tasks. The engine stays
        usable.
        """

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    @abstractmethod
    def run(self, function: Callable[[T], R], tasks: Iterable[T]) -> Generator[R, None, None]:
        """The result of `function` for every task, in the order of the tasks.

        Closing the generator before its end stops the work: running tasks are ended, waiting tasks
        are not started. Output that `function` prints goes to stderr, because stdout is the result
        of a command.

        Args:
            function: importable by name (workers import it), pure, returning something small.
            tasks: picklable; taken as they are needed, never all at once.

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
        """All results of :meth:`run`, with progress. Afterwards no worker goes on.

        Args:
            function: as for :meth:`run`.
            tasks: as for :meth:`run`.
            cost: records and bytes that a task and its result stand for.
            label: the activity: "exporting mnist".
            total: number of records of all tasks; 0 if unknown.
            progress: updated for every result.

        Raises:
            TfrecregError: as :meth:`run`.
        """
        sent: deque[T] = deque()

        def sending() -> Iterator[T]:
            for task in tasks:
                sent.append(task)
                yield task

        results: list[R] = []
        # Closed, so that after an interrupt no worker goes on writing.
        with working(progress, label, total), closing(self.run(function, sending())) as found:
            for result in found:
                progress.advance(*cost(sent.popleft(), result))
                results.append(result)
        return results


def call(function: Callable[[T], R], task: T) -> R:
    """The result of `function` for `task`; printed output goes to stderr."""
    with Diverted():
        try:
            return function(task)
        except SystemExit as error:
            raise FailureError(
                f"a task tried to end the program: exit({safe(repr(error.code))})",
                hint="a plugin did: `tfrecreg plugins list` lists the plugins",
            ) from error


class _RemoteError(Exception):
    """The traceback of the worker, as the cause of the exception that it raised."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def perform(work: bytes) -> bytes:
    """In a worker: run a pickled ``(function, task)``, and pack its outcome."""
    try:
        function, task = pickle.loads(work)
        return pickle.dumps((True, call(function, task), "", ""))
    except Exception as error:
        return packed_error(error)


def packed_error(error: Exception) -> bytes:
    """In a worker: an outcome that :func:`result_of` raises."""
    summary = safe("".join(traceback.format_exception_only(type(error), error)).strip())
    trace = "".join(traceback.format_exception(error))
    try:
        packed = pickle.dumps(error)
    except Exception:  # an error that cannot be pickled is sent as text
        packed = b""
    return pickle.dumps((False, packed, summary, trace))


def result_of(outcome: bytes) -> Any:
    """In the parent: the result that :func:`perform` packed."""
    try:
        done, value, summary, trace = pickle.loads(outcome)
    except Exception as error:
        raise FailureError(
            f"the result of a task cannot be unpacked: {type(error).__name__}: {safe(str(error))}",
            hint="`--jobs 1` runs without workers and shows the error",
        ) from error
    if done:
        return value
    try:
        raised: BaseException = pickle.loads(value)
    except Exception:
        raised = FailureError(
            f"a task failed in its worker: {summary}",
            hint="`--jobs 1` runs without workers and shows the error",
        )
    raise raised from _RemoteError(trace)
