"""What an engine is, and how each of them runs a task."""

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
    """Runs one function over many tasks, somewhere.

    Whoever makes an engine closes it. Operations run an engine that they are given, and leave it
    open for the next one.
    """

    @property
    def jobs(self) -> int:
        """How many tasks it runs at the same time."""

    def warm(self, function: Callable[[T], R]) -> None:
        """Get ready to run `function` over many tasks while the caller still finds out which.

        A favour that costs what starting up costs: :meth:`run` does the same without it, later.

        Raises:
            FailureError: no worker could be started.
        """

    def close(self) -> None:
        """End the workers that :meth:`warm` started and nothing ran on. The engine stays usable."""

    def run(self, function: Callable[[T], R], tasks: Iterable[T]) -> Generator[R, None, None]:
        """`function` of every task, in the order of the tasks.

        Closing the generator before its end stops the work: what runs is ended, what waits is
        never begun. What `function` prints goes to stderr, for stdout is the result of a command.

        Args:
            function: importable by name (workers import it), pure, returning something small.
            tasks: picklable; taken as they are needed, never all at once.

        Raises:
            FailureError: a worker died.
            TfrecregError: whatever `function` raised, as it raised it, message and hint.
        """


def call(function: Callable[[T], R], task: T) -> R:
    """`function` of `task`; what it prints goes to stderr.

    Raises:
        FailureError: it tried to end the program.
        BaseException: whatever else `function` raised.
    """
    with redirect_stdout(sys.stderr):
        try:
            return function(task)
        except SystemExit as error:
            raise FailureError(
                f"a task tried to end the program: exit({safe(repr(error.code))})",
                hint="a plugin did: `tfrecreg plugins list` lists the plugins",
            ) from error
