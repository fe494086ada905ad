"""The guard around plugin code: its exceptions, output and exits do no harm.

All calls to a plugin are in a block of :func:`calling`. In it

- only an `Exception` is raised: ``sys.exit()``, a `KeyboardInterrupt` that the user did not type
  and any other `BaseException` of a plugin become a :class:`Misbehaviour`;
- printed output goes to stderr, because stdout is the result of a command;
- the process records whose code is running, in a :class:`CallSlot`, so that another process that
  waits for it can report which plugin ended it or hangs.

Calls of the bundled plugins are not recorded: these do not end processes, and some are called for
every record.
"""

from __future__ import annotations

import inspect
import math
import os
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from types import FrameType
from typing import Any, ClassVar, TypeVar

from tfrecreg.bundled import OURS
from tfrecreg.entry_points import is_local
from tfrecreg.errors import (
    FailureError,
    MissingExtraError,
    PluginError,
    RefusedError,
    StorageError,
    TfrecregError,
    UsageError,
)
from tfrecreg.text import safe

T = TypeVar("T")

TIMEOUT = "TFRECREG_PLUGIN_TIMEOUT"
"""The environment variable for the time limit of one call, in seconds."""

DEBUG = "TFRECREG_DEBUG"
"""The environment variable that asks for the traceback of every error."""

_DEFAULT_SECONDS = 600.0
_AWAY = 5.0
"""Seconds between two checks above which this process is assumed to have been stopped."""


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


class CallSlot:
    """Records whose code a process runs, in memory that another process reads.

    Args:
        memory: a writable buffer of :attr:`SIZE` zero bytes that both processes share.
    """

    SIZE = 512
    _HEAD = struct.Struct("<dHB")
    """Time of the call (0 for none), size of the text in bytes, whether there was an interrupt."""

    def __init__(self, memory: Any) -> None:
        self._view = memoryview(memory).cast("B")
        self._now: tuple[float, bytes] = (0.0, b"")
        self._interrupted = False

    def enter(self, text: bytes) -> tuple[float, bytes]:
        """Record a call; the result is the argument for :meth:`leave`."""
        before = self._now
        self._write((time.monotonic(), text[: self.SIZE - self._HEAD.size]))
        return before

    def leave(self, before: tuple[float, bytes]) -> None:
        """Record the return from a call."""
        self._write(before)

    def interrupt(self) -> None:
        """Record that this process was interrupted."""
        self._interrupted = True
        self._write(self._now)

    def _write(self, now: tuple[float, bytes]) -> None:
        self._now = since, text = now
        size = self._HEAD.size
        self._view[size : size + len(text)] = text
        self._HEAD.pack_into(self._view, 0, since, len(text), self._interrupted)

    def read(self) -> tuple[str, str, float] | None:
        """The plugin whose code the process runs, the method, and the seconds since the call; None
        if there is no call.
        """
        since, length, _ = self._HEAD.unpack_from(self._view)
        if not since:
            return None
        size = self._HEAD.size
        text = bytes(self._view[size : size + length]).decode("utf-8", "replace")
        who, _, doing = text.partition("\t")
        return who, doing, time.monotonic() - since

    @property
    def interrupted(self) -> bool:
        """Whether the process was interrupted."""
        return bool(self._HEAD.unpack_from(self._view)[2])


class _State:
    """The state of this process."""

    slot: CallSlot | None = None
    watching = False
    """Whether this process detects all interrupts by the user."""
    interrupted = False
    on_third_party: Callable[[Sequence[PluginId]], None] | None = None
    searched = False
    """Whether this process has searched for installed plugins."""
    diverted: ClassVar[list[Diverted]] = []
    lock = Lock()


def note_in(slot: CallSlot) -> None:
    """Record calls of this process in `slot` from now on."""
    _State.slot = slot


def watch_interrupts(*, ignored: bool = False) -> None:
    """Distinguish interrupts by the user from those that a plugin raises, from now on.

    Args:
        ignored: whether this process ignores the user's interrupts: then every one comes from a
            plugin.
    """
    if not ignored:
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            return  # another handler, or ignored by the parent process
        signal.signal(signal.SIGINT, _interrupt)
    _State.watching = True


def _interrupt(number: int, frame: FrameType | None) -> None:
    _State.interrupted = True
    if _State.slot is not None:
        _State.slot.interrupt()
    signal.default_int_handler(number, frame)


