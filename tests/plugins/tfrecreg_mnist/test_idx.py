"""IDX is read whole and exactly, or refused; however its gzip was cut, padded or damaged."""

from __future__ import annotations

import gc
import gzip
import tracemalloc
import zlib
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import RawDataError, UsageError
from tfrecreg_mnist import idx
from tfrecreg_mnist.idx import IdxEntries, read_data, read_idx_header


def content(path: Path, dimensions: int = 3) -> bytes:
    raw = LocalStorage(path.parent)
    return b"".join(read_data(raw, path.name, read_idx_header(raw, path.name, dimensions)))


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_header_is_told_apart_from_data(raw: Any, suffix: str) -> None:
    path = raw.put("x" + suffix, raw.images(5))
    header = read_idx_header(LocalStorage(raw.path), path.name, 3)
    assert header.gzip == bool(suffix)
    assert header.shape == (5, 4, 3)
    assert (header.start, header.entry_size, header.decoded) == (16, 12, 76)
    assert header.stored == path.stat().st_size
    assert content(path) == raw.pixels(5)


def test_suffix_proves_nothing(raw: Any) -> None:
    plain = raw.path / "plain.gz"
    plain.write_bytes(raw.images(5))
    zipped = raw.path / "zipped"
    zipped.write_bytes(gzip.compress(raw.images(5)))
    assert content(plain) == content(zipped) == raw.pixels(5)


@settings(max_examples=60)
@given(st.lists(st.integers(0, 76), max_size=4), st.integers(0, 9), st.integers(0, 9))
def test_any_members_and_padding_give_the_same(
    raw: Any, cuts: list[int], between: int, after: int
) -> None:
    data = raw.images(5)
    edges = [0, *sorted(cuts), len(data)]
    members = [gzip.compress(data[a:b]) for a, b in pairwise(edges)]
    path = raw.path / "x"
    path.write_bytes((b"\0" * between).join(members) + b"\0" * after)
    assert content(path) == raw.pixels(5)


@settings(max_examples=200)
@given(st.data())
def test_damage_is_never_read_as_something_else(raw: Any, data: st.DataObject) -> None:
    whole = gzip.compress(raw.images(5), mtime=0)
    place = data.draw(st.integers(0, len(whole) - 1))
    bad = bytearray(whole)
    bad[place] ^= data.draw(st.integers(1, 255))
    path = raw.path / "x"
    path.write_bytes(bytes(bad))
    # Time and system in gzip's header and the last bits of deflate say nothing about the content:
    # damage to them is harmless. All other must be refused.
    with suppress(RawDataError):
        assert content(path) == raw.pixels(5)


def test_every_cut_is_found(raw: Any) -> None:
    path = raw.path / "x"
    for data in (raw.images(5), gzip.compress(raw.images(5))):
        for length in range(len(data)):
            path.write_bytes(data[:length])
            with pytest.raises(RawDataError, match=r"^`x` is (truncated|empty)|^`x` is not an IDX"):
                content(path)


@pytest.mark.medium
def test_bomb_takes_neither_memory_nor_time(raw: Any) -> None:
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    data = deflate.compress(raw.idx((5, 28, 28), b""))
    zeros = bytes(1 << 20)
    data += b"".join(deflate.compress(zeros) for _ in range(256)) + deflate.flush()
    path = raw.path / "x"
    path.write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises(RawDataError, match="has bytes after its data"):
            content(path)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def open_files() -> set[tuple[str, str]]:
    """Descriptors of this process, and what they are of. Others may close meanwhile."""
    found = set()
    for descriptor in list(Path("/proc/self/fd").iterdir()):
        with suppress(FileNotFoundError):  # the one that listed them is closed by now
            found.add((descriptor.name, str(descriptor.readlink())))
    return found


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is too large to be held in memory."""
    monkeypatch.setattr(idx, "_HELD", 0)


@pytest.fixture(params=["held", "large"])
def either(request: pytest.FixtureRequest) -> None:
    if request.param == "large":
        request.getfixturevalue("large")


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_entries_are_found_at_random(raw: Any, suffix: str) -> None:
    raw.put("x" + suffix, raw.images(5))
    entries = IdxEntries(LocalStorage(raw.path), "x" + suffix, 3)
    for index in (4, 0, 2, 2, 3, 1):
        assert entries.entry(index) == raw.pixels(5)[index * 12 : index * 12 + 12]


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("index", [-1, 5])
def test_entry_that_is_not_there_is_an_error(raw: Any, suffix: str, index: int) -> None:
    raw.put("x" + suffix, raw.images(5))
    entries = IdxEntries(LocalStorage(raw.path), "x" + suffix, 3)
    with pytest.raises(RawDataError, match=f"`x{suffix}` has no entry {index}: it changed during"):
        entries.entry(index)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_large_file_is_closed_with_its_entries(raw: Any, suffix: str) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("this system does not say which files are open")
    raw.put("x" + suffix, raw.images(5))
    before = open_files()
    entries = IdxEntries(LocalStorage(raw.path), "x" + suffix, 3)
    assert entries.entry(0)
    assert open_files() - before
    del entries
    gc.collect()
    assert not open_files() - before


def test_a_small_file_is_not_left_open(raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    raw.put("x.gz", raw.images(5))
    before = open_files()
    entries = IdxEntries(LocalStorage(raw.path), "x.gz", 3)
    assert not open_files() - before
    assert entries.entry(0) == raw.pixels(5)[:12]


@pytest.mark.usefixtures("large")
def test_damaged_gzip_leaves_no_temporary_file(
    raw: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = raw.put("x.gz", raw.images(500))
    path.write_bytes(path.read_bytes()[:-4])
    before = sorted(tmp_path.iterdir())
    with pytest.raises(RawDataError, match="is truncated"):
        IdxEntries(LocalStorage(raw.path), "x.gz", 3)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.usefixtures("large")
def test_no_room_for_the_temporary_file_says_where_to_find_it(
    raw: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    raw.put("x.gz", raw.images(5))
    with pytest.raises(UsageError) as caught:
        IdxEntries(LocalStorage(raw.path), "x.gz", 3)
    assert caught.value.message == (
        "cannot decompress `x.gz` into a temporary file of 76 bytes: No such file or directory"
    )
    assert caught.value.hint.startswith("set TMPDIR")
