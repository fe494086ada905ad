"""fsspec: connecting to a store, calling it with retries, and the wording of its errors.

The only home of fsspec. Requests are tried again after errors that may pass: a cut connection, a
status 503, a timeout. `TFRECREG_REMOTE_ATTEMPTS` (6) limits how often, and
`TFRECREG_REMOTE_SECONDS` (240) for how long; one attempt takes a quarter of that time at most.

Messages of libraries are shown without URLs' queries and without the values of environment
variables that hold secrets.

Threads for requests to a store, which do not keep a process from ending.

Many independent requests are made by :func:`at_once`, and reading ahead uses the same threads.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, wait
from contextvars import copy_context
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, Literal, TypeVar

from tfrecreg.core.values.errors import (
    FailureError,
    MissingExtraError,
    MissingFileError,
    StorageError,
    TfrecregError,
    UsageError,
    install_command,
)
from tfrecreg.core.values.text import DOCS, safe

_ATTEMPTS = "TFRECREG_REMOTE_ATTEMPTS"
_SECONDS = "TFRECREG_REMOTE_SECONDS"
_FIRST_WAIT = 0.1
_LONGEST_WAIT = 8.0
_CREDENTIALS = frozenset(
    {
        "NoCredentialsError",
        "PartialCredentialsError",
        "DefaultCredentialsError",
        "TokenRetrievalError",
    }
)
_SECRET_NAME = re.compile(r"SECRET|TOKEN|PASSW|CREDENTIAL|SIGNATURE|ACCESS_KEY|_KEY$", re.I)
_connected: dict[tuple[int, str], tuple[Any, str]] = {}

T = TypeVar("T")
ErrorKind = Literal["missing", "forbidden", "credentials", "final", "passing"]


def connect(root: str) -> tuple[Any, str]:
    """The file system of a URL, and its own path. Options are fsspec's."""
    # File systems of fsspec do not survive a fork.
    key = (os.getpid(), root)
    found = _connected.get(key)
    if found is None:
        found = _connected[key] = _connect(root)
    return found


def _connect(root: str) -> tuple[Any, str]:
    protocol = root.partition("://")[0]
    try:
        from fsspec.core import url_to_fs
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "fsspec":
            raise
        raise MissingExtraError("reading URLs", "remote") from None
    try:
        system, path = url_to_fs(root, use_listings_cache=False)
    except ImportError as error:
        cause = error.__cause__ if isinstance(error.__cause__, ImportError) else error
        package = (cause.name or "").partition(".")[0]
        if not isinstance(cause, ModuleNotFoundError) or not package:
            raise FailureError(
                f"the library for `{safe(protocol)}://` cannot be imported: {_scrubbed(cause)}",
                hint="install it again",
            ) from None
        raise FailureError(
            f"`{safe(protocol)}://` needs the package `{safe(package)}`, which is not installed",
            hint=install_command(package),
        ) from None
    except ValueError as error:
        if "not known" not in str(error):
            raise UsageError(
                f"`{safe(root, limit=1000)}` cannot be used: {_scrubbed(error)}",
                hint="`s3://bucket/train-*`",
            ) from None
        raise UsageError(
            f"no file system has the protocol `{safe(protocol)}`",
            hint="fsspec knows `s3`, `gs`, `abfs`, `https`, `memory` and others",
        ) from None
    except Exception as error:
        raise store_error("open", root, error) from error
    return system, str(path).rstrip("/")


def request(
    action: str, shown: str, system: Any, method: str, *arguments: Any, **options: Any
) -> Any:
    """Call a method of a file system; again after an error that may pass."""
    return patiently(
        action, shown, lambda timeout: invoke(timeout, system, method, *arguments, **options)
    )


def patiently(action: str, shown: str, function: Callable[[float], T]) -> T:
    """The result of a function; it is called again after an error that may pass."""
    attempts, seconds = _limit(_ATTEMPTS, 6), _limit(_SECONDS, 240)
    end = time.monotonic() + seconds
    wait = _FIRST_WAIT
    for attempt in itertools.count(1):
        try:
            return function(seconds / 4)
        except Exception as error:
            left = end - time.monotonic()
            if kind_of_error(error) != "passing":
                raise store_error(action, shown, error) from error
            if attempt >= attempts or left <= 0:
                raise store_error(action, shown, error, attempt) from error
        # Half of the wait is random, so that many readers do not retry at once.
        time.sleep(min(left, wait * random.uniform(0.5, 1)))
        wait = min(2 * wait, _LONGEST_WAIT)
    raise AssertionError