def on_third_party(function: Callable[[Sequence[PluginId]], None]) -> None:
    """Have `function` called once, before anything of other distributions is imported."""
    _State.on_third_party = function


def announce_third_party(plugin_ids: Sequence[PluginId]) -> None:
    """Call the function of :func:`on_third_party` before third-party plugins are imported."""
    _State.searched = True
    if not plugin_ids:
        return  # local ones may follow
    function, _State.on_third_party = _State.on_third_party, None
    if function is not None:
        function(plugin_ids)


def may_import() -> bool:
    """Whether plugins can be imported now: no command has to start again under supervision."""
    return _State.searched or _State.on_third_party is None


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
    """``with calling(plugin_id, "items"):`` around every call of a plugin's code.

    Args:
        doing: the method, for messages.

    Raises:
        Misbehaviour: the code raised a `BaseException` that is not an `Exception`.
    """

    __slots__ = ("_before", "_slot", "_text")

    def __init__(self, plugin_id: PluginId, doing: str) -> None:
        self._slot = None if plugin_id.is_ours else _State.slot
        self._text = b"" if self._slot is None else f"{plugin_id}\t{doing}".encode()

    def __enter__(self) -> None:
        super().__enter__()
        if self._slot is not None:
            self._before = self._slot.enter(self._text)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, *rest: object
    ) -> None:
        super().__exit__(kind, error)
        if self._slot is not None:
            self._slot.leave(self._before)
        if error is None or isinstance(error, Exception):
            return
        if isinstance(error, KeyboardInterrupt) and (_State.interrupted or not _State.watching):
            return
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
    """The error to raise after a plugin raised `error`.

    Args:
        what: the words after its name: ``failed in `items```.
        of: as in :func:`reason_of`.
    """
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


_OURS = os.path.dirname(__file__) + os.sep  # noqa: PTH120 - compared with the names of files
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


def time_limit() -> float | None:
    """Time limit for one call of a plugin's code in seconds; None for no limit.

    Raises:
        UsageError: `TFRECREG_PLUGIN_TIMEOUT` is not a number of seconds.
    """
    text = os.environ.get(TIMEOUT, "")
    try:
        seconds = float(text) if text.strip() else _DEFAULT_SECONDS
    except ValueError:
        seconds = -1.0
    if not math.isfinite(seconds) or seconds < 0:
        raise UsageError(
            f"`{TIMEOUT}` should be a number of seconds, found `{safe(text, limit=40)}`",
            hint=f"0 disables the limit; the default is {_DEFAULT_SECONDS:.0f}",
        )
    return seconds or None


class Patience:
    """The time limit of plugins in processes that this one waits for.

    Time without calls of :meth:`look` does not count: this process was stopped then, and so were
    the others.

    Args:
        limit: seconds for one call, from :func:`time_limit`.
    """

    def __init__(self, limit: float | None) -> None:
        self._limit = limit
        self._looked = time.monotonic()
        self._away = 0.0

    def look(self, *slots: CallSlot) -> PluginError | None:
        """The error for a plugin that exceeds the limit in one of these processes; None if there is
        none.

        Call it repeatedly, a few times per second.
        """
        now = time.monotonic()
        if now - self._looked > _AWAY:
            self._away += now - self._looked
        self._looked = now
        for slot in slots:
            found = slot.read()
            if self._limit is None or found is None or found[2] <= self._limit + self._away:
                continue
            who, doing, _ = found
            return PluginError(
                f"{who} did not return from `{doing}` within {self._limit:g} seconds, and was "
                "ended",
                hint=f"`{TIMEOUT}` is the limit in seconds, 0 for none",
            )
        return None


def how_it_ended(code: int) -> str:
    """How a process ended, in words, from its exit code: negative if a signal killed it."""
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"was killed by {name}"


def death_of(slot: CallSlot, how: str) -> FailureError | None:
    """The error for the plugin whose code ran when a process ended early, as :func:`how_it_ended`
    says; None if it was not a plugin.
    """
    found = slot.read()
    if found is None:
        return None
    who, doing, _ = found
    return PluginError(
        f"{who} did not return from `{doing}`: its process {how}",
        hint="it, or a library that it uses, ends the process: correct it, or report this",
    )
