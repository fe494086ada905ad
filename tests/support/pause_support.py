"""Two processes, one stopped at a step.

The only time limit is how long the one stops for another that neither ends nor reports that it
waits.
"""

from __future__ import annotations

import fcntl
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from child_support import Child, Ended
from steps_support import CHANGING, Step, listen

_STILL = 2.0
"""Maximum seconds for which the first process stops without a sign of the other."""
_TICK = 0.02


@dataclass(frozen=True)
class Meeting:
    """The results of two processes."""

    first: Ended
    second: Ended | None
    """None where the first ended before the step, so that there was no second."""
    step: Step | None
    """At which the first stood still."""
    waited: bool
    """Whether the second waited for the first."""

    def expect_success(self) -> None:
        """Both succeeded."""
        for each in (self.first, self.second):
            if each is not None:
                assert each.failure is None, f"at {self.step}: {each.failure}"


def pausing(step: Step) -> bool:
    """Whether work of another process before this step matters."""
    if "/.git/" in step.path or "/.tfrecreg/dvc/" in step.path:
        return False
    if step.kind == "open":
        shared = ("/data/", "/versions/", "/registry/", "/cache/", "/stage/", "/raw/")
        return any(folder in step.path for folder in shared) and "ignore" not in step.path
    return step.kind in CHANGING


def stopped(
    work: Callable[[], Any], places: Sequence[Path], wanted: Callable[[Step], bool], at: int
) -> tuple[Child, Step | None]:
    """A process stopped before step number `at` of the wanted ones; None if it ended."""

    def standing(tell: Callable[..., None]) -> Any:
        left = at

        def reached(step: Step) -> None:
            nonlocal left
            if wanted(step):
                left -= 1
                if left == 0:
                    tell(step, wait=True)

        listen(places, reached)
        return work()

    child = Child(standing)
    found = child.told()
    return child, Step(*found) if found is not None else None


def meeting(
    first: Callable[[], Any],
    second: Callable[[], Any],
    places: Sequence[Path],
    at: int,
    wanted: Callable[[Step], bool] = pausing,
) -> Meeting:
    """Run two processes: the second works while the first is stopped at a step.

    The first goes on when the second has ended, or waits: for a lock that the first has, or asleep
    before it tries again.

    Args:
        first: the work of the stopped process.
        second: the work of the other.
        places: below which the steps of the first are.
        at: the number of the step, from 1.
        wanted: which steps count.
    """
    one, step = stopped(first, places, wanted, at)
    if step is None:
        return Meeting(one.join(), None, None, waited=False)
    other = Child(lambda tell: _announcing(second, tell))
    waited = _until_it_waits(other)
    one.go_on()
    return Meeting(one.join(), other.join(), step, waited)


def _announcing(work: Callable[[], Any], tell: Callable[..., None]) -> Any:
    """Do some work, and send a message before each call that may wait."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "time.sleep":
            tell("sleeps")
        elif event == "fcntl.flock" and not arguments[1] & (fcntl.LOCK_NB | fcntl.LOCK_UN):
            tell("locks")

    sys.addaudithook(hook)
    return work()


def _until_it_waits(child: Child) -> bool:
    """Whether a process waits; False if it ended, or sent nothing for too long."""
    deadline = time.monotonic() + _STILL
    while child.ended is None and time.monotonic() < deadline:
        if child.told(_TICK) == "sleeps" or _blocked(child.pid):
            return child.ended is None
    return False


def _blocked(pid: int) -> bool:
    """Whether a process waits for a lock, if the system shows it."""
    try:
        locks = Path("/proc/locks").read_text()
    except OSError:
        return False
    waiting = (line.split() for line in locks.splitlines() if " -> " in line)
    return any(str(pid) in words for words in waiting)
