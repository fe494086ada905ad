"""The engine protocol, and the call of a task that all engines share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import redirect_stdout
from typing import Protocol, TypeVar

from tfrecreg.errors import FailureError
from tfrecreg.text import safe

T = TypeVar("T")
R = TypeVar("R")


class Engine(Protocol):
    """Runs one function over many tasks.

    The creator of an engine closes it. Operations use the engine that they get, and leave it open
    for the next operation.
    """

    @property
    def jobs(self) -> int:
        """Number of tasks that run at the same time."""

    @property
    def is_local(self) -> bool:
        """Whether tasks run on this machine, where they see the folders of the caller."""

    def for_work(self, costs: Iterable[float], worth: float) -> Engine:
        """The engine itself, or this very process for work so small that local workers do not pay.

        Workers elsewhere were asked for by name: they get any work.

        Args:
            costs: of the tasks, in any unit; only as many are taken as decide it.
            worth: their sum above which workers pay.
        """

    def warm(self, function: Callable[[T], R]) -> None:
        """Prepare to run `function` over many tasks while the caller still determines them.

        Optional: otherwise :meth:`run` starts the workers later.

        Raises:
            FailureError: a worker could not be started.
        """

    def close(self) -> None:
        """End the workers that :meth:`warm` started and that did not get tasks. The engine stays
        usable.
        """

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


def call(function: Callable[[T], R], task: T) -> R:
    """The result of `function` for `task`; printed output goes to stderr.

    Raises:
        FailureError: it tried to end the program.
        BaseException: any other exception of `function`.
    """
    with redirect_stdout(sys.stderr):
        try:
            return function(task)
        except SystemExit as error:
            raise FailureError(
                f"a task tried to end the program: exit({safe(repr(error.code))})",
                hint="a plugin did: `tfrecreg plugins list` lists the plugins",
            ) from error
