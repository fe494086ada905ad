from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from memory_support import see

from tfrecreg.core.records.framing import MAX_LENGTH
from tfrecreg.core.records.gzip_writer import INPUT_BUFFER, ends_badly
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.records.index import read_index
from tfrecreg.core.records.writer import SegmentWriter, ShardWriter
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import UsageError

PAYLOADS = [random.Random(n).randbytes(n * 13 % 500) for n in range(300)]
LARGE = [random.Random(n).randbytes(900_000) for n in range(3)]


def write(storage: LocalStorage, path: str, payloads: list[bytes], compression: Any) -> Any:
    with ShardWriter(
        storage, path, compression=compression, index_path=f"index/{path}.index"
    ) as writer:
        for number, payload in enumerate(payloads):
            writer.write(payload, digest=record_digest(payload), key=f"key/{number}")
    return writer.written


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("payloads", [[], [b""], [b"abc"], PAYLOADS, PAYLOADS + LARGE], ids=len)
def test_what_is_reported_is_what_lies_there(
    compression: Any, payloads: list[bytes], tmp_path: Path
) -> None:
    storage = LocalStorage(str(tmp_path))
    written = write(storage, "shard", payloads, compression)
    data = (tmp_path / "shard").read_bytes()
    index = (tmp_path / "index" / "shard.index").read_bytes()
    seen = see(data, declared=compression if data else None, digest=True)
    assert seen.faults == []
    assert [payload for _, _, payload in seen.records] == payloads
    assert written.file.bytes == len(data)
    assert written.file.blake3 == blake3(data).hexdigest() == seen.end.blake3
    assert written.file.sha256 == hashlib.sha256(data).hexdigest()
    assert written.records == len(payloads)
    assert written.payload_bytes == sum(map(len, payloads)) == seen.end.payload_bytes
    assert written.stream_blake3 == seen.end.stream_blake3
    assert written.index.bytes == len(index)
    assert written.index.blake3 == blake3(index).hexdigest()
    assert written.index.sha256 == hashlib.sha256(index).hexdigest()


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_index_says_where_each_record_is(compression: Any, tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    write(storage, "shard", PAYLOADS + LARGE, compression)
    index = read_index((tmp_path / "index" / "shard.index").read_bytes(), "shard.index")
    seen = see((tmp_path / "shard").read_bytes())
    assert index.offsets().tolist() == [offset for _, offset, _ in seen.records]
    assert index.lengths.tolist() == [len(payload) for _, _, payload in seen.records]
    assert index.keys() == [f"key/{number}" for number in range(303)]
    assert [bytes(row) for row in index.digests] == [record_digest(p) for p in PAYLOADS + LARGE]
    assert index.stream_bytes == seen.end.stream_bytes
    assert len(index.members) == (0 if compression == "none" else 2)
    if compression == "gzip":
        assert set(dict(index.members).values()) <= set(index.offsets().tolist())


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_equal_records_give_equal_bytes(compression: Any, tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    first = write(storage, "first", PAYLOADS, compression)
    again = write(storage, "again", PAYLOADS, compression)
    assert first == again
    assert (tmp_path / "first").read_bytes() == (tmp_path / "again").read_bytes()


def test_plain_shard_never_changes(tmp_path: Path) -> None:
    written = write(LocalStorage(str(tmp_path)), "shard", [b"", b"abc"], "none")
    assert (tmp_path / "shard").read_bytes().hex() == (
        "000000000000000029039807d8ea82a20300000000000000b099490e6162636e57f121"
    )
    assert written.file.blake3 == "5cc5a3a184774c6dbb7fb55e4acaee6a8542f412f10fe34546435874f18b06c9"
    assert (
        written.index.blake3 == "9139043c8620efc8ab02ac00fd88d5a01133f0aaa6a53fda75d73571f0364215"
    )


def test_nothing_appears_before_the_shard_is_whole(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    with ShardWriter(storage, "shard", index_path="index") as writer:
        writer.write(bytes(1_000_000), digest=bytes(16), key="a")
        assert not (tmp_path / "shard").exists()
        assert not (tmp_path / "index").exists()
    assert (tmp_path / "shard").exists()
    assert (tmp_path / "index").exists()


def test_nothing_is_left_of_a_shard_that_failed(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))

    def fail() -> None:
        with ShardWriter(storage, "shard", index_path="index") as writer:
            writer.write(bytes(1_000_000), digest=bytes(16), key="a")
            raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_record_above_the_limit_is_refused_by_its_key(tmp_path: Path) -> None:
    class Huge(bytes):
        def __len__(self) -> int:
            return MAX_LENGTH + 1

    writer = ShardWriter(LocalStorage(str(tmp_path)), "shard")
    with pytest.raises(
        UsageError, match=r"the record of `big\.png` has 2147483649 bytes, but at most"
    ):
        writer.write(Huge(), digest=bytes(16), key="big.png")
    writer.abort()
    assert list(tmp_path.iterdir()) == []


def in_segments(storage: LocalStorage, path: str, parts: list[list[bytes]], apart: bool) -> Any:
    """A gzip shard of several segments, each made in a file of its own or not."""
    with ShardWriter(storage, path, compression="gzip", index_path=f"{path}.index") as writer:
        for number, payloads in enumerate(parts):
            target = SegmentWriter(storage, f"part-{number}", "gzip") if apart else writer
            for place, payload in enumerate(payloads):
                target.write(payload, digest=record_digest(payload), key=f"{number}/{place}")
            if isinstance(target, SegmentWriter):
                writer.append(storage, target.close())
            writer.end_member()
    return writer.written


@pytest.mark.medium
def test_segments_made_apart_give_the_same_bytes_wherever_members_end(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    source = random.Random(3)
    large = source.randbytes(INPUT_BUFFER)
    middle = [source.randbytes(n) for n in (0, 700, 3000)]
    last = [b"the last one"]
    # So large that the second segment ends where the buffer does.
    natural = INPUT_BUFFER - in_segments(storage, "x", [[b""], middle], True).file.bytes
    natural -= in_segments(storage, "y", [[large]], True).file.bytes - INPUT_BUFFER
    natural += in_segments(storage, "z", [[b""]], True).file.bytes
    again = 0
    for more in range(-1, 20):
        parts = [[large[: natural + more]], middle, last]
        one = in_segments(storage, "one", parts, False)
        two = in_segments(storage, "two", parts, True)
        assert one == two
        data = (tmp_path / "two").read_bytes()
        assert data == (tmp_path / "one").read_bytes()
        assert (tmp_path / "two.index").read_bytes() == (tmp_path / "one.index").read_bytes()
        seen = see(data, digest=True)
        assert seen.faults == []
        assert [payload for _, _, payload in seen.records] == [*parts[0], *middle, *last]
        assert seen.end.stream_blake3 == two.stream_blake3
        members = read_index((tmp_path / "two.index").read_bytes(), "two.index").members
        assert not any(ends_badly(file) for file, _ in members)
        again += two.file.bytes != sum((tmp_path / f"part-{n}").stat().st_size for n in range(3))
    assert again == 16
