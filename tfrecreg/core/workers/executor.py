"""The base class of engines whose workers belong to another library.

A plugin announces a subclass with an :class:`~tfrecreg.api.EngineRecord` from the hook
``tfrecreg_engines``.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
import sys
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from zlib import ZLIB_RUNTIME_VERSION

from tfrecreg._version import __version__
from tfrecreg.core.plugins.code_digest import code_of
from tfrecreg.core.plugins.entry_points import Broken, identity, with_plugins
from tfrecreg.core.plugins.guard import Diverted, one_line
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.errors import FailureError, TfrecregError, UsageError
from tfrecreg.core.values.text import ExtensionPoint
from tfrecreg.core.values.typed_values import NoOptions
from tfrecreg.core.workers.interface import Engine, EngineRequest, packed_error, perform, result_of
from tfrecreg.core.workers.local import usable_cores

R = TypeVar("R")
T = TypeVar("T")

AHEAD = 4
"""Number of tasks per worker that are sent before the next result is taken. It is higher than for
local processes, because sending a task takes time.
"""
_ERRORS = (Exception, SystemExit, asyncio.CancelledError)
"""The errors that a library may raise if it fails."""
_ALONE = threading.Lock()
"""A process holds this lock while it runs a task, because sources and validators need not be
thread-safe.
"""


@cache
def versions() -> dict[str, str]:
    """The versions, by name, of Python, zlib, tfrecreg, and distributions with plugins. A worker
    must have the same versions as the command. If code can change while its version stays the
    same, a digest of the code is appended to the version.
    """
    found = {"tfrecreg": __version__}
    for distribution in with_plugins():
        with suppress(Broken):  # the discovery of plugins reports the error
            found.update([identity(distribution)])
    return {
        "Python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "zlib": ZLIB_RUNTIME_VERSION,
        **{name: f"{found[name]} {code_of(name)[:16]}".rstrip() for name in found},
    }


def pack(function: Callable[[T], object], task: T) -> bytes:
    """Pickle a task, and add the versions and folders that the worker checks first."""
    return pickle.dumps((versions(), sorted(_folders(task)), pickle.dumps((function, task))))


def _folders(value: object) -> set[str]:
    """The existing folders of this machine that a task reads or writes."""
    if isinstance(value, Readable):
        folder = value.local_path()
        return {folder} if folder is not None and Path(folder).is_dir() else set()
    parts = fields(value) if is_dataclass(value) else ()
    return set().union(*(_folders(getattr(value, part.name, None)) for part in parts))


def perform_work(work: bytes) -> bytes:
    """In a worker: run a task from :func:`pack`; pack its outcome. A library may run a task twice.

    This function never raises an `Exception`. So an exception in a future means that the
    engine's library failed.
    """
    with _ALONE:
        try:
            theirs, folders, inner = pickle.loads(work)
            _expect_same(theirs, folders)
        except Exception as error:
            return packed_error(error)
        return perform(inner)


def _expect_same(theirs: dict[str, str], folders: list[str]) -> None:
    """Raise an error if this worker lacks one of the folders, or if its versions differ from those
    in the command.

    Distributions that exist only in the worker are not compared, because they are not used.
    """
    worker, mine = f"the worker on `{socket.gethostname()}`", versions()
    for name, version in theirs.items():
        if mine.get(name) != version:
            found = f"{name} {mine[name]}" if name in mine else f"no {name}"
            raise FailureError(f"{worker} has {found}, but the command has {version}")
    for folder in folders:
        if not Path(folder).is_dir():
            raise FailureError(
                f"{worker} does not see the folder `{folder}`",
                hint="workers need the registry, the data and the raw data under the same paths",
            )


class ExecutorEngine(ExtensionPoint, Engine):
    """An engine whose workers belong to another library. A subclass defines :meth:`executor`.

    The engine starts its workers, or connects to them, when they are first needed. If the library
    raises an error, :meth:`failure` converts it to an error of tfrecreg.

    Args:
        request: the user's request.

    Raises:
        UsageError: fewer than 1 job is requested.
    """

    Options: ClassVar[type[Any]] = NoOptions
    """A frozen dataclass. Its fields are the names and types of ``--engine-option K=V``."""
    takes_any_option: ClassVar[bool] = False
    """Whether the engine accepts options that `Options` lacks. They are in ``request.others``."""
    interval: ClassVar[float] = 2.0
    """Seconds between two calls of :meth:`watch`."""
    _lost: ClassVar[tuple[type[Exception], ...]] = ()
    """The library's errors after which a task is sent once more, because only its result is lost.
    """

    def __init__(self, request: EngineRequest) -> None:
        if request.jobs is not None and request.jobs < 1:
            raise UsageError(f"--jobs should be at least 1, found {request.jobs}")
        self.request = request
        self._connection = ExitStack()
        self._executor: Executor | None = None

    @abstractmethod
    def executor(self) -> AbstractContextManager[Executor]:
        """Start or reach the workers within a bounded time. When the returned context ends, it ends
        the workers that this engine started. An `Executor` is such a context and can be returned.
        """

    def workers(self) -> int:
        """Number of workers if `--jobs` is not given. Called when the workers are connected."""
        own = getattr(self._executor, "_max_workers", None)
        return own if isinstance(own, int) else usable_cores()

    def ahead(self) -> int:
        """Number of tasks that are sent before the next result is taken."""
        return AHEAD * self.jobs

    def watch(self) -> None:
        """Called while the engine waits for a result. Raises an error if the result will never
        come.
        """

    def cancel(self, futures: Sequence[Future[bytes]]) -> None:
        """Stop tasks whose results are not needed. Wait for running tasks, because they write
        files.
        """
        wait([future for future in futures if not future.cancel()])

    def failure(self, error: BaseException) -> TfrecregError:
        """The error to raise if the library raised `error` or lost a task."""
        return FailureError(
            f"{self.request.plugin_id} failed: {one_line(error)}",
            hint="run the command again: a build continues after its finished shards",
        )

    @property
    def jobs(self) -> int:
        """Number of tasks that run at the same time. Connects to the workers.

        Raises:
            FailureError: the workers cannot be started or reached.
        """
        self._open()
        with self._asking():
            return max(1, self.request.jobs or self.workers())

    def warm(self, function: Callable[[T], R]) -> None:
        """Connect to the workers. See :class:`Engine`."""
        del function
        self._open()

    def close(self) -> None:
        """Disconnect, and end the workers that this engine started. The engine stays usable."""
        self._executor = None
        with suppress(*_ERRORS):  # the work has ended, and a scheduler may be lost
            self._connection.close()

    def run(self, function: Callable[[T], R], tasks: Iterable[T]) -> Generator[R, None, None]:
        """Results in the order of the tasks. See :class:`Engine`."""
        executor = self._open()
        most = self.ahead()
        sent: deque[tuple[bytes, Future[bytes]]] = deque()
        try:
            for task in tasks:
                work = pack(function, task)
                with self._asking():
                    sent.append((work, executor.submit(perform_work, work)))
                if len(sent) >= most:
                    yield self._next(sent)
            while sent:
                yield self._next(sent)
        finally:
            with self._asking():
                self.cancel([future for _, future in sent])

    def _next(self, sent: deque[tuple[bytes, Future[bytes]]]) -> Any:
        work, future = sent[0]
        with self._asking():
            try:
                outcome = self._awaited(future)
            except self._lost:
                sent[0] = work, self._open().submit(perform_work, work)
                outcome = self._awaited(sent[0][1])
        sent.popleft()
        return result_of(outcome)

    def _awaited(self, future: Future[bytes]) -> bytes:
        while not wait([future], self.interval).done:
            self.watch()
        return future.result()

    def _open(self) -> Executor:
        if self._executor is None:
            with self._asking(), Diverted():
                self._executor = self._connection.enter_context(self.executor())
        return self._executor

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Pass an error of the subclass or its library to :meth:`failure`. Raise the result."""
        try:
            yield
        except TfrecregError:
            raise
        except _ERRORS as error:
            raise self.failure(error) from error
