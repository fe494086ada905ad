"""Connects to stores with fsspec, repeats failed calls, and writes the error messages.

No other module uses fsspec. Requests are repeated after temporary errors: a cut connection, a
status 503, a timeout. `TFRECREG_REMOTE_ATTEMPTS` (6) limits the number of attempts, and
`TFRECREG_REMOTE_SECONDS` (240) their total time. One attempt takes at most a quarter of that time.

Before a library's message is shown, secrets are removed from it: the queries and credentials of
URLs, and the values of environment variables whose names suggest secrets.

Requests run in daemon threads, so the process can end before they do. :func:`at_once` uses the same
threads as the code that reads ahead.
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
from functools import cache
from queue import SimpleQueue
from threading import Thread
from typing import Any, Literal, TypeVar

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
_MISSING = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
_FINAL = (TfrecregError, TypeError, ValueError, AttributeError, ImportError)
_SECRET_NAME = re.compile(r"SECRET|TOKEN|PASSW|CREDENTIAL|SIGNATURE|ACCESS_KEY|_KEY$", re.I)

T = TypeVar("T")
ErrorKind = Literal["missing", "forbidden", "credentials", "final", "passing"]


def connect(root: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it. fsspec's configuration gives the options."""
    return _connection(os.getpid(), root)


@cache
def _connection(process: int, root: str) -> tuple[Any, str]:
    del process  # file systems of fsspec do not survive a fork
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
        raise FailureError(
            f"`{protocol}://` needs the package `{package or protocol}`, which cannot be imported",
            hint=install_command(package or protocol),
        ) from None
    except ValueError as error:
        raise UsageError(f"`{root}` cannot be used: {_scrubbed(error)}") from None
    except Exception as error:
        raise store_error("open", root, error) from error
    return system, str(path).rstrip("/")


def request(
    action: str, shown: str, system: Any, method: str, *arguments: Any, **options: Any
) -> Any:
    """Call a method of a file system, and repeat the call after a temporary error."""
    return patiently(
        action, shown, lambda timeout: invoke(timeout, system, method, *arguments, **options)
    )


def patiently(action: str, shown: str, function: Callable[[float], T]) -> T:
    """Call `function`, and call it again after a temporary error. Returns its result."""
    attempts, seconds = _limit(_ATTEMPTS, 6), _limit(_SECONDS, 240)
    end = time.monotonic() + seconds
    wait = _FIRST_WAIT
    for attempt in itertools.count(1):
        try:
            return function(seconds / 4)
        except TfrecregError:
            raise
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
        # A frame of fsspec holds the error, and a traceback of the error holds the frame: a cycle
        # that keeps the objects of the callers alive. On Python 3.13, so does that of its cause.
        inner = error.__cause__ or error.__context__
        while inner is not None and inner.__traceback__ is not None:  # causes may be in a circle
            inner.__traceback__ = None
            inner = inner.__cause__ or inner.__context__
        raise error.with_traceback(None) from error.__cause__


def kind_of_error(error: BaseException) -> ErrorKind:
    """Classify a file system's error. A temporary error is ``passing``."""
    error = _first(error)
    status = getattr(error, "status", None)
    name = type(error).__name__
    if isinstance(error, PermissionError) or status in (401, 403):
        return "forbidden"
    if name in _CREDENTIALS:
        return "credentials"
    if error_code(error) == "NoSuchUpload":
        # An upload that ended, although the response was lost: its file may exist or not.
        return "passing"
    if isinstance(error, _MISSING) or status in (404, 410):
        return "missing"
    is_refused = isinstance(status, int) and 400 <= status < 500 and status not in (408, 425, 429)
    if is_refused or isinstance(error, _FINAL) or name == "ParamValidationError":
        return "final"
    return "passing"


def error_code(error: BaseException) -> str:
    """The code of an error that S3 returned, such as ``NoSuchKey``; empty for another error."""
    for each in (error, error.__cause__):  # s3fs raises its own error from that of botocore
        response = getattr(each, "response", None)
        if isinstance(response, dict):
            return str(response.get("Error", {}).get("Code", ""))
    return ""


def _first(error: BaseException) -> BaseException:
    """The underlying error: fsspec reports errors of web servers as missing files."""
    cause = error.__cause__
    is_web = isinstance(cause, TimeoutError) or type(cause).__module__.startswith("aiohttp")
    return cause if cause is not None and is_web and isinstance(error, FileNotFoundError) else error


def store_error(action: str, shown: str, error: BaseException, attempts: int = 1) -> TfrecregError:
    kind = kind_of_error(error)
    if kind == "missing":
        return MissingFileError(f"`{shown}` does not exist")
    if kind in ("forbidden", "credentials"):
        reason = "no credentials were found" if kind == "credentials" else "permission denied"
        return StorageError(
            f"cannot {action} `{shown}`: {reason}",
            hint="credentials come from the environment, such as `AWS_PROFILE`: "
            f"{DOCS}/remote-data.md",
        )
    tried = f" after {attempts} attempts" if attempts > 1 else ""
    return StorageError(
        f"cannot {action} `{shown}`{tried}: {_scrubbed(_first(error))}",
    )


def _scrubbed(error: BaseException) -> str:
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
        raise UsageError(f"`{name}` should be a number above 0, found `{text}`")
    return max(value, 1)


S = TypeVar("S")

AT_ONCE = 16
_LISTEN = 0.5
"""Maximum seconds of one wait. Waits are short, because a signal that arrives just before a wait
does not end the wait.
"""


class DaemonThreads:
    """Threads of this process. They call the submitted functions in order.

    An executor is not used: its threads would keep the process alive until the last request ends.
    """

    def __init__(self, count: int, name: str) -> None:
        self._queue: SimpleQueue[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]]
        self._queue = SimpleQueue()
        for _ in range(count):
            Thread(target=self._work, name=name, daemon=True).start()

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        future: Future[T] = Future()
        self._queue.put((future, function, arguments))
        return future

    def _work(self) -> None:
        while True:
            future, function, arguments = self._queue.get()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function(*arguments))
                except BaseException as error:
                    future.set_exception(error)
            del future, function, arguments  # the variables refer to a block and its reader


def shared_threads(name: str = "tfrecreg-requests", count: int = AT_ONCE) -> DaemonThreads:
    """The threads of this process for independent requests: no request may wait for another that
    uses the same threads.
    """
    return _threads_of(os.getpid(), name, count)


@cache
def _threads_of(process: int, name: str, count: int) -> DaemonThreads:
    del process  # threads do not survive a fork
    return DaemonThreads(count, name)


def awaited(future: Future[T]) -> T:
    """The result of a call, or its exception. An interrupt ends the wait."""
    while not future.done():
        wait([future], _LISTEN)
    return future.result()


def at_once(function: Callable[[S], T], tasks: Iterable[S]) -> Generator[T, None, None]:
    """Yield a function's result for every task, in order. Calls run in parallel.

    Each call sees the context variables of its caller. At most :data:`AT_ONCE` calls run at a time,
    and at most ``2 * AT_ONCE`` calls are submitted at a time. After an error, no further call
    begins, and the error is raised when the running calls have ended. An interrupt does not wait
    for the running calls.
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
