"""Rows of a comparison in memory and on disk."""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from diff_support import example, put_build, side

from tfrecreg.builtin.releases.diff import match as row_memory
from tfrecreg.builtin.releases.diff.match import match, new_rows
from tfrecreg.core.values.errors import StorageError


def memory_of(rows: Any) -> Any:
    """What holds the bytes of an array."""
    while isinstance(rows, np.ndarray):
        rows = rows.base
    return rows.obj if isinstance(rows, memoryview) else rows


def test_many_rows_are_on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(row_memory, "_HELD", 420)
    few, many = new_rows(10, 42), new_rows(11, 42)
    assert memory_of(few) is None
    assert isinstance(memory_of(many), mmap.mmap)
    assert (many.shape, many.dtype) == ((11, 42), np.uint8)
    assert many.flags.c_contiguous
    assert many.flags.writeable
    assert new_rows(0, 42).shape == (0, 42)
    assert list(tmp_path.iterdir()) == []  # the file has no name


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


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="the system has no posix_fallocate")
def test_a_full_disk_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(row_memory, "_HELD", 0)
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(StorageError, match=r"cannot write 42 bytes to .* No space left") as raised:
        new_rows(1, 42)
    assert raised.value.hint


def test_without_posix_fallocate_zeros_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_memory, "_HELD", 0)
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    assert not new_rows(100_000, 42).any()