def invoke(timeout: float, system: Any, method: str, *arguments: Any, **options: Any) -> Any:
    """Call a method of a file system once. Raises any exception."""
    if not getattr(system, "async_impl", False):
        return getattr(system, method)(*arguments, **options)
    from fsspec.asyn import sync

    function = getattr(system, f"_{method}")
    try:
        return sync(system.loop, function, *arguments, timeout=timeout, **options)
    except BaseException as error:
        # A frame of fsspec holds it and is in its traceback or its cause's: a cycle, with all that
        # callers hold.
        inner = error.__cause__ or error.__context__
        while inner is not None:
            inner.__traceback__ = None
            inner = inner.__cause__ or inner.__context__
        raise error.with_traceback(None) from error.__cause__


def kind_of_error(error: BaseException) -> ErrorKind:
    """Whether an error of a file system is temporary, and its meaning if not."""
    error = _first(error)
    status = getattr(error, "status", None)
    name = type(error).__name__
    if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError):
        return "missing"
    if isinstance(error, PermissionError) or status in (401, 403):
        return "forbidden"
    if name in _CREDENTIALS:
        return "credentials"
    if name == "ParamValidationError":
        return "final"
    if isinstance(error, TfrecregError | TypeError | ValueError | AttributeError | ImportError):
        return "final"
    if status in (404, 410):
        return "missing"
    if isinstance(status, int) and 400 <= status < 500 and status not in (408, 425, 429):
        return "final"
    return "passing"


def _first(error: BaseException) -> BaseException:
    """The error behind one: fsspec calls all missing that a web server did not deliver."""
    cause = error.__cause__
    is_web = isinstance(cause, TimeoutError) or type(cause).__module__.startswith("aiohttp")
    return cause if cause is not None and is_web and isinstance(error, FileNotFoundError) else error


def store_error(action: str, shown: str, error: BaseException, attempts: int = 1) -> TfrecregError:
    """The error for a call that failed."""
    if isinstance(error, TfrecregError):
        return error
    url = safe(shown, limit=1 << 16)
    kind = kind_of_error(error)
    if kind == "missing":
        return MissingFileError(f"`{url}` does not exist", hint="check the name and the bucket")
    if kind in ("forbidden", "credentials"):
        reason = "no credentials were found" if kind == "credentials" else "permission denied"
        return StorageError(
            f"cannot {action} `{url}`: {reason}",
            hint="credentials come from the environment, such as `AWS_PROFILE`: "
            f"{DOCS}/remote-data.md",
        )
    tried = f" after {attempts} attempts" if attempts > 1 else ""
    return StorageError(
        f"cannot {action} `{url}`{tried}: {_scrubbed(_first(error))}",
        hint=f"check the network and the address of the store; `{_ATTEMPTS}` and `{_SECONDS}` "
        "limit the retries"
        if kind == "passing"
        else "check the URL",
    )


def _scrubbed(error: BaseException) -> str:
    """The text of an error of a library, without secrets."""
    name = type(error).__name__
    text = " ".join(str(error).split()) or ("no answer in time" if "Timeout" in name else "")
    for key, value in os.environ.items():
        if len(value) >= 8 and _SECRET_NAME.search(key):
            text = text.replace(value, "…")
    text = re.sub(r"\?[^\s\"'<>)]*", "", text)
    text = re.sub(r"://[^/\s@]*@", "://", text)
    return safe(f"{name}: {text}" if text else name, limit=300)


def _limit(name: str, default: float) -> float:
    text = os.environ.get(name, "")
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < 1e6:
        raise UsageError(
            f"`{name}` should be a number above 0, found `{safe(text)}`",
            hint=f"leave it out for {default:g}",
        )
    return max(value, 1)


S = TypeVar("S")

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
