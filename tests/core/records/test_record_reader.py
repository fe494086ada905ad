"""One record in one compiled call: the same payloads and the same errors as without it."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from check_support import framed

from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.records.scanner import record_reader, scanner_kind
from tfrecreg.core.values.errors import DamagedRecordError

SIZES = (0, 1, 2, 3, 100, 40_000, 5)

pytestmark = pytest.mark.skipif(
    scanner_kind() != "native", reason="there is no compiled scanner to compare with"
)


@pytest.fixture
def shard(tmp_path: Path) -> tuple[Path, list[bytes]]:
    source = random.Random(1)
    payloads = [source.randbytes(size) for size in SIZES]
    path = tmp_path / "x.tfrecord"
    path.write_bytes(framed(*payloads))
    return path, payloads


@pytest.fixture
def handle(shard: tuple[Path, list[bytes]]) -> Iterator[int]:
    found = os.open(shard[0], os.O_RDONLY)
    yield found
    os.close(found)


def read_all(path: Path) -> list[bytes | str]:
    """Each payload, or the error of its record."""
    found: list[bytes | str] = []
    with Records(path) as records:
        for number in range(len(records)):
            try:
                found.append(records[number])
            except DamagedRecordError as error:
                found.append(f"{error.message} | {error.hint}")
    return found


def test_a_record_is_read_whole_or_not_at_all(shard: tuple[Path, list[bytes]], handle: int) -> None:
    path, payloads = shard
    read = record_reader()
    assert read is not None
    at = 0
    for payload in payloads:
        assert read(handle, at, len(payload)) == payload
        assert read(handle, at, len(payload) + 1) is None
        assert read(handle, at + 1, len(payload)) is None
        at += len(payload) + 16
    assert read(handle, at, 2) is None
    assert read(handle, at - 21, 6) is None
    closed = os.open(path, os.O_RDONLY)
    os.close(closed)
    assert read(closed, 0, 0) is None


@pytest.mark.parametrize("number", range(60))
def test_damage_is_told_as_without_it(
    shard: tuple[Path, list[bytes]], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    path, _ = shard
    source = random.Random(number)
    data = bytearray(path.read_bytes())
    if number % 3 == 0:
        del data[source.randrange(len(data)) :]
    else:
        starts = [sum(size + 16 for size in SIZES[:record]) for record in range(len(SIZES))]
        near = source.choice(starts) + source.randrange(20)
        place = near if number % 3 == 1 else source.randrange(len(data))
        data[place % len(data)] ^= 1 << source.randrange(8)
    path.write_bytes(data)
    compiled = read_all(path)
    monkeypatch.setenv("TFRECREG_SCANNER", "python")
    assert record_reader() is None
    assert read_all(path) == compiled
