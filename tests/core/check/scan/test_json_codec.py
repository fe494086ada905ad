"""Parts as JSON: everything comes back, and nothing comes back that was not a part."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
import pytest
from scan_support import ODD

from tfrecreg.builtin.validators.crc import CheckedShard, CrcValidator
from tfrecreg.core.check.scan.tally import JsonCodec, Tally
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.records.batch import StreamEnd
from tfrecreg.core.schema.check import DistinctValues
from tfrecreg.core.schema.definition import ValueCount
from tfrecreg.core.values.findings import MAX_LOCATIONS, Location, Severity, TensorflowOutcome


class Mine(NamedTuple):
    end: StreamEnd
    tally: Tally


def tally(*numbers: int) -> Tally:
    made = Tally()
    for number in numbers:
        place = Location(split="train", shard="a", record=number, detail="x\x1b ü", length=2**40)
        made.add(ODD, "a record is odd", place, split="train", feature="f", subject="a")
    made.add(ODD, "in all", None, count=7)
    return made


END = StreamEnd("gzip", 10, 20, 3, 4, "ab", None)


def test_a_tally_comes_back_with_counts_and_places() -> None:
    codec = JsonCodec(Mine, [ODD])
    before = tally(*range(30))
    before.add(replace(ODD, severity=Severity.INFO), "a record is rather odd", None)
    end, after = codec.unpack(codec.pack(Mine(END, before)))
    assert end == END
    assert list(after.findings("d")) == list(before.findings("d"))
    (odd, *_) = [each for each in after.findings("d") if each.message == "a record is odd"]
    assert (odd.count, len(odd.locations)) == (30, MAX_LOCATIONS)
    merged = tally(99)
    merged.merge(after)
    assert sum(each.count for each in merged.findings("d")) == 31 + 14 + 1


def test_what_tensorflow_does_comes_back() -> None:
    codec: Any = CrcValidator.part_codec
    made = Tally()
    place = Location(shard="a", tensorflow=TensorflowOutcome.CRASHES)
    made.add(CrcValidator.codes[0], "m", place)
    after = codec.unpack(codec.pack(CheckedShard(made, "gzip")))
    assert next(after.faults.findings("")).locations == (place,)
    assert after.compression == "gzip"


def test_different_values_come_back() -> None:
    seen = DistinctValues.within(ValueCount(2, 5))
    seen.add(int64_feature([3, -1, 3]))
    seen.add(bytes_feature([b"\xff\x00", b"", b"x" * 99]))
    codec = JsonCodec(DistinctValues)
    after = codec.unpack(codec.pack(seen))
    assert (after, after.count, after.is_full) == (seen, 5, False)
    after.merge(seen)
    assert after.count == 5


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x04K\x01.",
        b"{}",
        b"[1, 2]",
        b'[{"compression": "gzip"}, []]',
        b'[["gzip",10,20,3,4,"ab",null], [["ODD001","","","","m",1,[]]]]',
    ],
)
def test_other_bytes_are_no_part(data: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        JsonCodec(Mine, [ODD]).unpack(data)


@pytest.mark.parametrize(
    "row",
    [
        [["EVE001", "", "", "", "m"], "error", 1, []],
        [["ODD001", "", "", "", "m"], "error", 0, []],
        [["ODD001", "", "", "", "m\x1b[2J"], "error", 1, []],
        [["ODD001", "", "", "", "m"], "error", 1, [{"shard": 7}]],
    ],
)
def test_rows_that_no_tally_has_are_refused(row: list[Any]) -> None:
    codec = JsonCodec(Tally, [ODD])
    good = msgspec.json.encode([[["ODD001", "", "", "", "m"], "error", 1, []]])
    assert codec.unpack(good)
    with pytest.raises((msgspec.ValidationError, ValueError)):
        codec.unpack(msgspec.json.encode([row]))
