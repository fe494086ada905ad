"""Power is lost at any step: what was acknowledged verifies, and the next run succeeds.

The log of a deed is replayed up to a point, and what was not synced by then is dropped: all of it,
any of it, or none (`power_support` says what that means).
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from deeds_support import Deed
from deeds_support import deed as deed  # the fixture
from power_support import Died, Disk, Lost, Recorded, Recording, all_lost, any_lost, none_lost
from sweep_support import part
from system_support import installed
from system_support import unsynced as unsynced  # and this one

LASTING = ("build", "first", "release", "yank", "salvage")
"""Deeds that others rest on. What `gc` removed may come back, and do no harm then."""
ALL = (*LASTING, "gc")
SAMPLE = 3


def recorded(deed: Deed, dies_at: int = 0) -> list[Recorded]:
    """The log of the deed, done from its start; of one that dies, that of a second try, too."""
    deed.reset()
    system = Recording(deed.root, dies_at)
    try:
        with installed(system):
            deed.do()
    except Died:
        system.bury()
        second = Recording(deed.root)
        with installed(second):
            deed.again()
        return system.log + second.log
    return system.log


def points(log: list[Recorded]) -> list[int]:
    """Before each sync, and at the end: what is lost changes nowhere else."""
    return [at for at, entry in enumerate(log) if entry.kind == "fsync"] + [len(log)]


def crash(deed: Deed, log: list[Recorded], at: int, lost: Lost) -> None:
    """Lose the power after so many entries of the log, and have it back."""
    disk = Disk(deed.start)
    for entry in log[:at]:
        disk.replay(entry)
    disk.crash(lost, deed.root)


def trial(deed: Deed, log: list[Recorded], at: int, lost: Lost) -> None:
    crash(deed, log, at, lost)
    acknowledged = at == len(log)

    def survived() -> None:
        if acknowledged:
            deed.expect_done()
        deed.expect_unharmed()
        deed.again()
        deed.expect_done()

    try:
        deed.judge_once(survived, "survived", acknowledged)
    except Exception as error:
        last = log[at - 1] if at else None
        raise AssertionError(f"after {at} of {len(log)} entries, the last {last}") from error


def losses(at: int) -> Iterator[Lost]:
    yield all_lost()
    yield none_lost()
    yield any_lost(at)


@pytest.mark.medium
@pytest.mark.parametrize("deed", ALL, indirect=True)
def test_what_is_acknowledged_survives_and_the_rest_is_made_again_sampled(deed: Deed) -> None:
    log = recorded(deed)
    assert not any(entry.kind == "look" for entry in log)
    some = points(log)
    for at in [*random.Random(1).sample(some[:-1], min(SAMPLE, len(some) - 1)), some[-1]]:
        for lost in losses(at):
            trial(deed, log, at, lost)


@pytest.mark.slow
@pytest.mark.parametrize("deed", ALL, indirect=True)
def test_what_is_acknowledged_survives_and_the_rest_is_made_again(deed: Deed) -> None:
    log = recorded(deed)
    for at in part(points(log)):
        for lost in losses(at):
            trial(deed, log, at, lost)


def killed_before(deed: Deed, at: int) -> None:
    log = recorded(deed, dies_at=at)
    crash(deed, log, len(log), all_lost())
    try:
        deed.judge_once(deed.expect_done, "done")
    except Exception as error:
        raise AssertionError(f"killed before change {at}") from error


@pytest.mark.parametrize("deed", LASTING, indirect=True)
def test_what_a_second_try_acknowledges_survives_a_first_that_was_killed_sampled(
    deed: Deed,
) -> None:
    total = changes(deed)
    for at in random.Random(2).sample(range(1, total + 1), SAMPLE):
        killed_before(deed, at)


@pytest.mark.slow
@pytest.mark.parametrize("deed", LASTING, indirect=True)
def test_what_a_second_try_acknowledges_survives_a_first_that_was_killed(deed: Deed) -> None:
    for at in part(range(1, changes(deed) + 1)):
        killed_before(deed, at)


def changes(deed: Deed) -> int:
    """How many changes the deed makes."""
    deed.reset()
    system = Recording(deed.root)
    with installed(system):
        deed.do()
    return system.changes
