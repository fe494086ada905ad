"""The base class of engines whose workers belong to another library.

An engine sends work as bytes and returns bytes::

    class Threads(RemoteEngine["Future[bytes]"]):
        def connect(self) -> None:
            self._pool = ThreadPoolExecutor(self.workers())

        def disconnect(self) -> None:
            self._pool.shutdown()

        def workers(self) -> int:
            return self.request.jobs or usable_cores()

        def submit(self, work: bytes) -> Future[bytes]:
            return self._pool.submit(perform_work, work)

        def result(self, handle: Future[bytes]) -> bytes:
            return handle.result()

        def cancel(self, handles: Sequence[Future[bytes]]) -> None:
            for handle in handles:
                handle.cancel()

It comes in through a :class:`~tfrecreg.api.EngineRecord` of the hook ``tfrecreg_engines``.
"""

from __future__ import annotations

import pickle
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, ClassVar, Generic, TypeVar

from tfrecreg.core.plugins import guard
from tfrecreg.core.values.errors import FailureError, TfrecregError, UsageError, install_command
from tfrecreg.core.values.text import ExtensionPoint, safe
from tfrecreg.core.values.typed_values import NoOptions
from tfrecreg.core.workers.handshake import (
    expect_folders,
    expect_terms,
    folders_of,
    is_elsewhere,
    terms,
)
from tfrecreg.core.workers.interface import WORTH_SECONDS, Engine, EngineRequest
from tfrecreg.core.workers.outcome import packed_error, perform, result_of

H = TypeVar("H")
R = TypeVar("R")
T = TypeVar("T")

AHEAD = 4
"""Number of tasks per worker that are sent and whose results are not yet taken. More than for local
processes, because a task travels.
"""

_ALONE = threading.Lock()
"""Sources and validators need not be thread-safe: a process runs one task at a time."""


def pack(function: Callable[[T], object], task: T) -> bytes:
    """A task, with the terms that its worker checks first."""
    return pickle.dumps((terms(), folders_of(task), pickle.dumps((function, task))))


def perform_work(work: bytes) -> bytes:
    """In a worker: run what :func:`pack` packed, and pack its outcome. It may run twice.

    Never raises an `Exception`: what this raises is a failure of the engine's library.
    """
    with _ALONE:
        try:
            theirs, folders, inner = pickle.loads(work)
            if is_elsewhere(theirs):
                expect_terms(theirs)
                expect_folders(folders)
        except Exception as error:
            return packed_error(error)
        return perform(inner)


def _nothing(task: None) -> None:
    del task


