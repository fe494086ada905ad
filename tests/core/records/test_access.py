"""Records by number: verified, whatever the compression, in no more memory than they take."""

from __future__ import annotations

import gzip
import multiprocessing
import os
import pickle
import random
import threading
import tracemalloc
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from check_support import PAYLOADS, STREAM, blocks, framed, members
from hypothesis import given, settings
from hypothesis import strategies as st
from scan_support import Watched
from tests_support import flip

from tfrecreg.core.records.batch import Fault, RecordBatch
from tfrecreg.core.records.framing import frame_header
from tfrecreg.core.records.gzip_writer import GzipEncoder
from tfrecreg.core.records.index import IndexBuilder
from tfrecreg.core.records.reader import scan
from tfrecreg.core.records.reading.access import Records, read
from tfrecreg.core.records.writer import ShardWriter
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import (
    DamagedRecordError,
    MissingFileError,
    NoSuchRecordError,
    StorageError,
    UsageError,
)

FORMS: dict[str, bytes] = {
    "plain": STREAM,
    "members": members(PAYLOADS),
    "blocks": blocks(STREAM),
    "one member": gzip.compress(STREAM),
}


@pytest.fixture(params=FORMS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(FORMS[request.param])
    return path


def indexed(folder: Path, payloads: Sequence[bytes], compression: Any = "none") -> Path:
    """A shard with its index beside it, as a build has them."""
    storage, index = LocalStorage(folder), "index/s.tfrecord.index"
    with ShardWriter(storage, "s.tfrecord", compression=compression, index_path=index) as writer:
        for number, payload in enumerate(payloads):
            writer.write(payload, digest=bytes(16), key=str(number))
    return folder / "s.tfrecord"


def test_a_sequence_of_all_records(path: Path) -> None:
    assert (read(path, 7), read(str(path), -1)) == (PAYLOADS[7], PAYLOADS[-1])
    assert (read(path, np.array(7)), read(path, np.array([7]))) == (PAYLOADS[7], [PAYLOADS[7]])
    order = list(range(60)) * 2
    random.Random(3).shuffle(order)
    with Records(path) as records:
        assert [records[each] for each in order] == [PAYLOADS[each] for each in order]
        assert (len(records), repr(records)) == (60, f"<Records 60 of {path}>")
        assert list(records) == PAYLOADS
        assert records[3] == PAYLOADS[3]
        assert PAYLOADS[9] in records
        assert records.index(PAYLOADS[4]) == 4
        assert list(reversed(records)) == PAYLOADS[::-1]
        assert list(records.lengths) == list(map(len, PAYLOADS))
        assert list(records.offsets[:3]) == [0, 16, 39]
        assert records.damaged == ()


def test_a_slice_reads_nothing_and_may_be_sliced(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(STREAM)
    storage = Watched(LocalStorage(tmp_path))
    records = Records("a", storage=storage)  # type: ignore[arg-type]  # it has what is used
    before = len(storage.reads)
    part = records[10:50][::-2][1:4]
    assert (len(part), len(storage.reads)) == (3, before)
    assert list(part) == PAYLOADS[10:50][::-2][1:4]
    assert list(part.lengths) == [len(each) for each in PAYLOADS[10:50][::-2][1:4]]
    assert list(records[::-1].lengths) == [len(each) for each in PAYLOADS[::-1]]
    assert list(records[60:]) == []
    assert len(records[60:].lengths) == 0
    assert isinstance(part, Records)
    records.close()


@pytest.mark.parametrize("number", [60, -61, 10**30])
def test_a_number_that_there_is_not_is_an_index_error(path: Path, number: int) -> None:
    with pytest.raises(IndexError) as caught:
        read(path, number)
    assert isinstance(caught.value, NoSuchRecordError)
    expected = f"there is no record {number} in `{path}`: the shard has 60 records"
    assert caught.value.message == expected
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("empty", [b"", gzip.compress(b"", mtime=0), members([])], ids=repr)
def test_a_shard_may_be_empty(tmp_path: Path, empty: bytes) -> None:
    path = tmp_path / "a"
    path.write_bytes(empty)
    with Records(path) as records:
        assert list(records) == []
    with pytest.raises(NoSuchRecordError, match=r"no record 0 in `.*`: the shard has 0 records"):
        read(path, 0)


def test_missing_files_and_strangers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="does not exist"):
        read(tmp_path / "a", 0)
    (tmp_path / "b\x1b").write_bytes(b"this is no record, is it?")
    with pytest.raises(UsageError) as caught:
        read(tmp_path / "b\x1b", 0)
    assert rf"{tmp_path}/b\x1b` is not a TFRecord: no valid record" in caught.value.message


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_the_index_of_a_build_is_found_and_saves_reading(tmp_path: Path, compression: str) -> None:
    noise = random.Random(1)
    payloads = [noise.randbytes(200_000) for _ in range(40)]
    path = indexed(tmp_path, payloads, compression)
    storage = Watched(LocalStorage(tmp_path))
    with Records(path.name, storage=storage) as records:  # type: ignore[arg-type]  # as above
        assert len(records) == 40
        assert sum(storage.reads) <= 1 << 16
        assert records[33] == payloads[33]
    read_bytes = sum(storage.reads)
    assert read_bytes < (2 << 20 if compression == "gzip" else 300_000)


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_an_index_of_other_bytes_is_refused_if_named_and_else_passed_over(
    tmp_path: Path, compression: str
) -> None:
    path = indexed(tmp_path, PAYLOADS, compression)
    form = FORMS["one member" if compression == "none" else "plain"]
    path.write_bytes(form)
    assert read(path, 11) == PAYLOADS[11]
    with pytest.raises(UsageError) as caught:
        read(path, 11, index=tmp_path / "index/s.tfrecord.index")
    size = f"{len(form)} bytes{' of gzip' if compression == 'none' else ''}"
    assert caught.value.message == (
        f"`s.tfrecord.index` is not the index of `{path}`: the index covers "
        f"{len(STREAM)} bytes"
        f"{' of decompressed gzip' if compression == 'gzip' else ''}, but the file has {size}"
    )
    flip(tmp_path / "index/s.tfrecord.index", 90)
    assert read(path, 11) == PAYLOADS[11]


@pytest.mark.parametrize("kept", [0, 7])
def test_records_that_a_cut_took_are_damaged_by_the_index_beside_it(
    tmp_path: Path, kept: int
) -> None:
    path = indexed(tmp_path, PAYLOADS)
    at = int(Records(path).offsets[kept])
    path.write_bytes(path.read_bytes()[:at])
    records = Records(path)
    assert len(records) == len(PAYLOADS)
    assert list(records[:kept]) == PAYLOADS[:kept]
    with pytest.raises(DamagedRecordError) as caught:
        records[kept]
    assert caught.value.message == (
        f"record {kept} of `{path}`, at byte {at}, is damaged: CRC003: according to its index, "
        f"the shard should have {len(PAYLOADS)} records, but it has {kept}"
    )


def test_an_index_with_other_lengths_is_noticed_when_a_record_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(STREAM)
    builder = IndexBuilder()
    builder.add(bytes(16), len(STREAM) - 16, "all in one")
    (tmp_path / "i").write_bytes(builder.render())
    with pytest.raises(DamagedRecordError) as caught:
        read(path, 0, index=tmp_path / "i")
    assert caught.value.message == (
        f"record 0 of `{path}`, at byte 0, is damaged: its length should be "
        f"{len(STREAM) - 16} according to the index, found 0"
    )


def test_damage_to_data_is_told_with_shard_record_and_offset(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(STREAM)
    with Records(path) as records:
        at = int(records.offsets[9])
        flip(path, at + 12)
    assert read(path, 8) == PAYLOADS[8]
    with pytest.raises(DamagedRecordError) as caught:
        read(path, 9)
    start = rf"record 9 of `{path}`, at byte {at}, is damaged: CRC002: data checksum should be 0x"
    assert caught.value.message.startswith(start)
    assert caught.value.hint == f"tfrecreg check {path}"
    assert caught.value.exit_code == 1
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), again.message) == (DamagedRecordError, caught.value.message)


