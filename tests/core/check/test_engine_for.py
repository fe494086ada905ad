"""Where a check is done: what is small stays in this process."""

from __future__ import annotations

import os
from pathlib import Path

from tfrecreg.core.check.target import engine_for
from tfrecreg.core.registry.lookup import resolve
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.registry.shardset.target import files_target, target_of
from tfrecreg.core.workers.local import LocalEngine


def test_a_small_build_is_checked_in_this_process(digits_original: Path) -> None:
    target = target_of(resolve(open_registry(digits_original), "digits"), schema=None, raw=None)
    engine = engine_for(target, LocalEngine(2))
    assert engine.jobs == 1


def test_large_files_are_checked_by_the_workers_that_were_asked_for(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.tfrecord", "b.tfrecord")]
    for path in paths:
        path.touch()
        os.truncate(path, 150_000_000)  # a hole: it takes no room
    asked = LocalEngine(2)
    assert engine_for(files_target([str(paths[0])], schema=None, raw=None), asked).jobs == 1
    assert engine_for(files_target(list(map(str, paths)), schema=None, raw=None), asked) is asked
