"""Damage to gzip shards: members are cut out of the file as they lie, records out of the stream."""

from __future__ import annotations

import gzip
import random
import zlib
from pathlib import Path

import pytest
from check_support import framed
from memory_support import see
from salvage_support import Made, filler, make, payloads_in, put, rescue

from tfrecreg.core.records.framing import frame_header
from tfrecreg.core.records.gzip_reader import GzipStream
from tfrecreg.core.records.gzip_writer import MEMBER_HEADER, TRAILER

RECORDS = 40


def noise(number: int) -> bytes:
    """What deflate finds nothing to repeat in."""
    return random.Random(number).randbytes(60)


@pytest.fixture
def made() -> Made:
    """Ten members of four records each."""
    return make([noise(number) for number in range(RECORDS)], member_bytes=300)


def member(made: Made, number: int) -> tuple[int, int]:
    """Where a member of the file begins and ends."""
    starts = [*(file for file, _ in made.members), len(made.data)]
    return starts[number], starts[number + 1]


@pytest.mark.parametrize("indexed", [True, False])
def test_damaged_member_is_lost_and_quarantined_whole(
    tmp_path: Path, made: Made, indexed: bool
) -> None:
    begin, end = member(made, 3)
    data = bytearray(made.data)
    data[begin + 14] ^= 0xFF  # early in its data: none of its records is left
    path = put(tmp_path, bytes(data), made.index if indexed else None)
    shard = rescue(path, tmp_path / "out")
    assert payloads_in(tmp_path / "out/x.tfrecord") == [*made.payloads[:12], *made.payloads[16:]]
    assert shard.compression == "gzip"
    (cut,) = shard.cuts
    assert (cut.code, cut.what) == ("CRC007", "gzip member")
    (piece,) = cut.quarantined
    assert (piece.of, piece.at, piece.length) == ("file", begin, end - begin)
    assert (tmp_path / "out/x.tfrecord.quarantine").read_bytes() == bytes(data[begin:end])
    if indexed:
        assert (shard.lost, shard.exact) == (4, True)
        assert shard.lost_keys == ("k12", "k13", "k14", "k15")
    else:
        assert (shard.exact, shard.lost_keys) == (False, None)


def test_neighbours_that_are_damaged_are_one_piece(tmp_path: Path, made: Made) -> None:
    begin, end = member(made, 3)[0], member(made, 5)[1]
    data = bytearray(made.data)
    for number in (3, 4, 5):
        data[member(made, number)[0] + 14] ^= 0xFF
    shard = rescue(put(tmp_path, bytes(data), made.index), tmp_path / "out")
    assert shard.lost_keys == tuple(f"k{number}" for number in range(12, 24))
    rest = (tmp_path / "out/x.tfrecord.quarantine").read_bytes()
    assert rest == bytes(data[begin:end])


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("where", [0, 4, 9, -8, -4])
def test_damaged_header_or_trailer_of_a_member_costs_nothing(
    tmp_path: Path, made: Made, where: int, indexed: bool
) -> None:
    data = bytearray(made.data)
    begin, end = member(made, 3)
    data[(begin if where >= 0 else end) + where] ^= 0x01
    path = put(tmp_path, bytes(data), made.index if indexed else None)
    shard = rescue(path, tmp_path / "out")
    assert payloads_in(tmp_path / "out/x.tfrecord") == list(made.payloads)
    assert (shard.kept, shard.lost, shard.exact) == (RECORDS, 0, True)
    if where < 0:
        assert (shard.status, shard.quarantine) == ("salvaged", None)
        # The index verifies the four records; without it only their checksums do.
        assert shard.unproven == 0 if indexed else shard.unproven >= 4


