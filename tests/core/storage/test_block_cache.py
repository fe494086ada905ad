"""The folder of a cache: its limit, what goes first, and what a killed process leaves."""

from __future__ import annotations

import fcntl
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tfrecreg.core.storage.block_cache import BlockCache, open_cache
from tfrecreg.core.values.errors import StorageError

KIB = 1 << 10
SIZE = 64 * KIB
LIMIT = 16 * SIZE


@pytest.fixture
def cache(tmp_path: Path) -> BlockCache:
    found = open_cache(tmp_path / "cache", LIMIT)
    assert found is not None
    return found


def body(number: int) -> bytes:
    return bytes([number % 251]) * SIZE


def name(cache: BlockCache, number: int) -> str:
    return cache.name(f"{number % 7:032x}", number)


def keep(cache: BlockCache, number: int, *, for_used: bool = True) -> bytes | None:
    return cache.keep(name(cache, number), SIZE, lambda: body(number), for_used=for_used)


def files(cache: BlockCache) -> list[Path]:
    return sorted(Path(cache.folder).glob("tfrecreg-blocks-1/??/*"))


def used(cache: BlockCache) -> int:
    return sum(path.stat().st_size for path in files(cache))


def test_a_block_is_kept_and_read(cache: BlockCache) -> None:
    assert cache.block_bytes == SIZE
    assert not cache.has(name(cache, 1))
    assert cache.reader(name(cache, 1), SIZE) is None
    assert keep(cache, 1) == body(1)
    again = pickle.loads(pickle.dumps(cache))
    assert again.has(name(cache, 1))
    reader = again.reader(name(cache, 1), SIZE)
    assert reader is not None
    assert reader.read_at(10, 5) == body(1)[:5]
    # It is not fetched again.
    assert cache.keep(name(cache, 1), SIZE, lambda: b"", for_used=True) == body(1)


def test_the_limit_holds_and_what_was_used_last_stays(cache: BlockCache) -> None:
    for number in range(14):
        keep(cache, number)
        path = files(cache)[0].parent.parent / name(cache, number)[:2] / name(cache, number)
        os.utime(f"{path}.block", (1000 + number, 1000 + number))
    reader = BlockCache(cache.folder, LIMIT).reader(name(cache, 0), SIZE)
    assert reader is not None  # and so it was used just now
    for number in range(20, 30):
        assert keep(cache, number) == body(number)
        assert used(cache) <= LIMIT
        assert cache.reader(name(cache, number), SIZE) is not None
    # An evicted block takes room while it is open, so at most half of the limit is open.
    assert len(cache._open) == LIMIT // SIZE // 2
    assert cache.has(name(cache, 0))
    assert not any(cache.has(name(cache, number)) for number in range(1, 6))
    assert all(cache.has(name(cache, number)) for number in range(20, 30))
    assert reader.read_at(0, SIZE) == body(0)


def test_a_reader_is_not_disturbed_by_eviction(cache: BlockCache) -> None:
    keep(cache, 0)
    reader = cache.reader(name(cache, 0), SIZE)
    assert reader is not None
    for number in range(1, 40):
        keep(cache, number)
    assert not Path(cache._path(name(cache, 0))).exists()
    assert reader.read_at(0, SIZE) == body(0)


def test_blocks_in_use_do_not_go_for_any_other(cache: BlockCache) -> None:
    for number in range(16):
        assert keep(cache, number, for_used=False) == body(number)
    assert keep(cache, 20, for_used=False) is None
    assert len(files(cache)) == 16
    assert keep(cache, 21, for_used=True) == body(21)
    # Those that a process found, and did not use, go.
    later = BlockCache(cache.folder, LIMIT)
    for path in files(cache):
        os.utime(path, (1, 1))
    assert keep(later, 30, for_used=False) == body(30)


@pytest.mark.parametrize("content", [b"", b"x" * 20, b"\xff\xff", b"-"])
def test_a_damaged_count_is_found_out_again(cache: BlockCache, content: bytes) -> None:
    for number in range(12):
        keep(cache, number)
    Path(cache.used).write_bytes(content)
    for number in range(12, 40):
        assert keep(cache, number) == body(number)
        assert used(cache) <= LIMIT


