"""`load` of a build behind a URL, through a cache: nothing is copied first, and nothing is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from s3_support import Faults, faulty, web_server

import tfrecreg

RECORDS, SHARDS = 400, 4


@pytest.fixture(scope="module")
def tf() -> Any:
    return pytest.importorskip("tensorflow", reason="the extra `tf` is not installed")


@pytest.fixture(scope="module")
def bodies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a build of 400 records of about 4 KiB in 4 shards, as a server has them."""
    registry = tfrecreg.init(tmp_path_factory.mktemp("far"))
    rng = np.random.default_rng(1)
    rows = [
        {"n": number, "label": number % 5, "noise": rng.bytes(4000)} for number in range(RECORDS)
    ]
    build = registry["far"].build(data={"train": rows}, shards=SHARDS, progress=False)
    folder = Path(build.storage().root)
    paths = (each for each in folder.rglob("*") if each.is_file())
    return {f"/far/{each.relative_to(folder)}": each.read_bytes() for each in paths}


@pytest.fixture
def files(bodies: dict[str, bytes]) -> dict[str, bytes]:
    return dict(bodies)


@pytest.fixture
def port(files: dict[str, bytes]) -> Iterator[int]:
    with web_server(files) as port:
        yield port


def loaded(port: int, cache: Path, limit: int | str = "64MiB", **options: Any) -> Any:
    return tfrecreg.load(
        f"http://127.0.0.1:{port}/far/", "train", cache=str(cache), cache_limit=limit, **options
    )


def numbers(dataset: Any) -> list[int]:
    return [number for each in dataset for number in each["n"].numpy().ravel().tolist()]


def local(bodies: dict[str, bytes], folder: Path, **options: Any) -> Any:
    """The same build, on this machine."""
    for path, data in bodies.items():
        here = folder / path.lstrip("/")
        here.parent.mkdir(parents=True, exist_ok=True)
        here.write_bytes(data)
    return tfrecreg.load(str(folder / "far"), "train", **options)


@pytest.mark.medium
def test_elements_and_their_order_are_those_of_local_shards(
    tf: Any, bodies: dict[str, bytes], port: int, tmp_path: Path
) -> None:
    options = {"with_key": True, "with_digest": True}
    here = local(bodies, tmp_path / "local", **options)
    far = loaded(port, tmp_path / "blocks", **options)
    assert far.element_spec == here.element_spec
    assert len(far) == len(here) == RECORDS
    for ours, theirs in zip(far, here, strict=True):
        assert ours.keys() == theirs.keys()
        for name in ours:
            assert np.array_equal(ours[name].numpy(), theirs[name].numpy())


@pytest.mark.medium
def test_nothing_is_copied_first_and_a_second_epoch_asks_for_nothing(
    tf: Any, port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    counted = Faults(0)
    with faulty(port, counted) as before:
        dataset = loaded(before, tmp_path / "blocks", batch_size=32, shuffle=True, seed=1)
        assert not list(tmp_path.glob("user/**/*.tfrecord*"))
        assert sum(each.stat().st_size for each in tmp_path.glob("blocks/**/*.block")) == 0
        first = numbers(dataset)
        counted.gets = 0
        second = numbers(dataset)
        assert counted.gets == 0
    assert sorted(first) == sorted(second) == list(range(RECORDS))
    assert first != second


@pytest.mark.medium
@pytest.mark.parametrize("shuffle", [False, 50])
def test_a_cache_smaller_than_the_data_gives_each_record_once(
    tf: Any, port: int, tmp_path: Path, shuffle: bool | int
) -> None:
    dataset = loaded(port, tmp_path / "blocks", "1MiB", batch_size=16, shuffle=shuffle)
    for _ in range(2):
        assert sorted(numbers(dataset)) == list(range(RECORDS))
    kept = sum(each.stat().st_size for each in tmp_path.glob("blocks/**/*.block"))
    assert kept <= 1 << 20


@pytest.mark.medium
@pytest.mark.parametrize("hosts", [2, 7])
def test_hosts_share_the_records(tf: Any, port: int, tmp_path: Path, hosts: int) -> None:
    found = Counter(
        number
        for host in range(hosts)
        for number in numbers(loaded(port, tmp_path / "blocks", host=host, hosts=hosts))
    )
    assert found == Counter(range(RECORDS))


@pytest.mark.medium
def test_slices_and_conditions_read_what_they_name(tf: Any, port: int, tmp_path: Path) -> None:
    every = numbers(loaded(port, tmp_path / "blocks"))
    url = f"http://127.0.0.1:{port}/far/"
    options: dict[str, Any] = {"cache": str(tmp_path / "blocks"), "cache_limit": "64MiB"}
    parts = tfrecreg.load(url, ["train[:25%]", "train[25%:]"], **options)
    assert [*map(numbers, parts)] == [every[:100], every[100:]]
    chosen = numbers(tfrecreg.load(url, "train", where="label = 3", progress=False, **options))
    assert chosen == [each for each in every if each % 5 == 3]


def test_damage_in_the_store_is_named(
    tf: Any, files: dict[str, bytes], port: int, tmp_path: Path
) -> None:
    path = next(each for each in sorted(files) if ".tfrecord-00001" in each)
    data = bytearray(files[path])
    data[len(data) // 2 + 100] ^= 1
    files[path] = bytes(data)
    dataset = loaded(port, tmp_path / "blocks", batch_size=32)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        numbers(dataset)
    name = path.rpartition("/")[2]
    told = str(caught.value)
    assert f"record 50 of `{name}` of http://127.0.0.1:{port}/far/ is damaged: CRC002: " in told
    assert "a second read of the store gave the same bytes; its key is `" in told
