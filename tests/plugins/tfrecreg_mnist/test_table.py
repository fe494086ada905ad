"""Entries are found at random, and nothing stays open or behind."""

from __future__ import annotations

import gc
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tfrecreg.errors import RawDataError, UsageError
from tfrecreg.storage import LocalStorage
from tfrecreg_mnist.table import Table


def open_files() -> set[tuple[str, str]]:
    """Descriptors of this process, and what they are of. Others may close meanwhile."""
    found = set()
    for descriptor in list(Path("/proc/self/fd").iterdir()):
        with suppress(FileNotFoundError):  # the one that listed them is closed by now
            found.add((descriptor.name, str(descriptor.readlink())))
    return found


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_entries_are_found_at_random(raw: Any, suffix: str) -> None:
    raw.put("x" + suffix, raw.images(5))
    table = Table(LocalStorage(raw.path), "x" + suffix, 3)
    for index in (4, 0, 2, 2, 3, 1):
        assert table.entry(index) == raw.pixels(5)[index * 12 : index * 12 + 12]


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("index", [-1, 5])
def test_entry_that_is_not_there_is_an_error(raw: Any, suffix: str, index: int) -> None:
    raw.put("x" + suffix, raw.images(5))
    table = Table(LocalStorage(raw.path), "x" + suffix, 3)
    with pytest.raises(RawDataError, match=f"`x{suffix}` has no entry {index}: it changed during"):
        table.entry(index)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_table_closes_its_file_when_it_goes(raw: Any, suffix: str) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("this system does not say which files are open")
    raw.put("x" + suffix, raw.images(5))
    before = open_files()
    table = Table(LocalStorage(raw.path), "x" + suffix, 3)
    assert table.entry(0)
    assert open_files() - before
    del table
    gc.collect()
    assert not open_files() - before


def test_table_of_damaged_gzip_leaves_nothing_behind(
    raw: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = raw.put("x.gz", raw.images(500))
    path.write_bytes(path.read_bytes()[:-4])
    before = sorted(tmp_path.iterdir())
    with pytest.raises(RawDataError, match="is truncated"):
        Table(LocalStorage(raw.path), "x.gz", 3)
    assert sorted(tmp_path.iterdir()) == before


def test_no_room_for_the_temporary_file_says_where_to_find_it(
    raw: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    raw.put("x.gz", raw.images(5))
    with pytest.raises(UsageError) as caught:
        Table(LocalStorage(raw.path), "x.gz", 3)
    assert caught.value.message == (
        "cannot decompress `x.gz` into a temporary file of 76 bytes: No such file or directory"
    )
    assert caught.value.hint.startswith("set TMPDIR")
