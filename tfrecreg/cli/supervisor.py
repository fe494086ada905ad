"""Supervision of commands that run third-party plugins: they work in a child process.

Python cannot keep code from ending the process that it runs in: ``os._exit(0)`` would end a check
as one that passed. So before the first such plugin is imported the process forks. The child goes on
and tells the parent its exit code when the command is done. If it ends without that, or a plugin
exceeds its time limit, the parent names the plugin and exits with code 3.

A plugin can also change how findings are judged. So the child tells the parent the severities that
it found, and the parent, where no plugin ran, does not let it pass with those that fail.

With bundled plugins only, no child process is started.
"""

from __future__ import annotations

import mmap
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType

from tfrecreg import guard
from tfrecreg.cli.streams import watched
from tfrecreg.commands.severities import FOUND
from tfrecreg.errors import FailureError, TfrecregError
from tfrecreg.findings import Severity
from tfrecreg.gating import FailOn
from tfrecreg.suggest import listed

_LIMITS = tuple(FailOn)
_MOST = 1 + len(_LIMITS) * len(Severity)
"""Maximum number of bytes of the child's message."""
_LOOK = 0.25
"""Seconds between two checks of the child."""
_PATIENCE = 10.0
"""Seconds for the child to exit after the command is done."""
_ECHO = 0.1
"""Seconds for an interrupt to reach the child, too, which a terminal sends to both."""


class Supervisor:
    """One command, and the reporter for a command that cannot report itself.

    Args:
        report: prints an error, and returns its exit code.
    """

    def __init__(self, report: Callable[[TfrecregError], int]) -> None:
        self._report = report
        self._verdict: int | None = None

    def begin(self, third_party: Sequence[guard.PluginId]) -> None:
        """Continue in a child process. The parent waits here and never returns.

        Raises:
            UsageError: `TFRECREG_PLUGIN_TIMEOUT` is not a number of seconds.
        """
        limit = guard.time_limit()
        slot = guard.CallSlot(mmap.mmap(-1, guard.CallSlot.SIZE))
        read, write = os.pipe()
        alive, held = os.pipe()
        _flush()
        child = os.fork()
        if child:
            os.close(write)
            os.close(alive)
            code = 3
            try:
                code = _Watch(child, read, slot, limit, third_party).code(self._report)
                _flush()
            finally:
                os._exit(code)  # the child leaves the frames on the stack
        os.close(read)
        os.close(held)
        self._verdict = write
        guard.note_in(slot)
        threading.Thread(target=_leave_with_parent, args=(alive,), daemon=True).start()
        _keep_stdout()

    def finish(self, code: int) -> None:
        """Record the exit code of the finished command, however this process ends."""
        if self._verdict is not None:
            with suppress(OSError):  # a plugin may have closed it
                found = [_LIMITS.index(limit) << 4 | each.rank for limit, each in FOUND]
                os.write(self._verdict, bytes([code & 0xFF, *found]))
                os.close(self._verdict)


def _flush() -> None:
    """Flush buffers, which both processes would otherwise write."""
    for each in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # None where it was closed
            each.flush()


def _leave_with_parent(alive: int) -> None:
    """End the child when its parent ends, for any reason."""
    os.read(alive, 1)
    os._exit(3)


def _keep_stdout() -> None:
    """Reserve stdout for results from `sys.stdout`; other writes to it go to stderr."""
    out = sys.__stdout__
    if out is None or sys.stdout is not out:
        return
    sys.stdout = watched(os.dup(1), out)
    os.dup2(2, 1)


class _Watch:
    """The parent's view of the child."""

    def __init__(
        self,
        child: int,
        pipe: int,
        slot: guard.CallSlot,
        limit: float | None,
        third_party: Sequence[guard.PluginId],
    ) -> None:
        self._child = child
        self._pipe = pipe
        self._slot = slot
        self._patience = guard.Patience(limit)
        self._third_party = third_party
        self._interrupted = 0.0
        self._status: int | None = None
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._interrupt)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._interrupted = time.monotonic()

    def code(self, report: Callable[[TfrecregError], int]) -> int:
        """The exit code of the command."""
        while True:
            if select.select([self._pipe], [], [], _LOOK)[0]:
                told = os.read(self._pipe, _MOST)
                if told:
                    self._wait()
                    return told[0] if self._agrees(*told) else report(self._changed())
                self._wait()
                break
            if self._is_gone():
                break
            stuck = self._patience.look(self._slot)
            if stuck is not None:
                os.kill(self._child, signal.SIGKILL)
                self._wait()
                return report(stuck)
            self._pass_interrupt_on()
        return report(self._death())

    def _pass_interrupt_on(self) -> None:
        if self._interrupted and time.monotonic() - self._interrupted > _ECHO:
            self._interrupted = 0.0
            if not self._slot.interrupted:
                os.kill(self._child, signal.SIGINT)

    def _is_gone(self) -> bool:
        if self._status is None:
            found, status = os.waitpid(self._child, os.WNOHANG)
            self._status = status if found else None
        return self._status is not None

    def _wait(self) -> None:
        """Wait until the child has exited, and kill it if it does not."""
        deadline = time.monotonic() + _PATIENCE
        pause = 0.001
        while not self._is_gone():
            if time.monotonic() > deadline:
                os.kill(self._child, signal.SIGKILL)
            self._pass_interrupt_on()
            time.sleep(pause)
            pause = min(2 * pause, 0.05)

    def _agrees(self, code: int, *found: int) -> bool:
        """Whether a command with these findings may pass."""
        ranks = {each.rank: each for each in Severity}
        return code != 0 or not any(_LIMITS[each >> 4].fails(ranks[each & 0xF]) for each in found)

    def _changed(self) -> FailureError:
        names = listed(sorted({each.distribution for each in self._third_party}))
        return FailureError(
            "the command passed although the report has findings that fail; plugins of "
            f"{names} ran in it",
            hint="uninstall them one by one to find out which one changes the verdict",
        )

    def _death(self) -> FailureError:
        how = guard.how_it_ended(os.waitstatus_to_exitcode(self._status or 0))
        plugin = guard.death_of(self._slot, how)
        if plugin is not None:
            return plugin
        names = listed(sorted({each.distribution for each in self._third_party}))
        return FailureError(
            f"the command {how} before it was done; plugins of {names} ran in it",
            hint="uninstall them one by one to find out which one ends it",
        )
