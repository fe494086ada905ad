"""Records that may not belong to the shard are written to a file of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from salvage_support import Made, filler, make, nested, payloads_in, put, report_of, rescue

from tfrecreg.cli.main import main

INSIDE = [filler(number) for number in range(3)]


@pytest.fixture
def made() -> Made:
    inner = nested(*INSIDE)
    return make([filler(9), inner, filler(10), inner, filler(11)])


def damaged(made: Made, *numbers: int) -> bytes:
    """The headers of some records, and what is behind them, are gone."""
    data = bytearray(made.data)
    for number in numbers:
        data[made.offsets[number] : made.offsets[number] + 30] = bytes(30)
    return bytes(data)


def test_between_two_damages_nothing_tells_who_is_inside(made: Made, tmp_path: Path) -> None:
    shard = rescue(put(tmp_path, damaged(made, 1, 3)), tmp_path / "out")
    assert payloads_in(tmp_path / "out/x.tfrecord") == [filler(9), filler(11)]
    apart = payloads_in(tmp_path / "out/x.tfrecord.doubtful")
    assert apart == [*INSIDE[1:], filler(10), *INSIDE[1:]]
    assert (shard.kept, shard.doubtful, shard.exact) == (2, 5, False)
    (listed,) = report_of(tmp_path / "out")["shards"]
    assert listed["doubtful"] == 5
    assert listed["doubts"]["path"] == "x.tfrecord.doubtful"
    assert "doubtful records" in {cut["what"] for cut in listed["cuts"]}


def test_it_is_all_in_quarantine_as_well(made: Made, tmp_path: Path) -> None:
    data = damaged(made, 1, 3)
    rescue(put(tmp_path, data), tmp_path / "out")
    quarantine = (tmp_path / "out/x.tfrecord.quarantine").read_bytes()
    assert quarantine == data[made.offsets[1] : made.offsets[4]]


def test_an_index_tells(made: Made, tmp_path: Path) -> None:
    shard = rescue(put(tmp_path, damaged(made, 1, 3), made.index), tmp_path / "out")
    found = payloads_in(tmp_path / "out/x.tfrecord")
    assert found == [filler(9), filler(10), filler(11)]
    assert (shard.doubtful, shard.lost_keys) == (0, ("k1", "k3"))
    assert not (tmp_path / "out/x.tfrecord.doubtful").exists()


def test_what_leads_to_the_end_is_the_shards(tmp_path: Path) -> None:
    made = make([filler(number) for number in range(5)])
    shard = rescue(put(tmp_path, damaged(made, 1)), tmp_path / "out")
    kept = [filler(number) for number in (0, 2, 3, 4)]
    assert payloads_in(tmp_path / "out/x.tfrecord") == kept
    assert shard.doubtful == 0


def test_a_shard_named_gz_is_gzip_whatever_was_in_it(tmp_path: Path) -> None:
    made = make([filler(number) for number in range(3)])
    path = put(tmp_path, damaged(made, 1), name="x.tfrecord.gz")
    rescue(path, tmp_path / "out")
    assert (tmp_path / "out/x.tfrecord.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert payloads_in(tmp_path / "out/x.tfrecord.gz") == [filler(0), filler(2)]


def test_people_are_told_where_they_are(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(tmp_path, damaged(made, 1, 3))
    assert main(["salvage", str(path), "--output", str(tmp_path / "out")]) == 0
    assert (
        "doubtful: 5 records moved to x.tfrecord.doubtful: they may not belong to the shard"
    ) in " ".join(capsys.readouterr().out.split())
