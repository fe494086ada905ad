"""Damage to the bytes of a shard, planted and found: which code, which record, what is left."""

from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from check_support import Digits, Document, document, framed, places
from tests_support import flip

from tfrecreg.core.records.framing import frame_header
from tfrecreg.core.values.codes import CORE_CODES
from tfrecreg.core.values.findings import MAX_LOCATIONS

READS = "reads without an error"
PAYLOADS = [bytes([number]) * (20 + number) for number in range(30)]


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    """Thirty records in one bare file."""
    path = tmp_path / "x.tfrecord"
    path.write_bytes(framed(*PAYLOADS))
    return path


def crc(*paths: Path) -> Document:
    return document(paths, only=("crc",))


def only_finding(found: Document) -> Document:
    (finding,) = found["findings"]
    assert found["status"] == "fail"
    assert finding["severity"] == "error"
    assert finding["count"] == len(finding["locations"]) == 1
    return {**finding, "at": finding["locations"][0]}


def test_sound_records_are_no_news(sound: Path) -> None:
    found = crc(sound)
    assert (found["status"], found["findings"], found["validators"]) == ("pass", [], ["crc"])
    assert found["summary"]["records"] == 30
    assert found["summary"]["payload_bytes"] == sum(map(len, PAYLOADS))


class TestCRC001:
    def test_a_length_that_its_checksum_denies(self, sound: Path) -> None:
        offset, length = places(sound.read_bytes())[7]
        flip(sound, offset, 1)
        found = crc(sound)
        finding = only_finding(found)
        assert (finding["code"], finding["rule"]) == ("CRC001", "length-checksum")
        assert finding["fingerprint"] == f"CRC001::::{sound}"
        assert finding["at"]["shard"] == str(sound)
        assert (finding["at"]["record"], finding["at"]["offset"]) == (7, offset)
        assert finding["at"]["length"] == length
        assert f"length should be {length}, found {length ^ 1}" in finding["at"]["detail"]
        assert "the data are intact" in finding["at"]["detail"]
        assert found["summary"]["records"] == 29

    def test_a_damaged_checksum_over_a_length_that_is_right(self, sound: Path) -> None:
        offset, length = places(sound.read_bytes())[0]
        flip(sound, offset + 9)
        finding = only_finding(crc(sound))
        assert finding["code"] == "CRC001"
        assert f"the length {length} itself is right" in finding["at"]["detail"]

    def test_a_header_that_was_overwritten_costs_one_record(self, sound: Path) -> None:
        data = bytearray(sound.read_bytes())
        offset, _ = places(bytes(data))[12]
        data[offset : offset + 12] = b"\xa5" * 12
        sound.write_bytes(data)
        found = crc(sound)
        finding = only_finding(found)
        assert (finding["code"], finding["at"]["record"]) == ("CRC001", 12)
        assert finding["at"]["offset"] == offset
        assert found["summary"]["records"] == 29


