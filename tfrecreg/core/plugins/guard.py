"""The guard around plugin code: its exceptions and output do no harm.

All calls to a plugin are in a block of :func:`calling`. In it

- only an `Exception` is raised: ``sys.exit()`` and any other `BaseException` of a plugin but a
  `KeyboardInterrupt` become a :class:`Misbehaviour`;
- printed output goes to stderr, because stdout is the result of a command.

Plugins are trusted code: see SECURITY.md.
"""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, TypeVar

from tfrecreg.core.plugins.bundled import OURS
from tfrecreg.core.plugins.entry_points import is_local
from tfrecreg.core.values.errors import (
    MissingExtraError,
    PluginError,
    RefusedError,
    StorageError,
    TfrecregError,
    UsageError,
)
from tfrecreg.core.values.text import safe

T = TypeVar("T")

DEBUG = "TFRECREG_DEBUG"
"""The environment variable that asks for the traceback of every error."""


@dataclass(frozen=True, slots=True)
class PluginId:
    """A plugin as named in messages: its kind, name and distribution. Picklable."""

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
        """The hint for an error in it."""
        if self.is_ours:
            return "a mistake in tfrecreg: please report it"
        fix = "correct" if is_local(self.distribution) else "update or correct"
        return f"{fix} `{safe(self.distribution, limit=80)}`; `{DEBUG}=1` shows the traceback"


class Misbehaviour(Exception):
    """A plugin raised a `BaseException` that is not an `Exception`, which is the cause."""


class _State:
    """The blocks of this process in which output is diverted."""

    diverted: ClassVar[list[Diverted]] = []
    lock = Lock()


# A thread that does not survive a fork may hold the lock.
os.register_at_fork(after_in_child=lambda: setattr(_State, "lock", Lock()))


class Diverted:
    """A block in which printed output goes to stderr, while other threads are in such blocks."""

    __slots__ = ("_out",)

    def __enter__(self) -> None:
        with _State.lock:
            self._out, sys.stdout = sys.stdout, sys.stderr
            _State.diverted.append(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, *rest: object
    ) -> None:
        with _State.lock:
            at = _State.diverted.index(self)
            del _State.diverted[at]
            if at == len(_State.diverted):
                sys.stdout = self._out
            else:  # the block that began next found stderr
                _State.diverted[at]._out = self._out


class calling(Diverted):
    """``with calling(plugin_id, "items"):`` around every call of a plugin's code."""

    __slots__ = ()

    def __init__(self, plugin_id: PluginId, doing: str) -> None:
        del plugin_id, doing

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, *rest: object
    ) -> None:
        super().__exit__(kind, error)
        if error is not None and not isinstance(error, Exception | KeyboardInterrupt):
            raise Misbehaviour from error


_PASSED = (UsageError, MissingExtraError, StorageError)
"""Errors of plugins that are shown to the user unchanged."""
_PASSED_BY = {"exporter": (*_PASSED, RefusedError)}
"""The same for kinds of plugins that have more: an exporter reads shards, which may be damaged."""


def called(plugin_id: PluginId, name: str, function: Callable[..., T], *arguments: Any) -> T:
    """The result of a plugin's method; exceptions become errors by :func:`failure`."""
    try:
        with calling(plugin_id, name):
            return function(*arguments)
    except Exception as error:
        raise failure(plugin_id, f"failed in `{name}`", error, function) from error


def wrong_answer(plugin_id: PluginId, name: str, answer: object, expected: str) -> PluginError:
    """The error for a method that returned something else than `expected`, in words."""
    shown = safe(repr(answer), limit=100)
    message = f"{plugin_id} answered `{name}` with {shown}, expected {expected}"
    return PluginError(message, hint=plugin_id.hint)


def failure(
    plugin_id: PluginId, what: str, error: BaseException, *of: object, hint: str = ""
) -> TfrecregError:
    """The error to raise after a plugin raised `error`."""
    passed = _PASSED_BY.get(plugin_id.kind, _PASSED)
    if isinstance(error, TfrecregError) and (is_told(error, passed) or plugin_id.is_ours):
        return error
    told = f"{plugin_id} {what}: {reason_of(error, *of)}"
    return PluginError(told, hint=hint or plugin_id.hint)


