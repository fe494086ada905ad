"""The real program, killed or refused at calls of the system by strace, from outside of Python."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest
from deeds_support import Deed
from deeds_support import deed as deed  # the fixture
from strace_support import Call, calls_under, injected, unusable
from sweep_support import part

pytestmark = pytest.mark.slow

REFUSALS = {
    "EIO": ("openat", "unlinkat", "unlink", "fsync", "write", "renameat2", "rename", "getdents64"),
    "EACCES": ("openat", "unlinkat", "unlink", "mkdir", "rename", "link"),
    "ENOSPC": ("openat", "fsync", "write", "mkdir", "link"),
    "EMFILE": ("openat",),
}
KILLS = 8
EACH = 2
"""Refusals with one errno."""


@pytest.fixture(scope="module", autouse=True)
def strace() -> None:
    why = unusable()
    if why:
        pytest.skip(why)


def calls_of(deed: Deed, log: Path) -> tuple[list[str], list[Call]]:
    deed.reset()
    command = deed.arguments()
    calls = calls_under(deed.root, command, log)
    assert len(calls) > 10
    return command, calls


@pytest.mark.parametrize("deed", ["growth", "release", "adopt-copy", "salvage"], indirect=True)
def test_the_program_is_killed_without_harm(deed: Deed, tmp_path: Path) -> None:
    log = tmp_path / "log"
    command, calls = calls_of(deed, log)
    changes = [each for each in calls if each.name not in ("openat", "getdents64", "fsync")]
    for call in part(random.Random(21).sample(changes, min(KILLS, len(changes)))):
        deed.reset()
        done = injected(command, call, "signal=KILL", log)
        assert done.returncode in (0, -signal.SIGKILL, 128 + signal.SIGKILL), done.stderr
        try:
            deed.expect_recovered(deed.adds if done.returncode == 0 else ())
        except Exception as error:
            raise AssertionError(f"killed at {call}") from error


@pytest.mark.parametrize("deed", ["growth", "release", "adopt-copy", "salvage"], indirect=True)
def test_the_program_says_what_it_was_refused(deed: Deed, tmp_path: Path) -> None:
    log = tmp_path / "log"
    command, calls = calls_of(deed, log)
    chance = random.Random(22)
    for number, names in REFUSALS.items():
        possible = [each for each in calls if each.name in names]
        for call in part(chance.sample(possible, min(EACH, len(possible)))):
            deed.reset()
            done = injected(command, call, f"error={number}", log)
            where = f"{number} at {call}: {done.returncode}, {done.stderr}"
            assert "Traceback" not in done.stderr, where
            assert done.returncode in (0, 2, 3), where
            assert done.returncode == 0 or "error: " in done.stderr, where
            try:
                deed.expect_recovered(deed.adds if done.returncode == 0 else ())
            except Exception as error:
                raise AssertionError(where) from error


@pytest.mark.parametrize("deed", ["growth"], indirect=True)
@pytest.mark.parametrize("what", ["signal=KILL", "error=EACCES", "error=EIO"])
def test_the_first_unlinkat_after_the_swap_blocks_no_other_build(
    deed: Deed, tmp_path: Path, what: str
) -> None:
    log = tmp_path / "log"
    command, calls = calls_of(deed, log)
    swap = next(at for at, call in enumerate(calls) if "RENAME_EXCHANGE" in call.line)
    call = next(each for each in calls[swap:] if each.name in ("unlinkat", "unlink"))
    deed.reset()
    done = injected(command, call, what, log)
    assert "Traceback" not in done.stderr
    deed.expect_recovered()
