"""Rows of a comparison in memory and on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from diff_support import example, put_build, side

from tfrecreg.builtin.releases.diff import match as row_memory
from tfrecreg.builtin.releases.diff.match import match, new_rows
from tfrecreg.core.values.errors import StorageError


def test_the_result_is_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = {f"{number:03d}": example(number % 17) for number in range(200)}
    after = {f"{number + 5:03d}": example(number % 19) for number in range(190)}
    for name, records in (("one", before), ("other", after)):
        put_build(tmp_path, {"train": [records]}, name=name)
    sides = side(tmp_path, "one"), side(tmp_path, "other")
    plain = match(*sides)
    monkeypatch.setattr(row_memory, "_HELD", 0)
    spilled = match(*sides)
    for name in ("removed", "added"):
        assert np.array_equal(getattr(plain, name), getattr(spilled, name))
    for name in ("renamed", "changed", "moved", "moved_changed"):
        for which in ("before", "after"):
            found = [getattr(getattr(each, name), which) for each in (plain, spilled)]
            assert np.array_equal(*found)
    assert len(plain.changed)


def test_a_disk_that_takes_no_more_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(row_memory, "_HELD", 0)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(StorageError, match=r"cannot write 42 bytes to .* File too large"):
            new_rows(1, 42)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
