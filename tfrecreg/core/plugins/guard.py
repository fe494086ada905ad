"""Guards calls of plugin code, so that its exceptions and its output do no harm.

Every call of a plugin is in a block of :class:`calling`, which has two effects. First, only an
`Exception` or `KeyboardInterrupt` can leave the block. Any other `BaseException`, for example from
``sys.exit()``, becomes a :class:`Misbehaviour`. Second, printed output goes to stderr, because
stdout is the result of a command.

Plugins are trusted code: see SECURITY.md.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, TextIO, TypeVar

from tfrecreg.core.plugins.bundled import OURS
from tfrecreg.core.plugins.entry_points import is_local
from tfrecreg.core.values.errors import (
    MissingExtraError,
    PluginError,
    RefusedError,
    StorageError,
    TfrecregError,
    UsageError,
    causes,
)
from tfrecreg.core.values.text import safe

T = TypeVar("T")

DEBUG = "TFRECREG_DEBUG"
"""The environment variable that shows the traceback of every error."""


@dataclass(frozen=True, slots=True)
class PluginId:
    """How messages refer to a plugin: by its kind, name and distribution. Picklable."""

    kind: str
    """``source``, ``validator``, or ``plugin`` for an entry point."""
    name: str
    distribution: str = OURS
    version: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether it belongs to this project."""
        return self.distribution == OURS

    def __str__(self) -> str:
        named = f"the {self.kind} `{safe(self.name, limit=60)}`"
        if self.is_ours:
            return named
        return f"{named} of `{safe(self.distribution, limit=80)}` {safe(self.version, limit=40)}"

    @property
    def hint(self) -> str:
        """The hint for an error in this plugin."""
        if self.is_ours:
            return f"this is a mistake in tfrecreg: please report it with the output of `{DEBUG}=1`"
        fix = "correct" if is_local(self.distribution) else "update or correct"
        return f"{fix} `{safe(self.distribution, limit=80)}`; `{DEBUG}=1` shows the traceback"

    def error(self, what: str) -> PluginError:
        """The error for a fault of this plugin."""
        return PluginError(f"{self} {what}", hint=self.hint)


class Misbehaviour(Exception):
    """A plugin raised a `BaseException` that is not an `Exception`. It is the ``__cause__``."""


class _State:
    """How many blocks that divert output are open in this process."""

    blocks = 0
    out: TextIO | None = None
    """stdout outside these blocks."""
    lock = Lock()


# After a fork, a thread that no longer exists may hold the lock.
os.register_at_fork(after_in_child=lambda: setattr(_State, "lock", Lock()))


class Diverted:
    """A block in which printed output goes to stderr. Blocks of several threads may overlap. Stdout
    is restored when all of them have ended.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        with _State.lock:
            if not _State.blocks:
                _State.out, sys.stdout = sys.stdout, sys.stderr
            _State.blocks += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, *rest: object
    ) -> None:
        with _State.lock:
            _State.blocks -= 1
            if not _State.blocks and _State.out is not None:
                sys.stdout = _State.out


class calling(Diverted):
    """A block ``with calling():`` encloses every call of a plugin's code."""

    __slots__ = ()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, *rest: object
    ) -> None:
        super().__exit__(kind, error)
        if error is not None and not isinstance(error, Exception | KeyboardInterrupt):
            raise Misbehaviour from error


_PASSED = (UsageError, MissingExtraError, StorageError)
"""Errors of plugins that are shown to the user unchanged."""
_PASSED_BY = {"exporter": (*_PASSED, RefusedError)}
"""Errors that are shown unchanged, by kind of plugin. Only kinds with more errors than `_PASSED`
are listed. For example, an exporter may read damaged shards."""


@contextmanager
def blaming(plugin_id: PluginId, what: str) -> Iterator[None]:
    """A block like :class:`calling`. Exceptions become errors (:func:`failure`)."""
    try:
        with calling():
            yield
    except Exception as error:
        raise failure(plugin_id, what, error) from error


def called(plugin_id: PluginId, name: str, function: Callable[..., T], *arguments: Any) -> T:
    """Call a plugin's method and return its result. Exceptions become errors (:func:`failure`)."""
    with blaming(plugin_id, f"failed in `{name}`"):
        return function(*arguments)


def failure(plugin_id: PluginId, what: str, error: BaseException) -> TfrecregError:
    """The error to raise after a plugin raised `error`."""
    passed = _PASSED_BY.get(plugin_id.kind, _PASSED)
    if isinstance(error, TfrecregError) and (is_told(error, passed) or plugin_id.is_ours):
        return error
    return plugin_id.error(f"{what}: {reason_of(error)}")


def is_told(error: BaseException, passed: tuple[type[TfrecregError], ...] = _PASSED) -> bool:
    """Whether a plugin's error is shown unchanged. An error of the plugin's own class is never
    shown unchanged, because it could have any exit code.
    """
    return isinstance(error, passed) and type(error).__module__ == TfrecregError.__module__


def reason_of(error: BaseException) -> str:
    """One line: tfrecreg's own message, or ``ZeroDivisionError: division by zero (faces.py, line
    12)``. The line number is in the plugin's code, even if a function that it calls raised the
    error.
    """
    if isinstance(error, TfrecregError):
        return error.message
    told = one_line(error)
    if isinstance(error, Misbehaviour) and error.__cause__ is not None:
        error = error.__cause__
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        each
        for each in frames
        if not each.filename.startswith((_OURS, "<frozen ", "<string>"))
        and (not each.filename.startswith(_STANDARD) or "-packages" in each.filename)
    ]
    if not own or isinstance(error, SyntaxError):
        return told
    near = [each for each in own if "-packages" not in each.filename]  # code that is not installed
    frame = (near or own)[-1]
    return f"{told} ({safe(Path(frame.filename).name)}, line {frame.lineno})"


_OURS = str(Path(__file__).parents[2]) + os.sep
_STANDARD = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120


E = TypeVar("E", bound=BaseException)


def traced(error: E) -> E:
    """Return the same error. The caller shows the error as one line. If `TFRECREG_DEBUG` is set,
    first write the error's traceback to stderr. The traceback includes all causes of the error,
    even causes that messages omit.
    """
    if os.environ.get(DEBUG, "") in ("", "0"):
        return error
    for each in causes(error):
        if each.__cause__ is None:
            each.__suppress_context__ = False  # set by `raise ... from None`
    lines = "".join(traceback.format_exception(error)).splitlines()
    shown = (line if line.isprintable() else safe(line, limit=10_000) for line in lines)
    with suppress(OSError):  # stderr may be full
        sys.stderr.write("".join(f"{line}\n" for line in shown))
    return error


def one_line(error: BaseException) -> str:
    """``ModuleNotFoundError: No module named 'PIL'``, escaped."""
    if isinstance(error, Misbehaviour) and error.__cause__ is not None:
        error = error.__cause__
    name, lines = type(error).__name__, str(error).strip().splitlines()
    return safe(f"{name}: {lines[0]}" if lines else name, limit=500)