class TestCRC002:
    def test_a_payload_that_its_checksum_denies(self, sound: Path) -> None:
        offset, length = places(sound.read_bytes())[7]
        flip(sound, offset + 12 + length - 1)
        found = crc(sound)
        finding = only_finding(found)
        assert (finding["code"], finding["rule"]) == ("CRC002", "data-checksum")
        at = finding["at"]
        assert (at["record"], at["offset"], at["length"]) == (7, offset, length)
        assert at["detail"].startswith("data checksum should be 0x")
        assert found["summary"]["records"] == 29

    def test_a_damaged_checksum_over_data(self, sound: Path) -> None:
        offset, length = places(sound.read_bytes())[29]
        flip(sound, offset + 12 + length)
        finding = only_finding(crc(sound))
        assert (finding["code"], finding["at"]["record"]) == ("CRC002", 29)

    def test_in_a_build_split_shard_and_key_are_named(self, digits: Digits) -> None:
        shard = digits.path("train", 1)
        offset, length = places(shard.read_bytes())[3]
        flip(shard, offset + 40)
        finding = only_finding(digits.check("crc"))
        assert finding["fingerprint"] == f"CRC002:digits:train::{shard.name}"
        at = finding["at"]
        assert (at["split"], at["shard"], at["record"]) == ("train", shard.name, 3)
        assert (at["offset"], at["length"]) == (offset, length)
        assert at["key"].isdigit()

    def test_many_are_counted_and_the_first_twenty_are_named(self, sound: Path) -> None:
        for offset, _ in places(sound.read_bytes())[2:27]:
            flip(sound, offset + 13)
        found = crc(sound)
        (finding,) = found["findings"]
        assert finding["count"] == 25
        assert [at["record"] for at in finding["locations"]] == list(range(2, 2 + MAX_LOCATIONS))
        assert found["summary"]["records"] == 5

    def test_each_shard_has_its_finding(self, digits: Digits) -> None:
        damaged = [digits.path("test", 0), digits.path("train", 0), digits.path("train", 1)]
        for path in damaged:
            flip(path, 30)
        found = digits.check("crc")
        assert [each["fingerprint"] for each in found["findings"]] == [
            f"CRC002:digits:{path.name.split('.')[0].split('-')[1]}::{path.name}"
            for path in damaged
        ]

    def test_damage_of_two_kinds_is_two_findings(self, sound: Path) -> None:
        spots = places(sound.read_bytes())
        flip(sound, spots[3][0] + 15)
        flip(sound, spots[20][0])
        found = crc(sound)
        assert [(each["code"], each["locations"][0]["record"]) for each in found["findings"]] == [
            ("CRC001", 20),
            ("CRC002", 3),
        ]


class TestCRC003:
    @pytest.mark.parametrize("cut", [1, 3, 4, 5, 20, 36])
    def test_a_file_that_ends_in_a_record(self, sound: Path, cut: int) -> None:
        data = sound.read_bytes()
        offset, length = places(data)[-1]
        sound.write_bytes(data[:-cut])
        found = crc(sound)
        finding = only_finding(found)
        assert (finding["code"], finding["rule"]) == ("CRC003", "truncated")
        assert (finding["at"]["record"], finding["at"]["offset"]) == (29, offset)
        assert finding["at"]["detail"] == (
            f"the record should end at byte {offset + length + 16}, "
            f"but the stream ends at byte {len(data) - cut}"
        )
        assert found["summary"]["records"] == 29


class TestCRC004:
    @pytest.mark.parametrize("left", range(1, 12))
    def test_a_header_that_was_cut_short(self, sound: Path, left: int) -> None:
        """TensorFlow reads these as a normal end of the file."""
        data = sound.read_bytes()
        offset, _ = places(data)[-1]
        sound.write_bytes(data[: offset + left])
        found = crc(sound)
        finding = only_finding(found)
        assert (finding["code"], finding["rule"]) == ("CRC004", "trailing-bytes")
        assert (finding["at"]["offset"], finding["at"]["length"]) == (offset, left)
        assert found["summary"]["records"] == 29

    @pytest.mark.parametrize(
        "padding", [b"\n", b"\0" * 512, b"the end of the file", b"\xff" * 4096]
    )
    def test_something_that_was_appended(self, sound: Path, padding: bytes) -> None:
        size = sound.stat().st_size
        sound.write_bytes(sound.read_bytes() + padding)
        found = crc(sound)
        finding = only_finding(found)
        assert finding["code"] == "CRC004"
        assert (finding["at"]["offset"], finding["at"]["length"]) == (size, len(padding))
        assert found["summary"]["records"] == 30


