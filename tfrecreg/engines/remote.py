"""The common part of engines whose workers belong to another library.

Such an engine starts or connects to its workers when they are first needed, because a command that
runs third-party plugins forks before that, and a fork does not survive threads.
"""

from __future__ import annotations

import pickle
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Generic, TypeVar

from tfrecreg import guard
from tfrecreg.engines.handshake import (
    expect_folders,
    expect_terms,
    folders_of,
    is_elsewhere,
    terms,
)
from tfrecreg.engines.interface import WORTH_SECONDS, Engine
from tfrecreg.engines.outcome import packed_error, perform, result_of
from tfrecreg.errors import FailureError, TfrecregError, UsageError

H = TypeVar("H")
R = TypeVar("R")
T = TypeVar("T")

AHEAD = 4
"""Number of tasks per worker that are sent and whose results are not yet taken. More than for local
processes, because a task travels.
"""

RERUN = "run the command again: a build goes on from its finished shards"
"""The hint where workers or their scheduler are lost."""

_ALONE = threading.Lock()
"""Sources and validators need not be thread-safe: a process runs one task at a time."""


def pack(function: Callable[[T], object], task: T) -> bytes:
    """A task, with what its worker has to check first."""
    return pickle.dumps((terms(), folders_of(task), pickle.dumps((function, task))))


def perform_there(work: bytes) -> bytes:
    """In a worker: run what :func:`pack` packed, and pack its outcome. It may run twice.

    Never raises an `Exception`: what this raises is a failure of the engine's library.
    """
    with _ALONE:
        try:
            theirs, folders, inner = pickle.loads(work)
            if is_elsewhere(theirs):
                guard.watch_interrupts(ignored=True)
                expect_terms(theirs)
                expect_folders(folders)
        except Exception as error:
            return packed_error(error)
        return perform(inner)


def greeting() -> bytes:
    """Work that only compares versions."""
    return pack(_nothing, None)


def _nothing(task: None) -> None:
    del task


class RemoteEngine(Engine, Generic[H]):
    """An engine over the workers of another library; `H` is its handle of a task.

    Args:
        jobs: number of workers; None for what the library has.

    Raises:
        UsageError: `jobs` is below 1.
    """

    is_local = False
    name = ""
    """As in ``--engine``."""

    def __init__(self, jobs: int | None = None) -> None:
        if jobs is not None and jobs < 1:
            raise UsageError(
                f"--jobs should be at least 1, found {jobs}",
                hint="omit it to use every worker",
            )
        self._wanted = jobs
        self._is_open = False

    @property
    def jobs(self) -> int:
        """Number of tasks that run at the same time. Connects to the workers.

        Raises:
            FailureError: the workers cannot be started or reached, or their versions differ.
        """
        self._open()
        return max(1, self._slots())

    def for_work(self, costs: Iterable[float], worth: float = WORTH_SECONDS) -> RemoteEngine[H]:  # noqa: ARG002
        return self

    def warm(self, function: Callable[[T], R]) -> None:
        """Connect to the workers, and compare their versions. See :class:`Engine`."""
        del function
        self._open()

    def close(self) -> None:
        """Disconnect, and end workers that this engine started. The engine stays usable."""
        if self._is_open:
            self._is_open = False
            self._disconnect()

    def run(self, function: Callable[[T], R], tasks: Iterable[T]) -> Generator[R, None, None]:
        """Results in the order of the tasks. See :class:`Engine`."""
        self._open()
        most = self._ahead()
        sent: deque[H] = deque()
        try:
            for task in tasks:
                sent.append(self._submit(pack(function, task)))
                if len(sent) >= most:
                    yield result_of(self._result(sent.popleft()))
            while sent:
                yield result_of(self._result(sent.popleft()))
        finally:
            if sent:
                self._cancel(sent)

    def _open(self) -> None:
        if self._is_open:
            return
        self._is_open = True
        try:
            self._connect()
            self._greet()
        except BaseException:
            self.close()
            raise

    def _greet(self) -> None:
        """Compare the versions of workers before work starts."""
        sent = [self._submit(greeting()) for _ in range(max(1, self._slots()))]
        for handle in sent:
            result_of(self._result(handle))

    @abstractmethod
    def _connect(self) -> None:
        """Start or reach the workers, within a bounded time."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Leave workers of others alone, end those of this engine. Also after half a connect."""

    @abstractmethod
    def _slots(self) -> int:
        """Number of workers."""

    def _ahead(self) -> int:
        """Number of tasks that are sent and whose results are not yet taken."""
        return AHEAD * self.jobs

    @abstractmethod
    def _submit(self, work: bytes) -> H:
        """Send work for :func:`perform_there`."""

    @abstractmethod
    def _result(self, handle: H) -> bytes:
        """Wait for an outcome.

        Raises:
            FailureError: a worker died, or the library lost it.
        """

    @abstractmethod
    def _cancel(self, handles: Sequence[H]) -> None:
        """Stop work whose results nobody needs."""


def failed(engine: str, what: str, error: BaseException, *, hint: str = "") -> TfrecregError:
    """The error for an exception that the engine's library raised."""
    if isinstance(error, TfrecregError):
        return error
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("tfrecreg"):
        version = terms().versions["tfrecreg"]
        return FailureError(
            f"a worker of the engine `{engine}` has no tfrecreg {version}: {_line(error)}",
            hint=f"install it in the workers' environment: pip install tfrecreg=={version}",
        )
    return FailureError(f"the engine `{engine}` {what}: {_line(error)}", hint=hint)


def _line(error: BaseException) -> str:
    return guard.one_line(error)


def is_installed(module: str) -> bool:
    """Whether the engine's library is installed. It is not imported."""
    return find_spec(module) is not None


def read_options(kind: type[T], options: Mapping[str, Any], engine: str) -> T:
    """The options of an engine, from values or text.

    Raises:
        UsageError: one is unknown, or a value of another type.
    """
    from tfrecreg.typed_values import parse_options

    return parse_options(
        kind, options, of=engine, hint=f"docs/engines.md lists the options of `{engine}`"
    )
