"""Damage to plain shards: what is kept, repaired, lost and quarantined."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from check_support import framed
from salvage_support import Made, filler, make, payloads_in, put, rescue

from tfrecreg.builtin.salvage.model import ShardResult
from tfrecreg.core.records.framing import frame_header

RECORDS = 20
"""Of 60 bytes and 16 around them: record 7 is bytes 532 to 608."""


@pytest.fixture
def made() -> Made:
    return make([filler(number) for number in range(RECORDS)])


def without(made: Made, *numbers: int) -> list[bytes]:
    return [payload for each, payload in enumerate(made.payloads) if each not in numbers]


def together(folder: Path, shard: ShardResult) -> bytes:
    """The original, put together again from the clean shard and the quarantine of a plain one."""
    assert shard.clean is not None
    clean = (folder / shard.clean.path).read_bytes()
    rest = (folder / shard.quarantine.path).read_bytes() if shard.quarantine else b""
    data, taken = b"", 0
    for cut in shard.cuts:
        before = cut.offset - len(data)
        data += clean[taken : taken + before]
        data += b"".join(rest[each.offset : each.offset + each.length] for each in cut.quarantined)
        taken += before + (12 if cut.what == "header" else 0)
    return data + clean[taken:]


@pytest.mark.parametrize(
    ("at", "code", "what"),
    [
        (532, "CRC001", "header"),  # the length
        (541, "CRC001", "header"),  # its checksum
        (550, "CRC002", "record"),  # the payload
        (605, "CRC002", "record"),  # its checksum
    ],
)
@pytest.mark.parametrize("indexed", [True, False])
def test_one_flipped_byte_costs_one_record_at_most(
    tmp_path: Path, made: Made, at: int, code: str, what: str, indexed: bool
) -> None:
    data = bytearray(made.data)
    data[at] ^= 0x10
    path = put(tmp_path, bytes(data), made.index if indexed else None)
    shard = rescue(path, tmp_path / "out")
    (cut,) = shard.cuts
    assert (cut.code, cut.what, cut.offset, cut.record) == (code, what, 532, 7)
    lost = what == "record"
    assert (shard.kept, shard.repaired, shard.lost, shard.exact) == (19, int(not lost), lost, True)
    assert shard.lost_keys == ((("k7",) if lost else ()) if indexed else None)
    clean = payloads_in(tmp_path / "out/x.tfrecord")
    assert clean == (without(made, 7) if lost else list(made.payloads))
    assert (tmp_path / "out/x.tfrecord.quarantine").read_bytes() == bytes(
        data[532 : 608 if lost else 544]
    )
    assert together(tmp_path / "out", shard) == bytes(data)


def test_a_repaired_shard_is_the_one_that_it_was(tmp_path: Path, made: Made) -> None:
    data = bytearray(made.data)
    data[532:544] = b"\xee" * 12
    rescue(put(tmp_path, bytes(data)), tmp_path / "out")
    assert (tmp_path / "out/x.tfrecord").read_bytes() == made.data


def test_a_length_that_no_record_has_is_repaired(tmp_path: Path, made: Made) -> None:
    data = bytearray(made.data)
    data[532:544] = frame_header(1 << 40)
    shard = rescue(put(tmp_path, bytes(data)), tmp_path / "out")
    (cut,) = shard.cuts
    assert (cut.code, cut.what) == ("CRC005", "header")
    assert (tmp_path / "out/x.tfrecord").read_bytes() == made.data
    data[560] ^= 1  # no length makes a record of this payload
    rescue(put(tmp_path, bytes(data)), tmp_path / "more")
    assert payloads_in(tmp_path / "more/x.tfrecord") == without(made, 7)


@pytest.mark.parametrize("indexed", [True, False])
def test_zeroed_stretch_costs_what_it_touches(tmp_path: Path, made: Made, indexed: bool) -> None:
    data = bytearray(made.data)
    data[550:700] = bytes(150)  # ends in record 9
    path = put(tmp_path, bytes(data), made.index if indexed else None)
    shard = rescue(path, tmp_path / "out")
    assert payloads_in(tmp_path / "out/x.tfrecord") == without(made, 7, 8, 9)
    assert shard.lost_keys == (("k7", "k8", "k9") if indexed else None)
    if indexed:
        assert (shard.lost, shard.exact) == (3, True)
    else:
        assert 1 <= shard.lost <= 3
        assert not shard.exact or shard.lost == 3
    assert together(tmp_path / "out", shard) == bytes(data)


@pytest.mark.parametrize("left", [1, 5, 12, 30, 75])
@pytest.mark.parametrize("indexed", [True, False])
def test_cut_inside_a_record(tmp_path: Path, made: Made, left: int, indexed: bool) -> None:
    data = made.data[: 532 + left]
    shard = rescue(put(tmp_path, data, made.index if indexed else None), tmp_path / "out")
    assert payloads_in(tmp_path / "out/x.tfrecord") == list(made.payloads[:7])
    assert (tmp_path / "out/x.tfrecord.quarantine").read_bytes() == data[532:]
    if indexed:
        assert (shard.lost, shard.exact) == (13, True)
        assert shard.lost_keys == tuple(f"k{number}" for number in range(7, 20))
    else:
        assert (shard.exact, shard.lost_keys) == (False, None)


def test_cut_between_two_records_is_told_by_the_index_alone(tmp_path: Path, made: Made) -> None:
    shard = rescue(put(tmp_path, made.data[:532], made.index), tmp_path / "indexed")
    assert (shard.status, shard.kept, shard.lost, shard.exact) == ("salvaged", 7, 13, True)
    assert shard.cuts == ()
    assert shard.quarantine is None
    assert json.loads((tmp_path / "indexed" / "salvage.json").read_bytes())["damaged"] is True
    bare = rescue(put(tmp_path, made.data[:532], name="bare.tfrecord"), tmp_path / "bare")
    assert (bare.status, bare.kept, bare.lost) == ("sound", 7, 0)


@pytest.mark.parametrize("garbage", [b"\x07" * 5, b"garbage " * 10, bytes(64)])
@pytest.mark.parametrize("indexed", [True, False])
def test_trailing_bytes_go_into_quarantine(
    tmp_path: Path, made: Made, garbage: bytes, indexed: bool
) -> None:
    path = put(tmp_path, made.data + garbage, made.index if indexed else None)
    shard = rescue(path, tmp_path / "out")
    (cut,) = shard.cuts
    assert (cut.code, cut.what, cut.length) == ("CRC004", "trailing bytes", len(garbage))
    # They may be what is left of records, unless an index says that there are none.
    assert (shard.lost, shard.exact) == (0, indexed)
    assert (tmp_path / "out/x.tfrecord").read_bytes() == made.data
    assert (tmp_path / "out/x.tfrecord.quarantine").read_bytes() == garbage


def test_records_that_moved_keep_their_keys(tmp_path: Path, made: Made) -> None:
    # All of the same length: where record 3 was, record 4 is now.
    data = made.data[:228] + made.data[304:700] + made.data[708:]
    shard = rescue(put(tmp_path, data, made.index), tmp_path / "out")
    assert payloads_in(tmp_path / "out/x.tfrecord") == without(made, 3, 9)
    assert (shard.lost_keys, shard.lost, shard.exact) == (("k3", "k9"), 2, True)


def test_an_index_of_another_shard_is_no_help_and_no_harm(tmp_path: Path, made: Made) -> None:
    other = make([filler(number + 500) for number in range(RECORDS)])
    data = bytearray(made.data)
    data[550] ^= 1
    shard = rescue(put(tmp_path, bytes(data), other.index), tmp_path / "out")
    assert payloads_in(tmp_path / "out/x.tfrecord") == without(made, 7)
    assert (shard.lost, shard.exact, shard.lost_keys) == (1, True, None)
    assert shard.reason == "the index belongs to another shard: it has 0 of 19 records"


def test_a_damaged_index_is_no_help_and_no_harm(tmp_path: Path, made: Made) -> None:
    data = bytearray(made.data)
    data[550] ^= 1
    shard = rescue(put(tmp_path, bytes(data), made.index[:-1] + b"?"), tmp_path / "out")
    assert payloads_in(tmp_path / "out/x.tfrecord") == without(made, 7)
    assert shard.lost_keys is None
    assert shard.reason.startswith("the index is not usable: `index/x.tfrecord.index` was changed")


class TestRecordsInsideRecords:
    """A payload that is a TFRecord itself: its records are none of the shard's."""

    @pytest.fixture
    def made(self) -> Made:
        inner = framed(*(filler(100 + each) for each in range(5)))
        return make([filler(0), inner, filler(2), filler(3)])

    @pytest.mark.parametrize("indexed", [True, False])
    @pytest.mark.parametrize("where", [slice(76, 84), slice(84, 88), slice(76, 88)])
    def test_damaged_header_around_them_is_repaired(
        self, tmp_path: Path, made: Made, where: slice, indexed: bool
    ) -> None:
        data = bytearray(made.data)
        data[where] = b"\xa5" * (where.stop - where.start)
        path = put(tmp_path, bytes(data), made.index if indexed else None)
        shard = rescue(path, tmp_path / "out")
        assert (shard.kept, shard.repaired, shard.lost) == (3, 1, 0)
        assert (tmp_path / "out/x.tfrecord").read_bytes() == made.data

    @pytest.mark.parametrize("indexed", [True, False])
    def test_damaged_data_loses_them_all(self, tmp_path: Path, made: Made, indexed: bool) -> None:
        data = bytearray(made.data)
        data[made.offsets[1] + 40] ^= 1
        path = put(tmp_path, bytes(data), made.index if indexed else None)
        shard = rescue(path, tmp_path / "out")
        assert (shard.kept, shard.repaired, shard.lost) == (3, 0, 1)
        assert payloads_in(tmp_path / "out/x.tfrecord") == without(made, 1)

    def test_header_and_data_damaged_is_told_by_the_index(self, tmp_path: Path, made: Made) -> None:
        data = bytearray(made.data)
        data[76:130] = b"\xa5" * 54
        del data[200:203]  # so that no offset fits any more
        shard = rescue(put(tmp_path, bytes(data), made.index), tmp_path / "out")
        assert payloads_in(tmp_path / "out/x.tfrecord") == without(made, 1)
        assert shard.lost_keys == ("k1",)
        assert {cut.what for cut in shard.cuts} >= {"unknown record"}