class TestCRC005:
    @pytest.mark.parametrize("length", [2**31 + 1, 2**40, 2**64 - 1])
    def test_a_length_that_no_file_could_hold(self, tmp_path: Path, length: int) -> None:
        """At 2^40 TensorFlow crashes, and Beam is out of memory."""
        crafted = tmp_path / "x.tfrecord"
        crafted.write_bytes(framed(b"first") + frame_header(length) + b"data" + b"\0" * 4)
        finding = only_finding(crc(crafted))
        assert (finding["code"], finding["rule"]) == ("CRC005", "impossible-length")
        assert (finding["at"]["record"], finding["at"]["offset"]) == (1, 21)
        assert f"length should be at most {2**31}, found {length}" in finding["at"]["detail"]

    def test_the_records_behind_it_are_still_checked(self, tmp_path: Path) -> None:
        crafted = tmp_path / "x.tfrecord"
        crafted.write_bytes(framed(b"first") + frame_header(2**40) + framed(b"second", b"third"))
        found = crc(crafted)
        assert only_finding(found)["code"] == "CRC005"
        assert found["summary"]["records"] == 3

    def test_the_longest_record_there_can_be_is_only_cut_short(self, tmp_path: Path) -> None:
        crafted = tmp_path / "x.tfrecord"
        crafted.write_bytes(frame_header(2**31) + b"data")
        assert only_finding(crc(crafted))["code"] == "CRC003"


class TestCRC006:
    def test_gzip_where_the_manifest_says_none(self, digits: Digits) -> None:
        shard = digits.path("test", 0)
        shard.write_bytes(gzip.compress(shard.read_bytes(), mtime=0))
        found = digits.check("crc")
        finding = only_finding(found)
        assert (finding["code"], finding["rule"]) == ("CRC006", "compression-mismatch")
        assert (finding["at"]["split"], finding["at"]["shard"]) == ("test", shard.name)
        assert finding["at"]["detail"] == "compression should be `none`, found `gzip`"
        # What is really there is read all the same.
        assert found["summary"]["records"] == 260

    def test_plain_where_the_manifest_says_gzip(self, digits: Digits) -> None:
        compressed = build_gzip(digits)
        shard = compressed / "packed-test.tfrecord-00000-of-00001"
        shard.write_bytes(gzip.decompress(shard.read_bytes()))
        found = digits.check("crc", target="packed")
        finding = only_finding(found)
        assert finding["code"] == "CRC006"
        assert finding["at"]["detail"] == "compression should be `gzip`, found `none`"
        assert found["summary"]["records"] == 260

    def test_the_suffix_of_a_bare_file_says_nothing(self, sound: Path) -> None:
        packed = sound.with_name("x.tfrecord.gz")
        packed.write_bytes(sound.read_bytes())
        sound.write_bytes(gzip.compress(sound.read_bytes()))
        found = crc(sound, packed)
        assert (found["status"], found["summary"]["records"]) == ("pass", 60)

    def test_bare_files_of_one_set_are_to_be_compressed_alike(self, tmp_path: Path) -> None:
        stream = framed(b"one", b"two")
        for number in range(5):
            data = stream if number == 3 else gzip.compress(stream)
            (tmp_path / f"x-{number:05d}-of-00005.tfrecord").write_bytes(data)
        found = crc(tmp_path)
        finding = only_finding(found)
        assert finding["code"] == "CRC006"
        assert finding["at"]["shard"] == f"{tmp_path}/x-00003-of-00005.tfrecord"
        assert finding["at"]["offset"] == 0
        assert finding["at"]["tensorflow"] == "stops here"
        assert finding["at"]["detail"] == (
            "compression should be `gzip`, as in 4 of the 5 shards of its set, found `none`"
        )
        assert found["summary"]["records"] == 10

    def test_other_sets_and_files_without_records_do_not_count(self, tmp_path: Path) -> None:
        stream = framed(b"one", b"two")
        files = {
            "train-00000-of-00002": gzip.compress(stream),
            "train-00001-of-00002": b"",
            "test-00000-of-00001": stream,
            "a.tfrecord": stream,
            "b.tfrecord": gzip.compress(stream),
        }
        for name, data in files.items():
            (tmp_path / name).write_bytes(data)
        assert crc(tmp_path)["findings"] == []