def test_a_failed_fetch_leaves_nothing(cache: BlockCache) -> None:
    def fail() -> bytes:
        raise StorageError("no", hint="no")

    with pytest.raises(StorageError):
        cache.keep(name(cache, 1), SIZE, fail, for_used=True)
    assert files(cache) == []
    assert int(Path(cache.used).read_text()) == 0


def test_what_a_killed_process_left_is_written_anew_or_removed(cache: BlockCache) -> None:
    keep(cache, 0)
    for number in (1, 2):
        part = Path(cache._path(name(cache, number))).with_suffix(".part")
        part.parent.mkdir(exist_ok=True)
        part.write_bytes(b"half")
    assert keep(cache, 1) == body(1)
    for number in range(3, 40):
        keep(cache, number)
    assert not [path for path in files(cache) if path.suffix == ".part"]


def test_a_living_part_is_waited_for(cache: BlockCache) -> None:
    part = Path(cache._path(name(cache, 1))).with_suffix(".part")
    part.parent.mkdir(exist_ok=True)
    handle = os.open(part, os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    found: list[bytes | None] = []
    waiting = threading.Thread(target=lambda: found.append(keep(cache, 1)))
    waiting.start()
    os.write(handle, body(9))
    # Eviction leaves it to its writer, too.
    for number in range(2, 40):
        keep(cache, number)
    assert part.exists()
    part.rename(part.with_suffix(".block"))
    os.close(handle)
    waiting.join()
    assert found == [body(9)]  # that of the other writer


def test_files_of_others_are_left(cache: BlockCache) -> None:
    other = Path(cache.folder) / "tfrecreg-blocks-1/notes"
    other.mkdir()
    (other / "x.block").write_bytes(b"mine")
    (Path(cache.folder) / "y.block").write_bytes(b"mine")
    for number in range(40):
        keep(cache, number)
    assert (other / "x.block").exists()
    assert (Path(cache.folder) / "y.block").exists()


PROGRAM = """
import random, sys
sys.path[:0] = {paths!r}
from core.storage.test_block_cache import BlockCache, LIMIT, SIZE, body, keep, name
cache = BlockCache(sys.argv[1], LIMIT)
chance = random.Random(int(sys.argv[2]))
for step in range(int(sys.argv[3])):
    number = chance.randrange(40)
    reader = cache.reader(name(cache, number), SIZE)
    data = reader.read_at(0, SIZE) if reader is not None else keep(cache, number)
    assert data == body(number), number
    if step == 0:
        print("begun", flush=True)
print("done")
"""


def started(cache: BlockCache, seed: int, steps: int) -> subprocess.Popen[str]:
    program = PROGRAM.format(
        paths=[str(Path(__file__).parents[2]), str(Path(__file__).parents[2] / "support")]
    )
    command = [sys.executable, "-c", program, cache.folder, str(seed), str(steps)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.medium
def test_processes_share_it(cache: BlockCache) -> None:
    running = [started(cache, seed, 300) for seed in range(3)]
    for each in running:
        out, _ = each.communicate(timeout=120)
        assert each.returncode == 0, out
    assert used(cache) <= LIMIT


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(8))
def test_kills_at_any_moment_leave_a_cache_for_the_next(cache: BlockCache, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(6):
        running = [started(cache, chance.randrange(1000), 1 << 30) for _ in range(2)]
        for each in running:
            assert each.stdout is not None
            assert each.stdout.readline() == "begun\n"
        time.sleep(chance.random() / 5)
        for each in running:
            each.send_signal(signal.SIGKILL)
            each.wait()
            assert each.stdout is not None
            each.stdout.close()
        assert used(cache) <= LIMIT
        for path in files(cache):
            if path.suffix == ".block":
                assert path.stat().st_size == SIZE
    for number in range(40):
        assert keep(cache, number) == body(number)
    assert used(cache) <= LIMIT
    assert len(files(cache)) >= 8
    assert not [path for path in files(cache) if path.suffix == ".part"]