@pytest.mark.parametrize("name", ["x.tfrecord", "x.tfrecord.gz"])
def test_an_empty_shard_is_sound_unless_its_index_names_records(tmp_path: Path, name: str) -> None:
    shard = rescue(put(tmp_path, b"", name=name), tmp_path / "out")
    assert (shard.status, shard.kept, shard.lost, shard.exact) == ("sound", 0, 0, True)
    assert (tmp_path / "out" / name).read_bytes() == b""
    shard = rescue(put(tmp_path, b"", make([filler(0), filler(1)]).index), tmp_path / "more")
    assert (shard.status, shard.lost_keys) == ("salvaged", ("k0", "k1"))


def test_payloads_may_be_empty(tmp_path: Path) -> None:
    made = make([b""] * 8)
    data = bytearray(made.data)
    data[33] ^= 4
    shard = rescue(put(tmp_path, bytes(data)), tmp_path / "out")
    assert (shard.kept, shard.repaired) == (7, 1)
    assert (tmp_path / "out/x.tfrecord").read_bytes() == made.data


def test_sound_shard_is_copied_as_it_is(tmp_path: Path, made: Made) -> None:
    shard = rescue(put(tmp_path, made.data, made.index), tmp_path / "out")
    assert (shard.status, shard.kept, shard.lost, shard.lost_keys) == ("sound", RECORDS, 0, ())
    assert (tmp_path / "out/x.tfrecord").read_bytes() == made.data
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == [
        "salvage.json",
        "x.tfrecord",
    ]
    assert shard.clean is not None
    assert shard.original is not None
    assert (shard.clean.path, shard.clean.bytes) == ("x.tfrecord", len(made.data))
    assert shard.clean.blake3 == shard.original.blake3
    assert json.loads((tmp_path / "out" / "salvage.json").read_bytes())["damaged"] is False