def build_gzip(digits: Digits) -> Path:
    """The same raw data as a second dataset, in gzip; its folder."""
    from tfrecreg.builtin.python_data.build import build
    from tfrecreg.core.build.request import BuildRequest
    from tfrecreg.core.registry.registry import open_registry

    raw = str(digits.root / "raw")
    request = BuildRequest(name="packed", source="mnist", raw=raw, compression="gzip")
    build(open_registry(digits.root), request)
    return digits.root / "data/packed"


class TestCRC007:
    def test_a_gzip_trailer_that_does_not_match(self, digits: Digits) -> None:
        shard = build_gzip(digits) / "packed-train.tfrecord-00000-of-00001"
        flip(shard, shard.stat().st_size - 6)
        finding = only_finding(digits.check("crc", target="packed"))
        assert (finding["code"], finding["rule"]) == ("CRC007", "damaged-gzip")
        assert finding["at"]["shard"] == shard.name

    def test_a_gzip_stream_that_is_cut(self, sound: Path) -> None:
        data = gzip.compress(sound.read_bytes())
        for cut in (1, 8, len(data) // 2):
            sound.write_bytes(data[:-cut])
            assert {each["code"] for each in crc(sound)["findings"]} == {"CRC007"}, cut

    def test_something_behind_the_last_member(self, sound: Path) -> None:
        sound.write_bytes(gzip.compress(sound.read_bytes()) + b"this is no member")
        found = crc(sound)
        assert only_finding(found)["code"] == "CRC007"
        assert found["summary"]["records"] == 30

    def test_several_members_are_sound(self, sound: Path) -> None:
        data = sound.read_bytes()
        sound.write_bytes(gzip.compress(data[:100]) + gzip.compress(data[100:]))
        found = crc(sound)
        assert (found["status"], found["summary"]["records"]) == ("pass", 30)

    @pytest.mark.parametrize("zeros", [1, 512])
    def test_zeros_behind_the_last_member(self, sound: Path, zeros: int) -> None:
        """`gzip` passes over them; TensorFlow does not, as soon as there are two."""
        sound.write_bytes(gzip.compress(sound.read_bytes()) + bytes(zeros))
        found = crc(sound)
        finding = only_finding(found)
        assert finding["code"] == "CRC007"
        assert "only zeros follow up to the file" in finding["at"]["detail"]
        assert finding["at"]["tensorflow"] == ("stops here" if zeros > 1 else READS)
        assert found["summary"]["records"] == 30


class TestCRC009:
    def test_an_empty_member_with_others_behind_it(self, sound: Path) -> None:
        data = sound.read_bytes()
        cut = places(data)[10][0]
        begin = gzip.compress(data[:cut])
        sound.write_bytes(begin + gzip.compress(b"") + gzip.compress(data[cut:]))
        found = crc(sound)
        finding = only_finding(found)
        assert (finding["code"], finding["rule"]) == ("CRC009", "gzip-misread")
        at = finding["at"]
        assert (at["offset"], at["tensorflow"]) == (cut, READS)
        size = sound.stat().st_size
        end = len(begin) + 20
        assert at["detail"] == (
            f"gzip member at byte {len(begin)} of the file: it ends at byte {end}, and TensorFlow "
            f"does not read the {size - end} bytes after it"
        )
        assert found["summary"]["records"] == 30

    def test_an_empty_member_at_the_end_is_sound(self, sound: Path) -> None:
        """As `bgzip` ends every file."""
        sound.write_bytes(gzip.compress(sound.read_bytes()) + gzip.compress(b""))
        assert (crc(sound)["status"], crc(sound)["findings"]) == ("pass", [])


class TestCRC008:
    @pytest.mark.parametrize(
        ("data", "kind"),
        [
            (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git-LFS"),
            (b"image,label\n1.png,2\n" * 50, ""),
            (b"\x89PNG\r\n\x1a\n" + b"\0" * 500, "PNG"),
            (b"PK\x03\x04" + b"x" * 500, "ZIP"),
        ],
    )
    def test_another_file_under_this_name(self, tmp_path: Path, data: bytes, kind: str) -> None:
        path = tmp_path / "x.tfrecord"
        path.write_bytes(data)
        found = crc(path)
        finding = only_finding(found)
        assert (finding["code"], finding["rule"]) == ("CRC008", "not-tfrecord")
        assert finding["at"]["offset"] == 0
        assert f"no valid record in {len(data)} bytes" in finding["at"]["detail"]
        assert kind in finding["at"]["detail"]
        assert found["summary"]["records"] == 0

    def test_nothing_else_is_said_of_such_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "x.tfrecord").write_bytes(b"text " * 99)
        found = document([tmp_path / "x.tfrecord"])
        assert [each["code"] for each in found["findings"]] == ["CRC008"]

    def test_one_sound_record_makes_it_a_tfrecord(self, tmp_path: Path) -> None:
        path = tmp_path / "x.tfrecord"
        path.write_bytes(b"some bytes in front of it" + framed(b"a record", b"and another"))
        found = crc(path)
        assert only_finding(found)["code"] == "CRC001"
        assert found["summary"]["records"] == 2


def test_any_damaged_byte_is_found_in_its_record_and_costs_no_other(digits: Digits) -> None:
    shard = digits.path("test", 1)
    data = shard.read_bytes()
    spots = places(data)
    dice = random.Random(7)
    for _ in range(60):
        at = dice.randrange(len(data))
        (number,) = (
            n for n, (offset, size) in enumerate(spots) if offset <= at < offset + size + 16
        )
        damaged = bytearray(data)
        damaged[at] ^= 1 << dice.randrange(8)
        shard.write_bytes(damaged)
        found = document([shard], only=("crc",))
        finding = only_finding(found)
        in_header = at < spots[number][0] + 12
        assert finding["code"] == ("CRC001" if in_header else "CRC002"), at
        assert (finding["at"]["record"], finding["at"]["offset"]) == (number, spots[number][0])
        assert found["summary"]["records"] == len(spots) - 1


@pytest.mark.parametrize(
    ("change", "code", "outcome"),
    [
        (lambda data: b"\x01" + data[1:], "CRC001", "stops here"),
        (lambda data: data[:20] + b"?" + data[21:], "CRC002", "stops here"),
        (lambda data: data[:-1], "CRC003", "stops here"),
        (lambda data: data + bytes(11), "CRC004", "reads without an error"),
        (lambda data: data + bytes(12), "CRC004", "stops here"),
        (lambda data: data + frame_header(2**40) + b"data", "CRC005", "crashes"),
        (lambda data: data + frame_header(2**32) + b"data", "CRC005", "stops here"),
        (lambda data: gzip.compress(data)[:-1], "CRC007", "reads without an error"),
        (lambda data: gzip.compress(data)[:-9] + bytes(9), "CRC007", "stops here"),
        (lambda data: b"text text", "CRC008", "reads without an error"),
        (lambda data: b"a longer text", "CRC008", "stops here"),
    ],
)
def test_what_tensorflow_does_is_said_of_each_place(
    sound: Path, change: Callable[[bytes], bytes], code: str, outcome: str
) -> None:
    sound.write_bytes(change(sound.read_bytes()))
    finding = only_finding(crc(sound))
    assert (finding["code"], finding["at"]["tensorflow"]) == (code, outcome)
    assert outcome in [each.value for each in CORE_CODES[code].tensorflow]


def test_checksums_are_those_of_the_format() -> None:
    """By the definition in TensorFlow's sources, without the code that is tested."""
    payload = b"123456789"
    crc32c = 0xE3069283  # the check value of CRC-32C for these nine digits
    masked = ((crc32c >> 15 | crc32c << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF
    assert framed(payload)[-4:] == struct.pack("<I", masked)
