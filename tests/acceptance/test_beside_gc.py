"""`gc` beside each command that publishes, pulls or keeps bytes, at any step of the command.

One process stands still before a step. Another process removes unreferenced files, or waits until
it may. Then the first process goes on. No byte is lost that a release, a build, a pointer of DVC or
the first process names.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence

import pytest
from deeds_support import Deed, Push, ReleaseDvc
from deeds_support import deed as deed  # the fixture
from git_support import commit, git
from steps_support import CHANGING, Step, meeting, pausing, steps_of
from sweep_support import part
from system_support import unsynced as unsynced  # and this one

from tfrecreg.builtin.dvc.transfer import pull, push
from tfrecreg.core.registry.registry import open_registry

PLAIN = (
    *("growth", "first", "release", "adopt-copy", "adopt-link", "adopt-in-place"),
    *("repair", "yank", "gc", "export-tfds"),
)
TFRECREG = ("release-dvc", "release-stage", "pull", "push", "gc-dvc")
DVC = ("dvc-add", "dvc-repro")


def all_steps(deed: Deed) -> list[Step]:
    deed.reset()
    return steps_of(deed.do, deed.places, pausing)


def trial(deed: Deed, at: int, *, shared: bool = False) -> None:
    deed.reset()
    step, waited = meeting(deed.do, deed.collect, deed.places, at)
    try:
        deed.expect_beside_gc()
        if shared:
            expect_shared(deed)
    except Exception as error:
        raise AssertionError(f"gc at step {at}: {step}, waited: {waited}") from error


def expect_shared(deed: Deed) -> None:
    """Everything that was released reaches a clone by the remote, and verifies there."""
    other = deed.root.with_name("clone")
    commit(deed.root, "all that there is")

    def share() -> list[str]:
        push(open_registry(deed.root))
        git(deed.folder, "clone", "--quiet", "work", "clone")
        registry = open_registry(other)
        names = [f"digits@{version}" for version in registry.dataset("digits").versions]
        for name in names:
            pull(registry, name)
        return names

    deed.run(share)
    try:
        released = open_registry(other).dataset("digits").versions
        assert {str(version) for version in released} == {*deed.released, *deed.adds}
        for version in released:
            assert deed.clean(f"digits@{version}", other)
    finally:
        shutil.rmtree(other)


def sweep(deed: Deed, chosen: Sequence[int], *, shared: Callable[[int], bool]) -> None:
    """Trials at some steps. The error names all that went wrong."""
    wrong = []
    for at in part(chosen):
        try:
            trial(deed, at, shared=shared(at))
        except AssertionError as error:
            wrong.append(f"{str(error)[:300]}: {error.__cause__!r:.300}")
    assert not wrong, "\n".join([f"{len(wrong)} of {len(chosen)} trials:", *wrong[:10]])


def never(at: int) -> bool:
    return False


@pytest.mark.medium
@pytest.mark.parametrize("deed", ["export-tfds", "salvage"], indirect=True)
def test_a_folder_in_the_making_is_not_taken_for_one_that_was_left(deed: Deed) -> None:
    total = len(all_steps(deed))
    for at in random.Random(10).sample(range(1, total + 1), 3):
        deed.reset()
        meeting(deed.do, deed.then, deed.places, at)
        deed.expect_done()


@pytest.mark.slow
@pytest.mark.parametrize("deed", PLAIN, indirect=True)
def test_no_gc_disturbs_a_command(deed: Deed) -> None:
    total = len(all_steps(deed))
    chosen = random.Random(6).sample(range(1, total + 1), min(26, total))
    sweep(deed, sorted(chosen), shared=never)


def between_cache_and_pointer(steps: Sequence[Step]) -> list[int]:
    """The steps by which DVC has bytes in its cache to which nothing refers yet."""
    changes = [(at, step) for at, step in enumerate(steps, 1) if step.kind in CHANGING]
    in_cache = [at for at, step in changes if "/.dvc/cache/files/" in step.path]
    pointer = [at for at, step in enumerate(steps, 1) if step.path.endswith("data/digits.dvc")]
    return list(range(in_cache[-1], pointer[-1] + 1))


@pytest.mark.slow
@pytest.mark.parametrize("deed", ["release-dvc"], indirect=True)
def test_no_gc_takes_the_bytes_of_a_release_in_the_making(deed: Deed) -> None:
    steps = all_steps(deed)
    window = between_cache_and_pointer(steps)
    trial(deed, window[0])
    trial(deed, window[-1], shared=True)
    sweep(deed, window[1:-1], shared=never)


@pytest.mark.slow
@pytest.mark.parametrize("deed", TFRECREG, indirect=True)
def test_no_gc_disturbs_a_command_with_dvc(deed: Deed) -> None:
    total = len(all_steps(deed))
    chosen = sorted(random.Random(8).sample(range(1, total + 1), min(16, total)))
    sweep(deed, chosen, shared=lambda at: at == chosen[-1] and isinstance(deed, ReleaseDvc | Push))


@pytest.mark.slow
@pytest.mark.parametrize("deed", DVC, indirect=True)
def test_no_gc_takes_bytes_from_a_command_of_dvc(deed: Deed) -> None:
    steps = all_steps(deed)
    cached = [at for at, step in enumerate(steps, 1) if "/.dvc/cache/files/" in step.path]
    chance = random.Random(9)
    chosen = chance.sample(range(1, cached[0]), 3) if cached[0] > 3 else []
    chosen += chance.sample(range(cached[0], len(steps) + 1), 11)
    sweep(deed, sorted({*chosen, cached[-1] + 1}), shared=never)


@pytest.mark.slow
@pytest.mark.parametrize("deed", ["release-dvc", "dvc-add"], indirect=True)
def test_a_gc_that_has_looked_around_already_takes_nothing_that_came_since(deed: Deed) -> None:
    deed.reset()
    total = len(steps_of(deed.collect, deed.places, pausing))
    for at in part(range(1, total + 1)):
        deed.reset()
        step, _ = meeting(deed.collect, deed.do, deed.places, at)
        if step is None:
            deed.run(deed.do)
        try:
            deed.expect_beside_gc()
        except Exception as error:
            raise AssertionError(f"gc stood at step {at}: {step}") from error
