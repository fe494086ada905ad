"""The one way into the code of plugins: what it raises, prints and ends does no harm.

Whoever calls a plugin does so in a block of :func:`calling`. In it

- nothing but an `Exception` comes out: ``sys.exit()``, a `KeyboardInterrupt` that nobody typed and
  whatever else a plugin raises are a :class:`Misbehaviour`, which says so;
- printed output goes to stderr, because stdout is the result of a command;
- the process notes whose code it is in, so that another one, which waits for it, can say who ended
  it or who hangs: that is a :class:`CallSlot`.

Nobody notes the calls of the bundled plugins: they end no process, and some are called for every
record.
"""

from __future__ import annotations

import math
import os
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from tfrecreg.errors import (
    FailureError,
    MissingExtraError,
    PluginError,
    StorageError,
    TfrecregError,
    UsageError,
)
from tfrecreg.text import safe

OURS = "tfrecreg"
"""The distribution of the bundled plugins."""
TIMEOUT = "TFRECREG_PLUGIN_TIMEOUT"
"""The variable of the environment that says how many seconds one call may take."""

_DEFAULT_SECONDS = 600.0
_AWAY = 5.0
"""Seconds between two looks from which on this process was stopped."""


@dataclass(frozen=True, slots=True)
class Brought:
    """A plugin as messages name it: what it is, and which distribution brought it. Picklable."""

    kind: str
    """``source``, ``validator``, or ``plugin`` for an entry point."""
    name: str
    distribution: str = OURS
    version: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether this project brought it."""
        return self.distribution == OURS

    def __str__(self) -> str:
        named = f"the {self.kind} `{safe(self.name, limit=60)}`"
        if self.is_ours:
            return named
        return f"{named} of `{safe(self.distribution, limit=80)}` {safe(self.version, limit=40)}"

    @property
    def hint(self) -> str:
        """What to do about a mistake in it."""
        if self.is_ours:
            return "a mistake in tfrecreg: please report it"
        named = safe(self.distribution, limit=80)
        return f"update or uninstall `{named}`, or report this to its authors"


class Misbehaviour(Exception):
    """A plugin raised a `BaseException` that is not an `Exception`; it is the cause."""


class CallSlot:
    """Where a process notes whose code it is in, in memory that another process reads.

    Args:
        memory: a writable buffer of :attr:`SIZE` bytes that both share, all zero.
    """

    SIZE = 512
    _HEAD = struct.Struct("<dHB")
    """When it was entered (0 for nowhere), bytes of the text, whether there was an interrupt."""

    def __init__(self, memory: Any) -> None:
        self._view = memoryview(memory).cast("B")
        self._now: tuple[float, bytes] = (0.0, b"")
        self._interrupted = False

    def enter(self, text: bytes) -> tuple[float, bytes]:
        """Note where this process is; what comes back is for :meth:`leave`."""
        before = self._now
        self._write((time.monotonic(), text[: self.SIZE - self._HEAD.size]))
        return before

    def leave(self, before: tuple[float, bytes]) -> None:
        """Note that it is back where it was."""
        self._write(before)

    def interrupt(self) -> None:
        """Note that this process was interrupted."""
        self._interrupted = True
        self._write(self._now)

    def _write(self, now: tuple[float, bytes]) -> None:
        self._now = since, text = now
        size = self._HEAD.size
        self._view[size : size + len(text)] = text
        self._HEAD.pack_into(self._view, 0, since, len(text), self._interrupted)

    def read(self) -> tuple[str, str, float] | None:
        """Who is at work in the process, in which method, for how many seconds; None for nobody."""
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
    """What this process knows of itself."""

    slot: CallSlot | None = None
    watching = False
    """Whether this process knows of every interrupt that somebody typed."""
    interrupted = False
    on_strangers: Callable[[Sequence[Brought]], None] | None = None


def note_in(slot: CallSlot) -> None:
    """From now on this process notes in `slot` whose code it is in."""
    _State.slot = slot


def watch_interrupts(*, ignored: bool = False) -> None:
    """From now on tell interrupts that somebody typed from those that a plugin raises.

    Args:
        ignored: whether this process gets none: every one is a plugin's.
    """
    if not ignored:
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            return  # somebody else's, or ignored by whoever started us
        signal.signal(signal.SIGINT, _interrupt)
    _State.watching = True


def _interrupt(number: int, frame: FrameType | None) -> None:
    _State.interrupted = True
    if _State.slot is not None:
        _State.slot.interrupt()
    signal.default_int_handler(number, frame)


def on_strangers(function: Callable[[Sequence[Brought]], None]) -> None:
    """Have `function` called once, before anything of other distributions is imported."""
    _State.on_strangers = function


def meet(strangers: Sequence[Brought]) -> None:
    """Plugins of other distributions are about to be imported."""
    function, _State.on_strangers = _State.on_strangers, None
    if function is not None and strangers:
        function(strangers)


class calling:
    """``with calling(brought, "items"):`` around every call of a plugin's code.

    Args:
        brought: whose code it is.
        doing: the method, for messages.

    Raises:
        Misbehaviour: the code raised a `BaseException` that is not an `Exception`.
    """

    __slots__ = ("_before", "_out", "_slot", "_text")

    def __init__(self, brought: Brought, doing: str) -> None:
        self._slot = None if brought.is_ours else _State.slot
        self._text = b"" if self._slot is None else f"{brought}\t{doing}".encode()

    def __enter__(self) -> None:
        self._out, sys.stdout = sys.stdout, sys.stderr
        if self._slot is not None:
            self._before = self._slot.enter(self._text)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        sys.stdout = self._out
        if self._slot is not None:
            self._slot.leave(self._before)
        if error is None or isinstance(error, Exception):
            return
        if isinstance(error, KeyboardInterrupt) and (_State.interrupted or not _State.watching):
            return
        raise Misbehaviour from error


_PASSED = (UsageError, MissingExtraError, StorageError)
"""What a plugin may say to the user in its own words."""


def failure(brought: Brought, what: str, error: Exception, *, hint: str = "") -> TfrecregError:
    """What to raise where a plugin raised `error`.

    Args:
        brought: whose code raised it.
        what: what it did, behind its name: ``failed in `items```.
        error: what it raised.
        hint: what to do, where that is known better.
    """
    if isinstance(error, TfrecregError) and (is_told(error) or brought.is_ours):
        return error
    return PluginError(f"{brought} {what}: {reason_of(error)}", hint=hint or brought.hint)


def is_told(error: BaseException) -> bool:
    """Whether it is an error that a plugin may raise to say something to the user."""
    if not isinstance(error, _PASSED) or type(error).__module__ != TfrecregError.__module__:
        return False
    words: tuple[object, ...] = (error.message, error.hint)
    return all(isinstance(each, str) and each.isprintable() for each in words)


def reason_of(error: BaseException) -> str:
    """One line: our own message, or ``ZeroDivisionError: division by zero (faces.py, line 12)``.

    The location replaces the traceback, and is where to start debugging.
    """
    if isinstance(error, Misbehaviour) and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, TfrecregError):
        # By convention it is one line, and escaped; a plugin may not keep to that.
        message = str(error.message)
        return message if message.isprintable() else safe(message, limit=500)
    told = one_line(error)
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return told
    return f"{told} ({safe(Path(frames[-1].filename).name)}, line {frames[-1].lineno})"


def one_line(error: BaseException) -> str:
    """``ModuleNotFoundError: No module named 'PIL'``, escaped."""
    if isinstance(error, Misbehaviour) and error.__cause__ is not None:
        error = error.__cause__
    name = type(error).__name__
    try:
        lines = str(error).strip().splitlines()
    except BaseException:  # a plugin's own error, which cannot even be told
        lines = []
    return safe(f"{name}: {lines[0]}" if lines else name, limit=500)


def time_limit() -> float | None:
    """Seconds that one call of a plugin's code may take; None for any.

    Raises:
        UsageError: `TFRECREG_PLUGIN_TIMEOUT` is no number of seconds.
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
    """How long a process that waits for others lets a plugin work in them.

    Time in which nobody looked does not count: this process was stopped then, and so were they.

    Args:
        limit: seconds for one call, as :func:`time_limit` gives them.
    """

    def __init__(self, limit: float | None) -> None:
        self._limit = limit
        self._looked = time.monotonic()
        self._away = 0.0

    def look(self, *slots: CallSlot) -> PluginError | None:
        """Who is at work in one of these processes for longer than it may be; None for nobody.

        To be called again and again, a few times a second.
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
    """How a process ended, from its exit code: negative where a signal killed it."""
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"was killed by {name}"


def death_of(slot: CallSlot, how: str) -> FailureError | None:
    """Who was at work in a process that ended, before it should; None where it was no plugin.

    Args:
        slot: the process's.
        how: as :func:`how_it_ended` says.
    """
    found = slot.read()
    if found is None:
        return None
    who, doing, _ = found
    return PluginError(
        f"{who} did not return from `{doing}`: its process {how}",
        hint="uninstall or update that distribution, or report this to its authors",
    )
