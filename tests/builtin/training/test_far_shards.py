"""Shards behind URLs through a cache: cold, warm, too small, damaged, shared, killed, full."""

from __future__ import annotations

import os
import pickle
import random
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from check_support import framed
from s3_support import Faults, faulty, web_server

import tfrecreg
from tfrecreg.core.storage import file_systems as daemon_threads
from tfrecreg.core.storage.far_files import THREADS
from tfrecreg.core.values.errors import DamagedRecordError, StorageError, TransferError

from .conftest import payload

SHARDS, RECORDS = 4, 60
_WIDE = 4000


def wide_payload(number: int) -> bytes:
    """One that is no Example, of a size that varies: several blocks are needed for a shard."""
    return number.to_bytes(4, "little") * (_WIDE // 4 + number % 100)


@pytest.fixture(scope="module")
def bodies() -> dict[str, bytes]:
    """The files of the server: 4 shards of 60 records of about 4 KiB."""
    return {
        f"/d/train-{shard:05d}-of-00004.tfrecord": framed(
            *(wide_payload(shard * RECORDS + number) for number in range(RECORDS))
        )
        for shard in range(SHARDS)
    }


@pytest.fixture
def files(bodies: dict[str, bytes]) -> dict[str, bytes]:
    return dict(bodies)


@pytest.fixture
def port(files: dict[str, bytes]) -> Iterator[int]:
    with web_server(files) as port:
        yield port


def urls(port: int, files: dict[str, bytes]) -> list[str]:
    return [f"http://127.0.0.1:{port}{path}" for path in sorted(files)]


def opened(port: int, files: dict[str, bytes], cache: Path, limit: Any = "64MiB") -> Any:
    return tfrecreg.data_source(
        urls(port, files), "train", raw=True, cache=cache, cache_limit=limit
    )


def blocks_of(cache: Path) -> list[Path]:
    return sorted(cache.glob("tfrecreg-blocks-1/??/*.block"))


def emptied(cache: Path) -> None:
    """Remove all blocks: opening files without an index has read their headers."""
    for block in blocks_of(cache):
        block.unlink()


EXPECTED = [wide_payload(number) for number in range(SHARDS * RECORDS)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "blocks"


def test_cold_then_warm_without_a_request(files: dict[str, bytes], port: int, folder: Path) -> None:
    counted = Faults(0)
    with faulty(port, counted) as before:
        source = pickle.loads(pickle.dumps(opened(before, files, folder)))
        emptied(folder)
        order = list(source.order(seed=1))
        assert [source[at] for at in order] == [EXPECTED[at] for at in order]
        assert len(blocks_of(folder)) == SHARDS
        warm = pickle.loads(pickle.dumps(source))
        counted.gets = 0
        assert warm.__getitems__(order) == [EXPECTED[at] for at in order]
        assert [warm[at] for at in order[:20]] == [EXPECTED[at] for at in order[:20]]
        # The offsets of shards without an index are in the user's cache; a change would show.
        heads = counted.gets
        assert heads <= 3 * SHARDS
        assert list(warm) == EXPECTED
        assert counted.gets == heads


def test_local_shards_and_those_behind_urls_are_read_together(
    files: dict[str, bytes], port: int, folder: Path, tmp_path: Path
) -> None:
    paths = [tmp_path / f"near-{name.rpartition('/')[2]}" for name in sorted(files)]
    for path, data in zip(paths, (files[name] for name in sorted(files)), strict=True):
        path.write_bytes(data)
    both = [*map(str, paths), *urls(port, files)]
    source = tfrecreg.data_source(both, raw=True, cache=folder, cache_limit="64MiB")
    assert list(source) == 2 * EXPECTED


@pytest.mark.parametrize(
    ("share", "block"),
    [(2.0, None), (0.55, 20), pytest.param(0.48, None, marks=pytest.mark.slow)],
)
def test_any_size_of_cache_gives_the_same_records(
    files: dict[str, bytes], folder: Path, share: float, block: int | None, tmp_path: Path
) -> None:
    # Two of 1 MB: the least limit is half of them.
    large = {
        f"/d/train-{at:05d}-of-00002.tfrecord": framed(*EXPECTED[at * 9 :], *EXPECTED[: at * 9])
        for at in range(2)
    }
    expected = [each for at in range(2) for each in (*EXPECTED[at * 9 :], *EXPECTED[: at * 9])]
    if share < 0.5:
        large = {key: body + body for key, body in large.items()}
        expected = [*expected[:240] * 2, *expected[240:] * 2]
    limit = int(sum(map(len, large.values())) * share)
    with web_server(large) as port:
        source = opened(port, large, folder, limit)
        for epoch in range(2):
            order = source.order(seed=5, epoch=epoch, block=block)
            numbers = list(source.reading_ahead(order))
            assert numbers == list(order)
            for first in range(0, len(numbers), 100):
                part = numbers[first : first + 100]
                assert source.__getitems__(part) == [expected[at] for at in part]
            used = sum(path.stat().st_size for path in blocks_of(folder))
            assert used <= limit
    assert used > limit / 2 or share > 1


def test_a_flipped_byte_in_each_block_is_fetched_again(
    files: dict[str, bytes], port: int, folder: Path
) -> None:
    source = opened(port, files, folder, "2MiB")  # blocks of 64 KiB
    assert list(source) == EXPECTED
    blocks = blocks_of(folder)
    assert len(blocks) >= 12
    chance = random.Random(3)
    sound = {block: block.read_bytes() for block in blocks}
    for block in blocks:
        data = bytearray(sound[block])
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        block.write_bytes(data)
    again = pickle.loads(pickle.dumps(source))
    assert list(again) == EXPECTED
    assert [again[at] for at in range(240)] == EXPECTED
    assert {block: block.read_bytes() for block in blocks_of(folder)} == sound


def test_damage_in_the_store_is_that_of_the_store(files: dict[str, bytes], folder: Path) -> None:
    path = sorted(files)[1]
    data = bytearray(files[path])
    data[5000] ^= 1
    files[path] = bytes(data)
    with web_server(files) as port:
        source = opened(port, files, folder)
        with pytest.raises(DamagedRecordError, match="a second read of the store gave the same b"):
            source[RECORDS + 1]
        assert source[RECORDS + 2] == EXPECTED[RECORDS + 2]
        skipping = tfrecreg.data_source(
            urls(port, files),
            "train",
            raw=True,
            cache=folder,
            cache_limit="64MiB",
            damaged="skip",
            max_damaged=1,
        )
        assert len(list(skipping)) == 239
        kept = len(blocks_of(folder))
        assert len(list(skipping)) == 239
        assert len(blocks_of(folder)) == kept == SHARDS


def test_a_store_that_alters_bytes_is_said_to(
    files: dict[str, bytes], port: int, folder: Path
) -> None:
    source = opened(port, files, folder)
    calls = iter(range(1000))

    def change(body: bytes) -> bytes:
        at = next(calls) % len(body) if len(body) > 100 else 0
        return body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]

    faults = Faults(1.0, "flip")
    faults.most = 0
    with faulty(port, faults, change) as before:
        source = pickle.loads(pickle.dumps(opened(before, files, folder / "other")))
        emptied(folder / "other")
        faults.most = 1
        assert source[0] == EXPECTED[0]  # altered on its way into the cache, once
        assert list(source) == EXPECTED
        source = opened(before, files, folder / "third")
        emptied(folder / "third")
        faults.most = 1 << 30
        with pytest.raises((TransferError, StorageError)):
            source[0]


@pytest.mark.medium
@pytest.mark.parametrize("kind", ["cut", "503", "short"])
def test_a_store_that_fails_now_and_then_is_asked_again(
    files: dict[str, bytes], port: int, folder: Path, kind: str
) -> None:
    with faulty(port, Faults(0.2, kind, seed=4)) as before:
        source = opened(before, files, folder, "1MiB")
        order = list(source.order(seed=2))
        assert source.__getitems__(order) == [EXPECTED[at] for at in order]


def test_a_store_that_fails_is_said_to_and_leaves_nothing_half(
    files: dict[str, bytes], port: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFRECREG_REMOTE_ATTEMPTS", "1")
    faults = Faults(0, "503")
    with faulty(port, faults) as before:
        source = pickle.loads(pickle.dumps(opened(before, files, folder)))
        emptied(folder)
        faults.share = 1
        with pytest.raises(StorageError, match="cannot "):
            source[0]
        with pytest.raises(StorageError, match="cannot "):
            source.__getitems__([0, 100])
        faults.share = 0
        assert source[0] == EXPECTED[0]
    assert not list(folder.rglob("*.part"))


def test_a_file_that_was_changed_is_not_mixed_with_the_old_one(
    files: dict[str, bytes], port: int, folder: Path
) -> None:
    source = opened(port, files, folder, "1MiB")
    assert source[0] == EXPECTED[0]
    path = sorted(files)[0]
    emptied(folder)
    files[path] = framed(*(wide_payload(number) for number in range(RECORDS)))[:-1] + b"?"
    with pytest.raises(StorageError, match="was changed"):
        list(source)
    other = opened(port, files, folder, "1MiB")
    assert other[0] == EXPECTED[0]
    with pytest.raises(DamagedRecordError):
        other[RECORDS - 1]


def test_a_cache_that_cannot_be_written_is_left_out_with_one_line(
    files: dict[str, bytes], port: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = opened(port, files, folder)
    emptied(folder)
    original = os.write

    def full(handle: int, data: Any) -> int:
        if len(data) > 1000:
            raise OSError(28, "No space left on device")
        return original(handle, data)

    monkeypatch.setattr(os, "write", full)
    source = pickle.loads(pickle.dumps(source))
    with pytest.warns(RuntimeWarning, match="cannot be written: No space left on device; records"):
        assert source[0] == EXPECTED[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert source.__getitems__(range(240)) == EXPECTED
    assert not blocks_of(folder)
    assert not list(folder.rglob("*.part"))


def epoch(chance: random.Random, port: int, files: dict[str, bytes], folder: Path) -> None:
    """One epoch by hosts that stop anywhere and resume with other numbers, each with its cache."""
    limit = chance.choice(["1MiB", "64MiB"])
    options = chance.choice(
        [
            {},
            {"seed": 3},
            {"seed": chance.randrange(99), "block": chance.choice([5, 16, "40kB"])},
            {
                "seed": 4,
                "block": chance.randint(1, 50),
                "block_window": chance.randint(1, 6),
                "block_lanes": chance.randint(1, 8),
            },
        ]
    )
    hosts = chance.randint(1, 8)
    # A cache of each host; some are cold, and some are there from before.
    sources = [
        tfrecreg.data_source(
            urls(port, files),
            "train",
            raw=True,
            cache=folder / str(chance.randrange(4)),
            cache_limit=limit,
        )
        for _ in range(2)
    ]
    certificate = sources[0].certificate()
    shares = [sources[host % 2].order(host=host, hosts=hosts, **options) for host in range(hosts)]
    while shares[0].left:
        states = []
        for host, share in enumerate(shares):
            done = min(len(share), chance.randint(0, 90))
            source = sources[host % 2]
            numbers = iter(source.reading_ahead(share))
            taken = [next(numbers) for _ in range(done)]
            for first in range(0, done, 32):
                certificate.add_payloads(source.__getitems__(taken[first : first + 32]))
            states.append(share.state(done))
        hosts = chance.randint(1, 8)
        shares = [
            sources[host % 2].from_state(states, host=host, hosts=hosts) for host in range(hosts)
        ]
    assert sources[0].report(certificate).is_complete


@pytest.mark.medium
@pytest.mark.parametrize("seed", range(4))
def test_epochs_of_hosts_with_caches(
    files: dict[str, bytes], port: int, folder: Path, seed: int
) -> None:
    chance = random.Random(seed)
    for _ in range(4):
        epoch(chance, port, files, folder)


def test_sources_share_their_threads(
    files: dict[str, bytes], port: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Thread] = []

    def started(**options: Any) -> Thread:
        made.append(Thread(**options))
        return made[-1]

    source = opened(port, files, folder)
    monkeypatch.setattr(daemon_threads, "Thread", started)
    for _ in range(3):
        assert len(pickle.loads(pickle.dumps(source)).__getitems__([0, 100])) == 2
    assert len(made) <= THREADS


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(20))
def test_epochs_of_hosts_with_caches_often(
    files: dict[str, bytes], port: int, folder: Path, seed: int
) -> None:
    chance = random.Random(100 + seed)
    for _ in range(50):
        epoch(chance, port, files, folder)


def test_batches_read_ahead(files: dict[str, bytes], folder: Path) -> None:
    examples = {
        "/d/train-00000-of-00001.tfrecord": framed(*(payload(number) for number in range(3000)))
    }
    schema = folder.parent / "schema.pbtxt"
    schema.write_text(
        'feature { name: "number" type: INT presence { min_fraction: 1 min_count: 1 } shape {} }\n'
    )
    with web_server(examples) as port:
        source = tfrecreg.data_source(
            urls(port, examples), "train", schema=schema, cache=folder, cache_limit="1MiB"
        )
        order = source.order(seed=1, block=200)
        found = [int(each) for batch in source.batches(64, order) for each in batch["number"]]
        assert found == list(order)
        # Numbers of an iterator are taken as they are read, so that its state is right.
        numbers = iter(order)
        next(source.batches(64, numbers))
        assert numbers.state()["done"] == 64


def test_workers_of_a_loader_share_the_cache(
    files: dict[str, bytes], port: int, folder: Path
) -> None:
    data = pytest.importorskip("torch.utils.data")
    counted = Faults(0)
    with faulty(port, counted) as before:
        source = opened(before, files, folder, "2MiB")
        emptied(folder)
        source = pickle.loads(pickle.dumps(source))
        order = source.order(seed=1, block=20)
        counted.gets = 0
        loader = data.DataLoader(
            source,
            batch_size=16,
            sampler=source.reading_ahead(order),
            num_workers=2,
            multiprocessing_context="spawn",
            collate_fn=list,
        )
        found = [each for batch in loader for each in batch]
        assert found == [EXPECTED[at] for at in order]
        assert len(blocks_of(folder)) == sum(-(-len(each) // (64 << 10)) for each in files.values())
        # Each block came once: one request and one look, besides those of processes that open.
        assert counted.gets <= 2 * len(blocks_of(folder)) + 3 * SHARDS * 6


def test_the_sampler_of_torch_reads_ahead(files: dict[str, bytes], port: int, folder: Path) -> None:
    from tfrecreg.torch import OrderSampler

    source = opened(port, files, folder)
    emptied(folder)
    sampler = OrderSampler(pickle.loads(pickle.dumps(source)), seed=1)
    numbers = iter(sampler)
    next(numbers)
    assert sampler.state_dict()["done"] == 1
    rest = list(numbers)
    assert len(rest) == 239
    while len(blocks_of(folder)) < SHARDS:  # they are fetched in threads
        time.sleep(0.01)


def test_grain_reads_through_the_cache(files: dict[str, bytes], port: int, folder: Path) -> None:
    grain = pytest.importorskip("grain")
    source = opened(port, files, folder)
    dataset = grain.MapDataset.source(source).shuffle(seed=1)
    assert sorted(dataset) == sorted(EXPECTED)
    assert len(blocks_of(folder)) == SHARDS


def test_a_fork_goes_on_reading(files: dict[str, bytes], port: int, folder: Path) -> None:
    source = opened(port, files, folder)
    assert source[0] == EXPECTED[0]
    child = os.fork()
    if not child:
        os._exit(0 if source.__getitems__([3, 200]) == [EXPECTED[3], EXPECTED[200]] else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.medium
@pytest.mark.parametrize("zipped", [False, True])
def test_a_build_in_a_folder_of_a_server(tmp_path: Path, folder: Path, zipped: bool) -> None:
    registry = tfrecreg.init(tmp_path / "reg", with_dvc=False)
    registry["d"].build(
        data={"train": [{"a": number} for number in range(300)]},
        **({"compression": "gzip"} if zipped else {}),
    )
    registry["d"].release("1.0.0")
    root = next((tmp_path / "reg").glob("data/d"))
    files = {
        f"/d/{path.relative_to(root).as_posix()}": path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }
    shards = [path for path in files if "tfrecord-" in path and not path.endswith(".index")]
    with web_server(files) as port:
        source = tfrecreg.data_source(
            [f"http://127.0.0.1:{port}{path}" for path in sorted(shards)],
            "train",
            cache=folder,
            cache_limit="1GB",
            with_digest=True,
        )
        certificate = source.certificate()
        for batch in range(0, 300, 50):
            certificate.add([each["record/digest"] for each in source[batch : batch + 50]])
        assert source.report(certificate).is_complete
        assert blocks_of(folder)
        for block in blocks_of(folder):
            data = bytearray(block.read_bytes())
            data[len(data) // 2] ^= 16
            block.write_bytes(data)
        again = pickle.loads(pickle.dumps(source))
        assert [int(each["a"]) for each in again] == [int(each["a"]) for each in source]