class RemoteEngine(ExtensionPoint, Engine, Generic[H]):
    """An engine over the workers of another library; `H` is its handle of a piece of work.

    A subclass defines :meth:`connect`, :meth:`disconnect`, :meth:`workers`, :meth:`submit`,
    :meth:`result` and :meth:`cancel`. They raise a UsageError for errors of the user, and otherwise
    the result of :func:`engine_failed`.

    It starts or connects to its workers when they are first needed, because a command that runs
    plugins of others forks before that, and a fork does not survive threads.

    Args:
        request: of the user.

    Raises:
        UsageError: fewer than 1 job are asked for.
    """

    Options: ClassVar[type[Any]] = NoOptions
    """A frozen dataclass whose fields type ``--engine-option K=V``."""
    takes_any_option: ClassVar[bool] = False
    """Whether options that `Options` does not have are taken, too: as ``request.others``."""
    RERUN: ClassVar[str] = "run the command again: a build goes on from its finished shards"
    """The hint where workers or their scheduler are lost."""

    is_local = False

    def __init__(self, request: EngineRequest) -> None:
        if request.jobs is not None and request.jobs < 1:
            raise UsageError(
                f"--jobs should be at least 1, found {request.jobs}",
                hint="omit it to use every worker",
            )
        self.request = request
        self._is_open = False

    @abstractmethod
    def connect(self) -> None:
        """Start or reach the workers, within a bounded time."""

    @abstractmethod
    def disconnect(self) -> None:
        """End the workers of this engine only. Also called after an incomplete :meth:`connect`."""

    @abstractmethod
    def workers(self) -> int:
        """Number of workers. Called when they are connected."""

    @abstractmethod
    def submit(self, work: bytes) -> H:
        """Send work to a worker, which calls :func:`perform_work` with it, and do not wait.

        The library may do it twice, where a worker was lost.
        """

    @abstractmethod
    def result(self, handle: H) -> bytes:
        """Wait for the result of :func:`perform_work`.

        Raises:
            FailureError: a worker died, or the library lost it.
        """

    @abstractmethod
    def cancel(self, handles: Sequence[H]) -> None:
        """Stop work whose results are not needed, and wait for work that cannot be stopped."""

    def ahead(self) -> int:
        """Number of tasks that are sent and whose results are not yet taken."""
        return AHEAD * self.jobs

    def greet(self, work: bytes) -> Iterable[bytes]:
        """The outcomes of `work`, which compares versions, on each worker, before tasks are sent.

        Optional: by default it is submitted once for each worker. Every task compares them, too.
        """
        handles = [self.submit(work) for _ in range(max(1, self.workers()))]
        return [self.result(handle) for handle in handles]

    @staticmethod
    def interrupts_held() -> AbstractContextManager[None]:
        """Delay ^C until after the block; it does not reach a process that is started in it."""
        from tfrecreg.core.workers.pool import interrupts_held  # with multiprocessing

        return interrupts_held()

    @property
    def jobs(self) -> int:
        """Number of tasks that run at the same time. Connects to the workers.

        Raises:
            FailureError: the workers cannot be started or reached, or their versions differ.
        """
        self._open()
        with self._asking("workers"):
            return max(1, self.workers())

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
            with self._asking("disconnect"):
                self.disconnect()

    def run(self, function: Callable[[T], R], tasks: Iterable[T]) -> Generator[R, None, None]:
        """Results in the order of the tasks. See :class:`Engine`."""
        self._open()
        with self._asking("ahead"):
            most = self.ahead()
        sent: deque[H] = deque()
        try:
            for task in tasks:
                work = pack(function, task)
                with self._asking("submit"):
                    sent.append(self.submit(work))
                if len(sent) >= most:
                    yield self._next(sent)
            while sent:
                yield self._next(sent)
        finally:
            if sent:
                with self._asking("cancel"):
                    self.cancel(sent)

    def _next(self, sent: deque[H]) -> Any:
        handle = sent.popleft()
        with self._asking("result"):
            outcome = self.result(handle)
        return result_of(outcome)

    def _open(self) -> None:
        if self._is_open:
            return
        self._is_open = True
        try:
            with self._asking("connect"), guard.Diverted():
                self.connect()
            with self._asking("greet"):
                outcomes = list(self.greet(pack(_nothing, None)))
            for outcome in outcomes:
                result_of(outcome)
        except BaseException:
            with suppress(Exception):  # an error after an incomplete connect is not the reason
                self.close()
            raise

    @contextmanager
    def _asking(self, method: str) -> Iterator[None]:
        """Around a method of the subclass: an exception of it names the plugin.

        The time limit of plugins does not hold: the method waits for work.
        """
        try:
            yield
        except (Exception, SystemExit) as error:
            if isinstance(error, TfrecregError) or self.request.plugin_id.is_ours:
                raise
            raise guard.failure(self.request.plugin_id, f"failed in `{method}`", error) from error


def engine_failed(engine: str, what: str, error: BaseException, *, hint: str = "") -> TfrecregError:
    """The error to raise for an exception of an engine's library; one of tfrecreg is returned
    itself.

    Args:
        engine: its name.
        what: the words after the name: ``lost a task``.
        error: the exception.
        hint: the next step.
    """
    if isinstance(error, TfrecregError):
        return error
    name, line = safe(engine), guard.one_line(error)
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("tfrecreg"):
        version = terms().versions["tfrecreg"]
        return FailureError(
            f"a worker of the engine `{name}` has no tfrecreg {version}: {line}",
            hint=f"install it in the workers' environment: {install_command(version=version)}",
        )
    return FailureError(f"the engine `{name}` {what}: {line}", hint=hint)