def test_cuts_are_listed_up_to_a_limit_and_all_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfrecreg.builtin.salvage.shard.MOST_CUTS", 3)
    made = make([filler(number) for number in range(RECORDS)])
    data = bytearray(made.data)
    for offset in made.offsets[::2]:
        data[offset + 20] ^= 1
    shard = rescue(put(tmp_path, bytes(data)), tmp_path / "out")
    assert (len(shard.cuts), shard.cuts_total, shard.lost) == (3, 10, 10)
    assert shard.quarantine is not None
    assert shard.quarantine.bytes == 10 * 76


@pytest.mark.slow
def test_records_too_large_to_be_held_stream_by(tmp_path: Path) -> None:
    large = bytes((1 << 20) * 65)
    path = tmp_path / "x.tfrecord"
    with path.open("wb") as file:
        for payload in (filler(0), large, filler(1)):
            file.write(framed(payload))
    data = bytearray(path.read_bytes())
    shard = rescue(path, tmp_path / "sound")
    assert (shard.status, shard.kept) == ("sound", 3)
    assert (tmp_path / "sound/x.tfrecord").read_bytes() == data
    data[76] ^= 1  # the large record's length
    path.write_bytes(data)
    shard = rescue(path, tmp_path / "header")
    assert (shard.kept, shard.repaired, shard.lost) == (2, 1, 0)
    assert payloads_in(tmp_path / "header/x.tfrecord") == [filler(0), large, filler(1)]
    data[76] ^= 1
    data[5000] ^= 1
    path.write_bytes(data)
    shard = rescue(path, tmp_path / "data")
    assert (shard.kept, shard.repaired, shard.lost) == (2, 0, 1)
    assert payloads_in(tmp_path / "data/x.tfrecord") == [filler(0), filler(1)]
    assert struct.unpack_from("<Q", (tmp_path / "data/x.tfrecord.quarantine").read_bytes()) == (
        len(large),
    )
