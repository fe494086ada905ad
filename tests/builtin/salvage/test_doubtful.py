"""Records that may not belong to the shard are written to a file of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from check_support import framed
from salvage_support import Made, filler, make, payloads_in, put, rescue

from tfrecreg.core.records.framing import frame_header

INSIDE = [filler(number) for number in range(3)]


@pytest.fixture
def made() -> Made:
    inner = framed(*INSIDE)
    return make([filler(9), inner, filler(10), inner, filler(11)])


def damaged(made: Made, *numbers: int) -> bytes:
    """The headers of some records, and what is behind them, are gone."""
    data = bytearray(made.data)
    for number in numbers:
        data[made.offsets[number] : made.offsets[number] + 30] = bytes(30)
    return bytes(data)


def test_between_two_damages_nothing_tells_who_is_inside(made: Made, tmp_path: Path) -> None:
    data = damaged(made, 1, 3)
    shard = rescue(put(tmp_path, data), tmp_path / "out")
    assert payloads_in(tmp_path / "out/x.tfrecord") == [filler(9), filler(11)]
    quarantine = (tmp_path / "out/x.tfrecord.quarantine").read_bytes()
    assert quarantine == data[made.offsets[1] : made.offsets[4]]
    apart = payloads_in(tmp_path / "out/x.tfrecord.doubtful")
    assert apart == [*INSIDE[1:], filler(10), *INSIDE[1:]]
    assert (shard.kept, shard.doubtful, shard.exact) == (2, 5, False)
    (listed,) = json.loads((tmp_path / "out" / "salvage.json").read_bytes())["shards"]
    assert listed["doubtful"] == 5
    assert listed["doubts"]["path"] == "x.tfrecord.doubtful"
    assert "doubtful records" in {cut["what"] for cut in listed["cuts"]}


def test_an_index_tells(made: Made, tmp_path: Path) -> None:
    shard = rescue(put(tmp_path, damaged(made, 1, 3), made.index), tmp_path / "out")
    found = payloads_in(tmp_path / "out/x.tfrecord")
    assert found == [filler(9), filler(10), filler(11)]
    assert (shard.doubtful, shard.lost_keys) == (0, ("k1", "k3"))
    assert not (tmp_path / "out/x.tfrecord.doubtful").exists()


def test_records_inside_one_that_lost_its_footer_are_set_apart(tmp_path: Path) -> None:
    """They lead to the record behind it."""
    made = make([filler(9), framed(*INSIDE), filler(10)])
    behind = made.offsets[2]
    rescue(put(tmp_path, made.data[: behind - 4] + made.data[behind:]), tmp_path / "out")
    assert payloads_in(tmp_path / "out/x.tfrecord") == [*made.payloads[:1], *made.payloads[2:]]
    assert payloads_in(tmp_path / "out/x.tfrecord.doubtful") == INSIDE


def test_a_shard_named_gz_is_gzip_whatever_was_in_it(tmp_path: Path) -> None:
    made = make([filler(number) for number in range(3)])
    path = put(tmp_path, damaged(made, 1), name="x.tfrecord.gz")
    rescue(path, tmp_path / "out")
    assert (tmp_path / "out/x.tfrecord.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert payloads_in(tmp_path / "out/x.tfrecord.gz") == [filler(0), filler(2)]


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("inner", [False, True])
def test_a_header_that_was_read_as_the_data_of_another_hides_no_record(
    tmp_path: Path, inner: bool, indexed: bool
) -> None:
    """A header of 8 bytes before it: with its length as data and their checksum a sound record."""
    payloads = [filler(20), framed(*INSIDE) if inner else filler(21), filler(22), filler(23)]
    made = make(payloads)
    start = made.offsets[1]
    data = made.data[:start] + frame_header(8) + made.data[start:]
    shard = rescue(put(tmp_path, data, made.index if indexed else None), tmp_path / "out")
    kept = payloads_in(tmp_path / "out/x.tfrecord")
    if indexed and inner:  # records inside the second one are read in its place
        assert kept == [payloads[0], *payloads[2:]]
        assert (shard.lost_keys, shard.doubtful) == (("k1",), 0)
    elif indexed:
        assert kept == payloads
        assert (shard.lost, shard.doubtful) == (0, 0)
    elif inner:
        # One record leads to the next, inside the second one: nothing tells.
        assert kept == [payloads[0], made.data[start : start + 8], *INSIDE, *payloads[2:]]
    else:
        assert kept == [payloads[0], *payloads[2:]]
        apart = payloads_in(tmp_path / "out/x.tfrecord.doubtful")
        assert apart == [made.data[start : start + 8], payloads[1]]


def test_a_record_that_one_set_apart_reaches_into_is_set_apart_as_well(tmp_path: Path) -> None:
    """A damaged record, then one of 8 bytes, which are the beginning of the next one's header."""
    payloads = [filler(20), filler(21), filler(22), framed(*INSIDE), filler(23)]
    made = make(payloads)
    begin, start = made.offsets[1], made.offsets[2]
    data = bytearray(made.data[:start] + frame_header(8) + made.data[start:])
    data[begin : begin + 40] = bytes(40)
    shard = rescue(put(tmp_path, bytes(data)), tmp_path / "out")
    saved = payloads_in(tmp_path / "out/x.tfrecord")
    saved += payloads_in(tmp_path / "out/x.tfrecord.doubtful")
    assert {payloads[0], payloads[2], payloads[3], payloads[4]} <= {*saved}
    assert shard.doubtful > 0