def test_record_damaged_before_it_was_compressed(tmp_path: Path, made: Made) -> None:
    stream = bytearray(made.stream)
    stream[made.offsets[7] + 3] ^= 1  # a length
    stream[made.offsets[9] + 30] ^= 1  # data
    shard = rescue(put(tmp_path, gzip.compress(bytes(stream)), made.index), tmp_path / "out")
    assert (shard.kept, shard.repaired, shard.lost) == (38, 1, 1)
    assert shard.lost_keys == ("k9",)
    assert [(cut.what, cut.quarantined[0].of) for cut in shard.cuts] == [
        ("header", "stream"),
        ("record", "stream"),
    ]
    at = made.offsets[7]
    lost = stream[made.offsets[9] : made.offsets[10]]
    rest = (tmp_path / "out/x.tfrecord.quarantine").read_bytes()
    assert rest == bytes(stream[at : at + 12] + lost)
    assert payloads_in(tmp_path / "out/x.tfrecord") == [*made.payloads[:9], *made.payloads[10:]]


@pytest.mark.parametrize("indexed", [True, False])
def test_file_that_is_cut_inside_a_member(tmp_path: Path, made: Made, indexed: bool) -> None:
    begin, _ = member(made, 6)
    data = made.data[: begin + 30]
    shard = rescue(put(tmp_path, data, made.index if indexed else None), tmp_path / "out")
    assert payloads_in(tmp_path / "out/x.tfrecord") == list(made.payloads[:24])
    assert (tmp_path / "out/x.tfrecord.quarantine").read_bytes() == data[begin:]
    assert shard.exact == indexed
    if indexed:
        assert shard.lost_keys == tuple(f"k{number}" for number in range(24, 40))


def test_file_that_is_cut_between_members_is_told_by_the_index(tmp_path: Path, made: Made) -> None:
    data = made.data[: member(made, 6)[0]]
    shard = rescue(put(tmp_path, data, made.index), tmp_path / "out")
    assert (shard.status, shard.kept, shard.lost) == ("salvaged", 24, 16)
    assert (tmp_path / "out/x.tfrecord").read_bytes() == data


def test_bytes_behind_the_last_member(tmp_path: Path, made: Made) -> None:
    shard = rescue(put(tmp_path, made.data + b"garbage" * 5, made.index), tmp_path / "out")
    assert (shard.status, shard.kept, shard.lost) == ("salvaged", RECORDS, 0)
    assert payloads_in(tmp_path / "out/x.tfrecord") == list(made.payloads)
    assert (tmp_path / "out/x.tfrecord.quarantine").read_bytes() == b"garbage" * 5


@pytest.mark.parametrize("level", [1, 9])
def test_sound_gzip_keeps_its_bytes_whoever_wrote_it(tmp_path: Path, level: int) -> None:
    stream = framed(*(filler(number) for number in range(50)))
    data = gzip.compress(stream, level)
    shard = rescue(put(tmp_path, data), tmp_path / "out")
    assert (shard.status, shard.kept) == ("sound", 50)
    assert (tmp_path / "out/x.tfrecord").read_bytes() == data


