"""Killed at any call of the system, no command does harm, whoever of it makes the call.

Kills at calls of the storage alone miss those of DVC, of lock files and of `pathlib`, and the many
calls in one of the storage. Each trial: a kill, then the same command, the next one, and `gc`.
"""

from __future__ import annotations

import random

import pytest
from deeds_support import DEEDS, WITH_DVC, Deed
from deeds_support import deed as deed  # the fixture
from steps_support import CHANGING, Step, killed, steps_of
from sweep_support import part
from system_support import unsynced as unsynced  # and this one: what is killed loses no page

KILLED = (
    *("build", "growth", "first", "release", "adopt-copy", "adopt-link", "adopt-in-place"),
    *("repair", "yank", "gc", "salvage", "export-tfds", "export-index"),
    *("export-arrayrecord", "export-parquet", "export-webdataset"),
)
KILLED_WITH_DVC = ("release-dvc", "release-stage", "pull", "gc-dvc")
QUICK = ("build", "adopt-copy", "adopt-in-place", "export-index")


def changes(step: Step) -> bool:
    return step.kind in CHANGING and "/.git/" not in step.path


def trial(deed: Deed, at: int) -> None:
    deed.reset()
    ended = killed(deed.do, deed.places, changes, at)
    assert ended.failure is None, ended.failure.trace if ended.failure else ""
    try:
        deed.expect_recovered(() if ended.killed else deed.adds)
    except Exception as error:
        raise AssertionError(f"killed at step {at}") from error


def total_of(deed: Deed) -> int:
    deed.reset()
    return len(steps_of(deed.do, deed.places, changes))


def sweep(deed: Deed, count: int, seed: int) -> None:
    """Trials at some of all steps. All that went wrong is told, not only the first of it."""
    total = total_of(deed)
    wrong = []
    for at in part(sorted(random.Random(seed).sample(range(1, total + 1), min(count, total)))):
        try:
            trial(deed, at)
        except AssertionError as error:
            wrong.append(f"{error}: {error.__cause__!r:.300}")
    assert not wrong, "\n".join([f"{len(wrong)} of {count} trials:", *wrong[:10]])


def test_every_deed_is_killed_here() -> None:
    others = {"push", "tag", "dvc-add", "dvc-repro", "dvc-checkout"}  # DVC's, git's and no state
    assert {*KILLED, *KILLED_WITH_DVC} == {*DEEDS, *WITH_DVC} - others


@pytest.mark.medium
@pytest.mark.parametrize("deed", QUICK, indirect=True)
def test_a_kill_at_a_step_does_no_harm_sampled(deed: Deed) -> None:
    sweep(deed, 2, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("deed", KILLED, indirect=True)
def test_a_kill_at_a_step_does_no_harm(deed: Deed) -> None:
    sweep(deed, 16, seed=2)


@pytest.mark.slow
@pytest.mark.parametrize("deed", KILLED_WITH_DVC, indirect=True)
def test_a_kill_at_a_step_does_no_harm_with_dvc(deed: Deed) -> None:
    sweep(deed, 14, seed=3)


@pytest.mark.medium
@pytest.mark.parametrize("deed", ["growth"], indirect=True)
def test_a_build_that_is_killed_after_its_swap_blocks_no_other(deed: Deed) -> None:
    deed.reset()
    steps = steps_of(deed.do, deed.places, changes)
    swap = next(at for at, step in enumerate(steps, 1) if step.kind == "exchange")
    first = next(at for at, step in enumerate(steps, 1) if at > swap and step.kind == "unlink")
    trial(deed, swap + 1)
    trial(deed, first)


@pytest.mark.slow
@pytest.mark.parametrize("deed", ["growth"], indirect=True)
def test_a_build_that_is_killed_anywhere_after_its_swap_blocks_no_other(deed: Deed) -> None:
    deed.reset()
    steps = steps_of(deed.do, deed.places, changes)
    swap = next(at for at, step in enumerate(steps, 1) if step.kind == "exchange")
    for at in part(range(swap, len(steps) + 1)):
        trial(deed, at)
