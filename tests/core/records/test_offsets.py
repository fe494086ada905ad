"""Sidecars of other tools: written as `tfrecord2idx` does, and believed only as far as they fit."""

from __future__ import annotations

import gzip
import itertools
import struct
from pathlib import Path

import numpy as np
import pytest
from check_support import framed
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests_support import flip

from tfrecreg.builtin.export.files import render_sidecar
from tfrecreg.core.records.reading.access import Records, read
from tfrecreg.core.records.reading.offsets import parse_sidecar
from tfrecreg.core.values.errors import DamagedRecordError, UsageError

PAYLOADS = [b"", b"ab", bytes(300), b"c"]
STREAM = b"".join(map(framed, PAYLOADS))
LINES = b"0 16\n16 18\n34 316\n350 17\n"


def rendered(lengths: list[int]) -> bytes:
    offsets = itertools.accumulate((length + 16 for length in lengths), initial=0)
    return render_sidecar([*offsets][:-1], lengths)


def as_tfrecord2idx_does(path: Path) -> bytes:
    """What the tool's loop makes of a file: where each record starts, and bytes to the next."""
    lines = []
    with path.open("rb") as file:
        while len(length := file.read(8)) == 8:
            start = file.tell() - 8
            file.seek(4 + struct.unpack("<Q", length)[0] + 4, 1)
            lines.append(f"{start} {file.tell() - start}\n")
    return "".join(lines).encode()


def test_a_line_is_an_offset_and_a_size_with_the_frame(tmp_path: Path) -> None:
    assert rendered([*map(len, PAYLOADS)]) == LINES
    (tmp_path / "a").write_bytes(STREAM)
    assert as_tfrecord2idx_does(tmp_path / "a") == LINES


@settings(max_examples=50)
@given(st.lists(st.integers(0, 2**31), max_size=50))
@example([])
def test_what_is_written_is_read_again(lengths: list[int]) -> None:
    found = parse_sidecar(rendered(lengths), "x")
    assert found.dtype == np.int64
    assert found.tolist() == lengths


def test_lines_may_end_as_on_windows_and_the_last_one_not_at_all() -> None:
    for data in (LINES.replace(b"\n", b"\r\n"), LINES.rstrip(), LINES + b"\n"):
        assert parse_sidecar(data, "x").tolist() == [0, 2, 300, 1]


@pytest.mark.parametrize(
    "data",
    [
        *(b"0 16\n16\n", b"0 16 1\n16 18 2\n", b"\x80\x04pickle", b"0 -16\n", b"0 1_6\n"),
        *(b"0 99999999999999999999\n", b"0 16\n16 15\n", b"0 16\n17 16\n", b"16 16\n"),
    ],
)
def test_other_lines_are_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match="`x` is not an index of records: expected lines"):
        parse_sidecar(data, "x")


def test_records_are_read_by_one(tmp_path: Path) -> None:
    path, sidecar = tmp_path / "a", tmp_path / "a.idx"
    path.write_bytes(STREAM)
    sidecar.write_bytes(LINES)
    assert read(path, slice(None), index=sidecar) == PAYLOADS
    with Records(path, index=sidecar) as records:
        assert records.offsets.tolist() == [0, 16, 34, 350]
    flip(path, 16 + 8)
    with pytest.raises(DamagedRecordError, match=r"record 1 of .* at byte 16, is damaged: CRC001"):
        read(path, 1, index=sidecar)


def test_one_of_another_file_is_refused(tmp_path: Path) -> None:
    path, sidecar = tmp_path / "a", tmp_path / "a.idx"
    path.write_bytes(STREAM)
    sidecar.write_bytes(LINES[:-7])
    with pytest.raises(UsageError) as caught:
        read(path, 0, index=sidecar)
    assert caught.value.message == (
        f"`a.idx` is not the index of `{path}`: the index lists records up to byte 350, "
        "but the file ends at byte 367"
    )
    # The same size in all, and other records: noticed at the record itself.
    sidecar.write_bytes(b"0 17\n17 17\n34 316\n350 17\n")
    assert read(path, 3, index=sidecar) == b"c"
    with pytest.raises(
        DamagedRecordError, match=r"record 0 of .*: its length should be 1 according to the index"
    ):
        read(path, 0, index=sidecar)


def test_gzip_has_none(tmp_path: Path) -> None:
    path, sidecar = tmp_path / "a", tmp_path / "a.idx"
    path.write_bytes(gzip.compress(STREAM))
    sidecar.write_bytes(LINES)
    with pytest.raises(UsageError) as caught:
        read(path, 0, index=sidecar)
    assert caught.value.message == f"`a.idx` has offsets of a plain file, but `{path}` is gzip"