def test_one_member_around_all_gives_what_was_before_the_damage(tmp_path: Path) -> None:
    payloads = [noise(number) for number in range(3000)]
    data = bytearray(gzip.compress(framed(*payloads)))
    data[len(data) // 2] ^= 0xFF
    shard = rescue(put(tmp_path, bytes(data)), tmp_path / "out")
    found = payloads_in(tmp_path / "out/x.tfrecord")
    assert found == payloads[: len(found)]
    assert 1400 < len(found) < 1600
    assert (shard.exact, shard.unproven) == (False, shard.kept)
    assert (tmp_path / "out/x.tfrecord.quarantine").read_bytes() == bytes(data)


def test_copies_that_damaged_gzip_makes_are_told_by_the_index(tmp_path: Path) -> None:
    """A member whose data are sound deflate of other records than it was made of."""
    payloads = [filler(number, 30) for number in range(12)]
    made = make(payloads, member_bytes=100)
    begin, end = member(made, 1)
    crc, size = TRAILER.unpack(made.data[end - 8 : end])
    other = framed(payloads[3], payloads[3], payloads[5])
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = deflater.compress(other) + deflater.flush()
    assert size == len(other)
    forged = MEMBER_HEADER + body + TRAILER.pack(crc, size)
    data = made.data[:begin] + forged + made.data[end:]
    shard = rescue(put(tmp_path, data, made.index), tmp_path / "indexed")
    assert payloads_in(tmp_path / "indexed/x.tfrecord") == [*payloads[:4], *payloads[5:]]
    assert shard.lost_keys == ("k4",)
    assert next(cut.what for cut in shard.cuts) == "unknown record"
    assert (tmp_path / "indexed/x.tfrecord.quarantine").read_bytes() == framed(payloads[3])
    bare = rescue(put(tmp_path, data, name="bare.tfrecord"), tmp_path / "bare")
    assert bare.unproven >= 3


def test_member_of_which_nothing_decodes_is_a_loss(tmp_path: Path) -> None:
    made = make([noise(number) for number in range(8)], member_bytes=10_000)
    data = bytearray(made.data)
    data[10:30] = b"\xff" * 20
    shard = rescue(put(tmp_path, bytes(data)), tmp_path / "out")
    assert (shard.kept, shard.lost, shard.exact) == (0, 1, False)
    assert (tmp_path / "out/x.tfrecord.quarantine").read_bytes() == bytes(data)


@pytest.mark.parametrize("member_bytes", [300, 1400, 10_000])
def test_an_index_names_what_a_zeroed_beginning_costs(tmp_path: Path, member_bytes: int) -> None:
    made = make([noise(number) for number in range(RECORDS)], member_bytes)
    shard = rescue(put(tmp_path, bytes(12) + made.data[12:], made.index), tmp_path / "out")
    _, end = [*made.members, (0, len(made.stream))][1]
    lost = sum(at < end for at in made.offsets)
    assert (shard.status, shard.exact) == ("salvaged", True)
    assert shard.lost_keys == tuple(f"k{number}" for number in range(lost))
    assert payloads_in(tmp_path / "out/x.tfrecord") == list(made.payloads[lost:])


@pytest.mark.slow
def test_large_record_in_gzip_streams_by(tmp_path: Path) -> None:
    large = bytes((1 << 20) * 65)
    stream = bytearray(framed(filler(0), large, filler(1)))
    stream[3] ^= 1
    path = put(tmp_path, gzip.compress(bytes(stream), 1))
    shard = rescue(path, tmp_path / "out")
    assert (shard.kept, shard.repaired, shard.lost) == (2, 1, 0)
    assert payloads_in(tmp_path / "out/x.tfrecord") == [filler(0), large, filler(1)]


@pytest.mark.medium
def test_one_large_member_is_not_decoded_again_for_each_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 0
    step = GzipStream._step

    def counted(self: GzipStream, limit: int) -> bytes:
        nonlocal steps
        steps += 1
        return step(self, limit)

    monkeypatch.setattr(GzipStream, "_step", counted)
    payloads = [random.Random(number).randbytes(4000) for number in range(4000)]
    data = bytearray(gzip.compress(framed(*payloads), 1))
    data[-100] ^= 0xFF
    rescue(put(tmp_path, bytes(data)), tmp_path / "out")
    # 16 batches: once for each of survey, scan, the second reading and what that looks ahead.
    assert steps * (1 << 16) < 12 * len(data)


def test_sound_gzip_that_tensorflow_misreads_is_compressed_anew(tmp_path: Path, made: Made) -> None:
    """CRC009: nothing is wrong with it, so nothing is cut out."""
    begin, _ = member(made, 3)
    data = made.data[:begin] + gzip.compress(b"", mtime=0) + made.data[begin:]
    path = put(tmp_path, data)
    assert see(data).codes == ["CRC009"]
    shard = rescue(path, tmp_path / "out")
    assert (shard.kept, shard.lost, shard.exact, shard.cuts) == (RECORDS, 0, True, ())
    assert payloads_in(tmp_path / "out/x.tfrecord") == list(made.payloads)
    assert see((tmp_path / "out/x.tfrecord").read_bytes()).codes == []


def test_gzip_that_the_manifest_does_not_declare_is_decompressed(
    digits_registry: Path, tmp_path: Path
) -> None:
    path = digits_registry / "data/digits/digits-test.tfrecord-00000-of-00002"
    plain = path.read_bytes()
    path.write_bytes(gzip.compress(plain))
    shard = rescue(path, tmp_path / "out")
    assert (shard.status, shard.kept, shard.lost) == ("salvaged", 30, 0)
    assert (tmp_path / "out" / path.name).read_bytes() == plain


@pytest.mark.parametrize(
    ("size", "places", "expected"),
    [(100, [(2, -6), (3, -6)], (20, 0, [228, 380])), (40, [(4, 12), (6, -6)], (18, 1, [152, 304]))],
    ids=["checksums", "data and a checksum"],
)
def test_damage_behind_a_part_of_a_record_is_listed_once(
    tmp_path: Path, size: int, places: list[tuple[int, int]], expected: tuple[int, int, list[int]]
) -> None:
    """The members have `size` bytes of the stream each, so that records begin in other members."""
    stream = make([filler(number) for number in range(20)]).stream
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    parts = [bytearray(gzip.compress(piece, mtime=0)) for piece in pieces]
    for number, at in places:
        parts[number][at] ^= 8
    shard = rescue(put(tmp_path, b"".join(parts)), tmp_path / "out")
    assert (shard.kept, shard.lost, [cut.offset for cut in shard.cuts]) == expected
    assert len({cut.detail for cut in shard.cuts}) == 2


def test_zeros_behind_the_last_member_cost_nothing(tmp_path: Path, made: Made) -> None:
    path = put(tmp_path, made.data + bytes(512), made.index)
    shard = rescue(path, tmp_path / "out")
    assert (shard.kept, shard.lost, shard.exact) == (RECORDS, 0, True)
    assert payloads_in(tmp_path / "out/x.tfrecord") == list(made.payloads)
    assert [cut.code for cut in shard.cuts] == ["CRC007"]
    assert see((tmp_path / "out/x.tfrecord").read_bytes()).codes == []


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("length", [0, 40, 57, 5000, 1 << 20, 1 << 40])
def test_header_of_a_record_over_the_first_member_costs_only_that(
    tmp_path: Path, made: Made, length: int, indexed: bool
) -> None:
    data = frame_header(length) + made.data[12:]
    path = put(tmp_path, data, made.index if indexed else None)
    shard = rescue(path, tmp_path / "out")
    assert shard.compression == "gzip"
    assert payloads_in(tmp_path / "out/x.tfrecord") == list(made.payloads[4:])
    if indexed:
        assert (shard.lost, shard.exact, shard.doubtful) == (4, True, 0)
    else:
        assert (shard.lost, shard.exact) == (1, False)


@pytest.mark.medium
@pytest.mark.parametrize("indexed", [True, False])
def test_a_thousand_members_without_trailers_lose_nothing(tmp_path: Path, indexed: bool) -> None:
    made = make([noise(number) for number in range(1000)])
    data = b"".join(gzip.compress(framed(each), mtime=0)[:-6] for each in made.payloads)
    path = put(tmp_path, data, made.index if indexed else None)
    shard = rescue(path, tmp_path / "out")
    assert payloads_in(tmp_path / "out/x.tfrecord") == list(made.payloads)
    assert (shard.kept, shard.lost) == (1000, 0)


def test_members_of_no_record_without_trailers_are_all_in_quarantine(tmp_path: Path) -> None:
    """Of each, whether the next one begins depends on the one after that."""
    data = gzip.compress(random.Random(1).randbytes(2000), mtime=0)[:-6] * 600
    shard = rescue(put(tmp_path, data), tmp_path / "out")
    assert (shard.kept, shard.doubtful) == (0, 0)
    assert (tmp_path / "out/x.tfrecord.quarantine").read_bytes() == data


def test_records_from_inside_one_whose_beginning_is_lost_are_set_apart(tmp_path: Path) -> None:
    """The first member is gone, and the second begins with a record of the payload."""
    inner = [filler(number, 20) for number in range(4)]
    payloads = [framed(*inner) + b"behind", filler(7), framed(*inner[:2]) + b"more", filler(8)]
    stream = make(payloads).stream
    rest = b"".join(
        gzip.compress(stream[at : at + 90], mtime=0) for at in range(12, len(stream), 90)
    )
    shard = rescue(put(tmp_path, rest), tmp_path / "out")
    assert payloads_in(tmp_path / "out/x.tfrecord") == payloads[1:]
    assert payloads_in(tmp_path / "out/x.tfrecord.doubtful") == inner
    assert (shard.kept, shard.doubtful) == (3, 4)