def is_told(error: BaseException, passed: tuple[type[TfrecregError], ...] = _PASSED) -> bool:
    """Whether a plugin may raise this error with a message for the user."""
    if not isinstance(error, passed) or type(error).__module__ != TfrecregError.__module__:
        return False
    words: tuple[object, ...] = (error.message, error.hint)
    return all(isinstance(each, str) and each.isprintable() for each in words)


def reason_of(error: BaseException, *of: object) -> str:
    """One line: our own message, or ``ZeroDivisionError: division by zero (faces.py, line 12)``.

    The location replaces the traceback. It is of the plugin's own line, also where a function that
    it calls raises; if none raised, the :func:`place_of` what is given.
    """
    if isinstance(error, Misbehaviour) and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, TfrecregError):
        # By convention it is one line, and escaped; a plugin may not follow that.
        message = str(error.message)
        shown = message if message.isprintable() else safe(message, limit=500)
        return f"{shown}{place_of(*of)}"
    told = one_line(error)
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or isinstance(error, SyntaxError):
        return told
    own = [each for each in frames if _is_of_plugin(each.filename)]
    place, is_ours = place_of(*of), frames[-1].filename.startswith(_OURS)
    if not own and (place or not is_ours):
        return f"{told}{place}"
    near = [each for each in own if "-packages" not in each.filename]  # as an author has them
    frame = (near or own or frames)[-1]
    # A value that a function of ours refuses: the line has the feature's name, the error has not.
    line = f": `{safe(frame.line or '', limit=200)}`" * (frame is not frames[-1] and is_ours)
    return f"{told} ({safe(Path(frame.filename).name)}, line {frame.lineno}{line})"


def place_of(*things: Any) -> str:
    """`` (faces.py, line 12)``: where the first of some functions, classes and generators whose
    place is known begins, or stands; empty if there is none of a plugin.
    """
    for thing in things:
        frame = thing.gi_frame if inspect.isgenerator(thing) else None
        with suppress(OSError, TypeError):
            file = inspect.getfile(frame or thing)
            lines, line = ([], frame.f_lineno - 1) if frame else inspect.findsource(thing)
            line += next((at for at, text in enumerate(lines[line:]) if text.strip()[:1] != "@"), 0)
            if _is_of_plugin(file):
                return f" ({safe(Path(file).name)}, line {line + 1})"
    return ""


_OURS = str(Path(__file__).parents[2]) + os.sep
_STANDARD = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120


def _is_of_plugin(filename: str) -> bool:
    if filename.startswith((_OURS, "<frozen ", "<string>")):
        return False
    return not filename.startswith(_STANDARD) or "-packages" in filename


E = TypeVar("E", bound=BaseException)


def traced(error: E) -> E:
    """The error, which becomes one line: its traceback goes to stderr if `TFRECREG_DEBUG` asks for
    it, with the errors that caused it, also those that messages leave out.
    """
    if os.environ.get(DEBUG, "") in ("", "0"):
        return error
    each: BaseException | None = error
    seen: set[int] = set()
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        if each.__cause__ is None:
            each.__suppress_context__ = False  # of a `raise ... from None`
        each = each.__cause__ or each.__context__
    lines = "".join(traceback.format_exception(error)).splitlines()
    shown = (line if line.isprintable() else safe(line, limit=10_000) for line in lines)
    with suppress(OSError):  # stderr may be full
        sys.stderr.write("".join(f"{line}\n" for line in shown))
    return error


def one_line(error: BaseException) -> str:
    """``ModuleNotFoundError: No module named 'PIL'``, escaped."""
    if isinstance(error, Misbehaviour) and error.__cause__ is not None:
        error = error.__cause__
    name = type(error).__name__
    try:
        lines = str(error).strip().splitlines()
    except BaseException:  # a plugin's own error, whose conversion to text fails
        lines = []
    return safe(f"{name}: {lines[0]}" if lines else name, limit=500)
