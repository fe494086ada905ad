from __future__ import annotations

import gc
import hashlib
import random
import threading

import pytest
from blake3 import blake3
from memory_support import MemoryReader

from tfrecreg.core.records.stream import HashedFile

DATA = bytes(range(256)) * 20
DIGEST = blake3(DATA).hexdigest()


def test_digest_is_that_of_the_file_however_it_was_read() -> None:
    plans = (
        [],
        [(0, 5120)],
        [(0, 100), (50, 100), (150, 4000)],
        [(1000, 10), (0, 500), (500, 5000)],
        [(0, 100), (3000, 100), (100, 10)],
    )
    for plan in plans:
        file = HashedFile(MemoryReader(DATA), digest=True)
        for start, length in plan:
            assert file.read(start, length) == DATA[start : start + length]
        assert file.hexdigest() == DIGEST


def test_reading_ends_where_the_file_ends() -> None:
    file = HashedFile(MemoryReader(DATA), digest=False)
    assert file.read(5100, 100) == DATA[5100:]
    assert file.read(5120, 1) == b""
    assert file.read(9999, 1) == b""
    assert file.end == 5120


def test_file_that_shrinks_ends_earlier() -> None:
    reader = MemoryReader(DATA)
    file = HashedFile(reader, digest=True)
    assert file.read(0, 1000) == DATA[:1000]
    reader.data = DATA[:1500]
    assert file.read(1000, 1000) == DATA[1000:1500]
    assert file.end == 1500
    assert file.hexdigest() == blake3(DATA[:1500]).hexdigest()


def test_file_that_grows_is_read_to_where_it_ended() -> None:
    reader = MemoryReader(DATA)
    file = HashedFile(reader, digest=True)
    reader.data = DATA + b"more"
    assert file.read(5000, 500) == DATA[5000:]
    assert file.hexdigest() == DIGEST


# A large file is hashed in a thread.

LARGE = random.Random(1).randbytes(12 << 20)
LARGE_DIGEST = blake3(LARGE).hexdigest()
STEP = 1 << 20


@pytest.fixture(autouse=True)
def _always_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfrecreg.core.records.stream.threads_pay", lambda: True)


def hashing() -> int:
    """How many threads hash; those that were told to end are waited for."""
    gc.collect()
    threads = [each for each in threading.enumerate() if each.name.startswith("tfrecreg-hash")]
    for thread in threads:
        thread.join(1)
    return sum(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("step", [100_000, STEP, STEP + 1, 3 << 20, 12 << 20])
def test_digest_of_a_large_file_is_the_same_whatever_the_pieces(step: int) -> None:
    file = HashedFile(MemoryReader(LARGE), digest=True, sha256=True)
    for at in range(0, len(LARGE), step):
        assert file.read(at, step) == LARGE[at : at + step]
        file.read(at, 10)  # looked at again
    assert file.hexdigest() == LARGE_DIGEST
    assert hashing() == 0
    assert file.hexdigest() == LARGE_DIGEST
    assert file.sha256() == hashlib.sha256(LARGE).hexdigest()


@pytest.mark.slow
def test_parts_of_a_large_file_that_were_jumped_over_are_hashed_at_the_end() -> None:
    file = HashedFile(MemoryReader(LARGE), digest=True)
    for at in (0, STEP, 5 * STEP, 2 * STEP, 11 * STEP):
        file.read(at, STEP)
    assert hashing() == 1
    assert file.hexdigest() == LARGE_DIGEST