@pytest.mark.parametrize("form", ["plain", "members", "one member"])
def test_what_check_delivers_can_be_read_and_what_it_names_cannot(
    tmp_path: Path, form: str
) -> None:
    source = random.Random(7)
    path = tmp_path / "a"
    for _ in range(60):
        data = bytearray(FORMS[form])
        data[source.randrange(len(data))] ^= 1 << source.randrange(8)
        if source.random() < 0.3:
            del data[source.randrange(len(data) // 2, len(data)) :]
        path.write_bytes(bytes(data))
        good: dict[int, bytes] = {}
        bad: set[int] = set()
        stranger = False
        for event in scan(LocalStorage(tmp_path), "a"):
            if isinstance(event, RecordBatch):
                good.update(enumerate(event.payloads(), event.first))
            elif isinstance(event, Fault):
                stranger = stranger or event.code == "CRC008"
                if event.record is not None and event.code != "CRC004":
                    bad.add(event.record)
        if stranger:
            with pytest.raises(UsageError):
                Records(path)
            continue
        with Records(path) as records:
            assert {number: records[number] for number in good} == good
            for number in bad - set(good):
                with pytest.raises(DamagedRecordError, match=f"record {number} of "):
                    records[number]
            assert set(records.damaged) <= set(range(len(records))) - set(good)


def test_a_gzip_member_that_does_not_hold_hands_out_nothing(tmp_path: Path) -> None:
    """The records' own checksums hold, the member's does not: then nothing in it can be trusted."""
    path = indexed(tmp_path, PAYLOADS, "gzip")
    flip(path, path.stat().st_size - 6)  # in the CRC-32 of the last member
    with pytest.raises(DamagedRecordError, match=r"record 3 of .* CRC007: incorrect data check"):
        read(path, 3)


def test_damage_to_one_member_costs_no_other(tmp_path: Path) -> None:
    encoder = GzipEncoder(500)
    data = b"".join(map(encoder.write, map(framed, PAYLOADS))) + encoder.close()
    builder = IndexBuilder()
    for payload in PAYLOADS:
        builder.add(bytes(16), len(payload), "")
    (tmp_path / "i").write_bytes(builder.render(encoder.members))
    path = tmp_path / "a"
    path.write_bytes(data)
    flip(path, encoder.members[1][0] + 15)
    with Records(path, index=tmp_path / "i") as records:
        for number, offset in enumerate(records.offsets):
            if encoder.members[1][1] <= offset < encoder.members[2][1]:
                with pytest.raises(DamagedRecordError, match="CRC007"):
                    records[number]
            else:
                assert records[number] == PAYLOADS[number]


def test_trailing_bytes_count_as_a_damaged_record(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(STREAM + b"\0\0\0")
    with Records(path) as records:
        assert (len(records), records.damaged) == (61, (60,))
        assert records[59] == PAYLOADS[-1]
        with pytest.raises(DamagedRecordError, match=r"`.*`, at byte .* is damaged: CRC004: 3 "):
            records[60]


def test_a_record_that_the_file_ends_in_is_counted_and_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(STREAM[:-3])
    with Records(path) as records:
        assert (len(records), records.damaged) == (60, (59,))
        with pytest.raises(DamagedRecordError, match=r"record 59 of .* CRC003: the record should"):
            records[59]


def test_offsets_may_be_beyond_what_32_bits_hold(tmp_path: Path) -> None:
    """A sparse file of 4 GiB: two records of zeros, and one behind them."""
    size = 2**31
    path = tmp_path / "a"
    with path.open("wb") as file:
        for number in range(2):
            file.seek(number * (size + 16))
            file.write(frame_header(size))
            file.seek(size, os.SEEK_CUR)
            file.write(bytes(4))
        file.write(framed(b"behind"))
    with Records(path) as records:
        assert list(records.lengths) == [size, size, 6]
        assert int(records.offsets[2]) == 2 * (size + 16) > 1 << 32
        assert records[2] == b"behind"


def test_one_large_member_is_read_in_bounded_memory(tmp_path: Path) -> None:
    payloads = [bytes(1 << 20) for _ in range(60)]
    path = tmp_path / "a"
    packer = zlib.compressobj(1, wbits=31)
    with path.open("wb") as file:
        for payload in payloads:
            file.write(packer.compress(framed(payload)))
        file.write(packer.flush())
    tracemalloc.start()
    try:
        with Records(path) as records:
            assert [len(records[each]) for each in (50, 51, 20, 59)] == [1 << 20] * 4
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12 << 20


def test_a_length_that_nothing_could_hold_allocates_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for data in (framed(b"x") + frame_header(2**40), framed(b"x") + frame_header(2**31 - 1)):
        for form in (data, gzip.compress(data)):
            path.write_bytes(form)
            tracemalloc.start()
            try:
                assert read(path, 0) == b"x"
                with pytest.raises(DamagedRecordError, match="record 1 of "):
                    read(path, 1)
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            assert peak < 8 << 20


def test_a_file_that_was_changed_is_not_read_by_old_places(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(STREAM)
    packed = pickle.dumps(Records(path))
    path.write_bytes(STREAM[39:])
    with pytest.raises(StorageError, match="was changed since its records were counted"):
        pickle.loads(packed)[0]


def _child(records: Records, queue: Any) -> None:
    queue.put([records[each] for each in (40, 2, 41)])


def test_a_fork_reads_from_the_same_open_file(path: Path) -> None:
    context = multiprocessing.get_context("fork")
    with Records(path) as records:
        assert records[41] == PAYLOADS[41]
        queue = context.Queue()
        children = [context.Process(target=_child, args=(records, queue)) for _ in range(2)]
        for child in children:
            child.start()
        assert [records[each] for each in range(60)] == PAYLOADS
        expected = [PAYLOADS[40], PAYLOADS[2], PAYLOADS[41]]
        assert [queue.get(timeout=30) for _ in children] == [expected] * 2
        for child in children:
            child.join()


def test_threads_read_at_once(path: Path) -> None:
    wrong: list[int] = []

    def look(seed: int) -> None:
        order = random.Random(seed)
        for _ in range(300):
            number = order.randrange(60)
            if records[number] != PAYLOADS[number]:
                wrong.append(number)

    with Records(path) as records:
        threads = [threading.Thread(target=look, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def split(data: bytes, cuts: Sequence[int]) -> Iterator[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, end in pairwise(places):
        yield gzip.compress(data[start:end])


@settings(max_examples=60)
@given(
    st.lists(st.binary(max_size=300), min_size=1, max_size=20),
    st.lists(st.integers(0, 1 << 30), max_size=6),
    st.booleans(),
    st.data(),
)
def test_members_may_end_anywhere(
    tmp_path: Path, payloads: list[bytes], cuts: list[int], packed: bool, data: Any
) -> None:
    stream = b"".join(map(framed, payloads))
    (tmp_path / "a").write_bytes(b"".join(split(stream, cuts)) if packed else stream)
    with Records(tmp_path / "a") as records:
        for _ in range(5):
            number = data.draw(st.integers(-len(payloads), len(payloads) - 1))
            assert records[number] == payloads[number]
        assert list(records) == payloads
