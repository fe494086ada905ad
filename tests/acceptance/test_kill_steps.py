"""Killed at any call of the system, no command does harm; run again, it ends as if undisturbed.

A kill counts whichever library makes the call: ours, DVC, `pathlib` or Python's locks. Each trial:
a kill, then the same command. Some trials go on to the next command, and to `gc`, after which
nothing of the killed command is left.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from deeds_support import DEEDS, WITH_DVC, Deed
from deeds_support import deed as deed  # the fixture
from steps_support import CHANGING, Step, killed, steps_of
from sweep_support import part
from system_support import unsynced as unsynced  # and this one: a kill loses no page

from tfrecreg.builtin.dvc import cache
from tfrecreg.core.build import plan
from tfrecreg.core.workers import local
from tfrecreg.core.workers.local import LocalEngine

EVERY = ("build", "release", "adopt-copy", "adopt-in-place", "yank", "gc", "salvage", "gc-dvc")
"""Deeds that are killed at every step."""
SAMPLED = (
    *("growth", "first", "adopt-link", "repair"),
    *("export-tfds", "export-arrayrecord", "export-parquet"),
    *("release-dvc", "release-stage", "pull"),
)
FURTHER = 4
"""One trial of this number goes on to the next command, and to `gc`."""


def changes(step: Step) -> bool:
    return step.kind in CHANGING and "/.git/" not in step.path


def trial(deed: Deed, at: int, *, further: bool = True) -> None:
    deed.reset()
    ended = killed(deed.do, deed.places, changes, at)
    assert ended.failure is None, ended.failure.trace if ended.failure else ""
    try:
        deed.expect_recovered(() if ended.killed else deed.adds, further=further)
    except Exception as error:
        raise AssertionError(f"killed at step {at}") from error


def steps(deed: Deed) -> list[Step]:
    deed.reset()
    found = steps_of(deed.do, deed.places, changes)
    assert len(found) > 2
    return found


def sample(deed: Deed, count: int, seed: int) -> list[int]:
    """The numbers of some of all steps."""
    total = len(steps(deed))
    return sorted(random.Random(seed).sample(range(1, total + 1), min(count, total)))


def sweep(deed: Deed, chosen: Sequence[int], *, further: int = 1) -> None:
    """Trials at some steps. The error names all that went wrong."""
    wrong = []
    for at in part(chosen):
        try:
            trial(deed, at, further=at % further == 0)
        except AssertionError as error:
            wrong.append(f"{error}: {error.__cause__!r:.300}")
    assert not wrong, "\n".join([f"{len(wrong)} of {len(chosen)} trials:", *wrong[:10]])


def test_every_deed_is_killed_here() -> None:
    others = {"push", "dvc-add", "dvc-repro"}  # DVC's own, or without state
    assert {*EVERY, *SAMPLED} == {*DEEDS, *WITH_DVC} - others


@pytest.mark.slow
@pytest.mark.parametrize("deed", EVERY, indirect=True)
def test_a_kill_at_any_step_does_no_harm(deed: Deed) -> None:
    sweep(deed, range(1, len(steps(deed)) + 1), further=FURTHER)


@pytest.mark.slow
@pytest.mark.parametrize("deed", SAMPLED, indirect=True)
def test_a_kill_does_no_harm(deed: Deed) -> None:
    sweep(deed, sample(deed, 14 if deed.with_dvc else 16, seed=2))


@pytest.mark.slow
@pytest.mark.parametrize("deed", ["growth"], indirect=True)
def test_a_build_that_is_killed_after_its_swap_blocks_no_other(deed: Deed) -> None:
    found = steps(deed)
    swap = next(at for at, step in enumerate(found, 1) if step.kind == "exchange")
    sweep(deed, range(swap, len(found) + 1))


class Segmenting(LocalEngine):
    """Says that it has workers, so shards are made in segments; it works in this process."""

    def __init__(self) -> None:
        super().__init__(1)
        self.jobs = 8

    def warm(self, function: Callable[[Any], Any]) -> None:
        """There are none to start."""

    def run(
        self, function: Callable[[Any], Any], tasks: Iterable[Any]
    ) -> Generator[Any, None, None]:
        yield from LocalEngine(1).run(function, tasks)


@pytest.mark.medium
@pytest.mark.parametrize("deed", ["build"], indirect=True)
def test_a_build_that_is_killed_at_a_segment_does_no_harm(
    deed: Deed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "WORTH_SECONDS", 0)
    monkeypatch.setattr(plan, "SEGMENT_BYTES", 1000)
    monkeypatch.setattr(deed, "engine", Segmenting())
    segments = [at for at, step in enumerate(steps(deed), 1) if "/segments/" in step.path]
    assert len(segments) > 5
    sweep(deed, random.Random(5).sample(segments, 6), further=FURTHER)


@pytest.mark.slow
@pytest.mark.parametrize("deed", ["gc-dvc"], indirect=True)
def test_a_gc_that_is_killed_in_the_cache_of_dvc_leaves_nothing_that_no_other_finds(
    deed: Deed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def objects() -> set[str]:
        files = (deed.root / ".dvc/cache/files").rglob("*")
        return {path.name for path in files if path.is_file()}

    remove = cache.remove_objects
    deed.reset()
    before = objects()
    deed.run(deed.do)
    kept = objects()
    assert len(before) > len(kept)
    for count in range(len(before) - len(kept)):

        def killed(found: Iterable[Path], count: int = count) -> None:
            remove(list(found)[:count])
            raise KeyboardInterrupt

        deed.reset()
        monkeypatch.setattr(cache, "remove_objects", killed)
        with pytest.raises(AssertionError, match="KeyboardInterrupt"):
            deed.run(deed.do)
        monkeypatch.setattr(cache, "remove_objects", remove)
        deed.expect_unharmed()
        deed.run(deed.do)
        assert objects() == kept
