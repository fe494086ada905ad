"""Whichever library makes the call of the system that is refused, no command ends in a traceback.

`test_faults` refuses calls of the storage. These tests also refuse calls of DVC, of lock files and
of `pathlib`, in the library and at the command line.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable

import pytest
from deeds_support import Deed
from deeds_support import deed as deed  # the fixture
from steps_support import CHANGING, Step, at_step, steps_of
from sweep_support import part
from system_support import NUMBERS
from system_support import unsynced as unsynced  # and this one

QUICK = ("growth", "adopt-copy")
LIBRARY = (
    *("build", "growth", "release", "adopt-copy", "adopt-link", "adopt-in-place"),
    *("repair", "yank", "gc", "salvage"),
    *("export-tfds", "export-arrayrecord", "export-parquet"),
)
WITH_DVC = ("release-dvc", "pull", "gc-dvc")
COMMANDS = ("growth", "release", "salvage")

_TAKING = {  # the kinds of steps by errno; EIO is for all
    errno.ENOSPC: CHANGING - {"unlink", "rmdir", "exchange"},
    errno.EMFILE: frozenset({"create", "open", "list"}),
    errno.EACCES: (CHANGING - {"write"}) | {"open", "list"},
}


def calls(step: Step) -> bool:
    return step.kind not in ("read", "write", "close") and "/.git/" not in step.path


def refusals(steps: list[Step], number: int) -> list[int]:
    """The steps that the system may refuse with this errno."""
    kinds = _TAKING.get(number)
    return [at for at, step in enumerate(steps, 1) if kinds is None or step.kind in kinds]


def sweep(deed: Deed, work: Callable[[], object], count: int, seed: str) -> None:
    """Refuse some steps, with each errno. The error names all that went wrong."""
    deed.reset()
    steps = steps_of(work, deed.places, calls)
    chance = random.Random(seed)
    wrong = []
    for number in NUMBERS:
        possible = refusals(steps, number)
        for at in part(sorted(chance.sample(possible, min(count, len(possible))))):
            where = f"{errno.errorcode[number]} at step {at}, {steps[at - 1]}"
            try:
                trial(deed, work, at, number)
            except Exception as error:
                wrong.append(f"{where}: {error!r:.600}")
    assert not wrong, "\n".join([f"{len(wrong)} of {count * len(NUMBERS)}:", *wrong[:10]])


def trial(deed: Deed, work: Callable[[], object], at: int, number: int) -> None:
    def refuse(step: Step, tell: object) -> None:
        raise OSError(number, os.strerror(number), step.path)

    deed.reset()
    ended = at_step(work, deed.places, calls, at, refuse).join()
    failure, done = ended.failure, ended.failure is None
    if failure is not None:
        assert failure.expected, failure.trace
        assert failure.exit_code in (2, 3), failure
        assert os.strerror(number) in failure.message or failure.hint, failure
    elif isinstance(ended.value, dict):
        err = ended.value["err"]
        done = ended.value["code"] == 0
        assert ended.value["code"] in (0, 2, 3), ended.value
        assert "Traceback" not in err
        assert done or "error: " in err
        assert done or os.strerror(number) in err or "hint: " in err
    deed.expect_recovered(deed.adds if done else ())


@pytest.mark.medium
@pytest.mark.parametrize("deed", QUICK, indirect=True)
def test_a_step_that_is_refused_is_said_and_does_no_harm_sampled(deed: Deed) -> None:
    sweep(deed, deed.do, 1, "quick")


@pytest.mark.slow
@pytest.mark.parametrize("deed", LIBRARY, indirect=True)
def test_a_step_that_is_refused_is_said_and_does_no_harm(deed: Deed) -> None:
    sweep(deed, deed.do, 6, "slow")


@pytest.mark.slow
@pytest.mark.parametrize("deed", WITH_DVC, indirect=True)
def test_a_step_that_is_refused_is_said_and_does_no_harm_with_dvc(deed: Deed) -> None:
    sweep(deed, deed.do, 4, "dvc")


@pytest.mark.medium
@pytest.mark.parametrize("deed", ["build"], indirect=True)
def test_the_command_line_says_what_was_refused_without_a_traceback_sampled(deed: Deed) -> None:
    sweep(deed, deed.at_command_line, 1, "quick")


@pytest.mark.slow
@pytest.mark.parametrize("deed", COMMANDS, indirect=True)
def test_the_command_line_says_what_was_refused_without_a_traceback(deed: Deed) -> None:
    sweep(deed, deed.at_command_line, 5, "slow")
