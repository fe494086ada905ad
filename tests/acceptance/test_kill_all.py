"""Killed at the n-th storage call, no command does harm; run again, it ends as if undisturbed.

So does the command that comes next, without a `gc` in between; when `gc` was there, nothing of the
killed one is left. `test_kill_steps` kills at calls of the system, those outside the storage too.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from deeds_support import Deed
from deeds_support import deed as deed  # the fixture
from kill_support import calls_of, in_child
from sweep_support import part
from system_support import unsynced as unsynced  # and this one: what is killed loses no page

from tfrecreg.builtin.dvc import cache

QUICK = ("first", "growth", "repair", "yank", "gc", "salvage", "export-tfds")
ALL = ("first", "yank", "gc", "salvage", "export-index", "export-webdataset", "tag", "gc-dvc")
SAMPLE = 3
FURTHER = 4
"""Of so many trials at every call, one goes on to the next command, and to `gc`."""


def total_of(deed: Deed) -> int:
    deed.reset()
    total = calls_of(deed.do)
    assert total > 5
    return total


def trial(deed: Deed, at: int, *, further: bool = True) -> None:
    deed.reset()
    lived = in_child(deed.do, at)
    try:
        deed.expect_recovered(deed.adds if lived else (), further=further)
    except Exception as error:
        raise AssertionError(f"killed at call {at}") from error


@pytest.mark.medium
@pytest.mark.parametrize("deed", QUICK, indirect=True)
def test_a_command_that_is_killed_does_no_harm_sampled(deed: Deed) -> None:
    for at in random.Random(3).sample(range(1, total_of(deed) + 1), SAMPLE):
        trial(deed, at)


@pytest.mark.slow
@pytest.mark.parametrize("deed", ALL, indirect=True)
def test_a_command_that_is_killed_does_no_harm_at_any_call(deed: Deed) -> None:
    for at in part(range(1, total_of(deed) + 1)):
        trial(deed, at, further=at % FURTHER == 0)


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

        def killed(found: Sequence[cache.UnusedFile], count: int = count) -> None:
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
