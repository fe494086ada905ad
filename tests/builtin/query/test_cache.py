"""The cache of catalogs: killed writers, races, damage, swapped files, and what `gc` removes."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import google_crc32c
import pytest
from blake3 import blake3
from check_support import framed
from child_support import Child
from kill_support import calls_of, in_child
from sweep_support import part

from tfrecreg.builtin.query import entries
from tfrecreg.builtin.query.ask import ask
from tfrecreg.builtin.query.entries import CatalogCache
from tfrecreg.cli.main import main
from tfrecreg.example.encode import encode
from tfrecreg.example.features import int64_feature
from tfrecreg.operations.check.options import CheckOptions
from tfrecreg.operations.check.run import check
from tfrecreg.operations.remote.garbage import gc
from tfrecreg.registry.registry import open_registry
from tfrecreg.shardset.target import find_target

pytest.importorskip("duckdb", reason="the extra `query` is not installed")

Rows = list[tuple[Any, ...]]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/tfrecreg/catalogs"


def write(path: Path, *numbers: int) -> Path:
    """A shard that is old enough for a note of it."""
    path.write_bytes(framed(*(encode({"n": int64_feature(n)}) for n in numbers)))
    long_ago = time.time() - 100
    os.utime(path, (long_ago, long_ago))
    return path


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    folder = tmp_path / "shards"
    folder.mkdir()
    return [
        write(folder / f"x-train.tfrecord-{number:05d}-of-00002", *range(number, 40, 2))
        for number in range(2)
    ]


def rows(*paths: Path) -> Rows:
    sql = 'SELECT shard, record, "offset", digest, n FROM records ORDER BY ALL'
    with ask([f"{paths[0].parent}/*.tfrecord-*"]) as questions:
        return [tuple(row.values()) for row in questions.answer(sql).rows()]


def kept(cache: Path) -> dict[str, bytes]:
    """The files of the cache, but for what killed writers left."""
    return {
        str(path.relative_to(cache)): path.read_bytes()
        for path in cache.rglob("*")
        if path.is_file() and path.suffix in (".json", ".parquet")
    }


def killed_at(
    at: int, shards: list[Path], cache: Path, told: Rows, files: dict[str, bytes]
) -> bool:
    """Ask in a process that dies at its call `at`, and again. Whether it lived to its end."""
    shutil.rmtree(cache)
    lived = in_child(lambda: rows(*shards), at)
    assert set(kept(cache).items()) <= set(files.items()), at  # each file is whole, or not there
    assert rows(*shards) == told, at
    assert kept(cache) == files, at
    return lived


@pytest.mark.medium
def test_a_killed_writer_leaves_nothing_that_is_used(shards: list[Path], cache: Path) -> None:
    told = rows(*shards)
    files = kept(cache)
    shutil.rmtree(cache)
    calls = calls_of(lambda: rows(*shards))
    assert kept(cache) == files
    for at in (calls // 2, calls - 3):
        assert not killed_at(at, shards, cache, told, files)


@pytest.mark.slow
def test_killed_at_any_call(shards: list[Path], cache: Path) -> None:
    told = rows(*shards)
    files = kept(cache)
    shutil.rmtree(cache)
    calls = calls_of(lambda: rows(*shards))
    every = list(range(1, calls + 1))
    for at in part(random.Random(30).sample(every, min(len(every), 60))):
        assert not killed_at(at, shards, cache, told, files)


def test_processes_that_ask_at_once_agree(shards: list[Path], cache: Path) -> None:
    told = rows(*shards)
    files = kept(cache)
    shutil.rmtree(cache)

    def work(tell: Callable[..., None]) -> list[list[Any]]:
        tell("ready", wait=True)
        return [list(row) for row in rows(*shards)]

    children = [Child(work) for _ in range(3)]
    assert [each.told() for each in children] == ["ready"] * 3
    for each in children:
        each.go_on()
    for each in children:
        ended = each.join()
        assert ended.failure is None, ended.failure
        assert [tuple(row) for row in ended.value] == told
    assert kept(cache) == files


@pytest.mark.parametrize("folder", ["places", "shards", "parts"])
def test_files_of_a_catalog_that_are_swapped_are_not_used(
    folder: str, shards: list[Path], cache: Path
) -> None:
    """Each is sound by itself, but of the other shard."""
    told = rows(*shards)
    files = kept(cache)
    one, other = sorted(path for path in cache.glob(f"{folder}/*/*") if path.is_file())
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    assert rows(*shards) == told
    assert kept(cache) == files


def recalls(shard: Path, threads: int = 1) -> Callable[[], bool]:
    """A function that tells whether the catalog of a shard would be used."""
    storage = CatalogCache(find_target(str(shard)))
    digest = blake3(shard.read_bytes()).hexdigest()
    return lambda: storage.recall_each([(digest, "")], threads) != [None]


def flip_bits(path: Path, shard: Path, step: int) -> None:
    """Expect that no flipped bit of a file of its catalog, at each `step` bytes, is overlooked."""
    sound, recalled = path.read_bytes(), recalls(shard)
    assert recalled()
    for at in range(0, len(sound), step):
        damaged = bytearray(sound)
        damaged[at] ^= 1 << at % 8
        path.write_bytes(damaged)
        assert not recalled(), (path.name, at)
    path.write_bytes(sound)
    assert recalled()


@pytest.mark.parametrize("folder", ["shards", "parts"])
@pytest.mark.parametrize("crc", ["c", "python"])
def test_a_flipped_bit_is_found_and_the_file_made_again(
    folder: str, crc: str, shards: list[Path], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the digest, too, where CRC32C would be computed in Python."""
    monkeypatch.setattr(google_crc32c, "implementation", crc)
    shards.pop().unlink()
    told = rows(*shards)
    files = kept(cache)
    (path,) = (each for each in cache.glob(f"{folder}/*/*") if each.is_file())
    size = path.stat().st_size
    flip_bits(path, shards[0], size // 30)
    damaged = bytearray(path.read_bytes())
    damaged[size // 2] ^= 1
    path.write_bytes(damaged)
    assert rows(*shards) == told
    assert kept(cache) == files


@pytest.mark.slow
def test_a_flipped_bit_of_any_byte_of_a_catalog_is_found(shards: list[Path], cache: Path) -> None:
    shards.pop().unlink()
    rows(*shards)
    (part,), (entry,) = cache.glob("parts/*/*"), cache.glob("shards/*/*")
    flip_bits(part, shards[0], 1)
    flip_bits(entry, shards[0], 1)


def test_threads_find_the_damage_of_large_catalogs(
    shards: list[Path], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows(*shards)
    monkeypatch.setattr(entries, "_WORTH_THREADS", 0)
    recalled = recalls(shards[0], threads=2)
    assert recalled()
    for path in cache.glob("parts/*/*"):
        path.write_bytes(path.read_bytes()[::-1])
    assert not recalled()


def test_a_note_of_another_state_is_not_used(shards: list[Path], cache: Path) -> None:
    told = rows(*shards)
    write(shards[0], *range(100, 120))
    found = rows(*shards)
    assert {row[4] for row in found} - {row[4] for row in told} == set(range(100, 120))


def test_a_shard_that_is_put_in_the_place_of_another_is_read(
    shards: list[Path], tmp_path: Path
) -> None:
    """Of the same size and time: only the inode tells."""
    rows(*shards)
    before = shards[0].stat()
    other = write(tmp_path / "other", *range(1, 41, 2))
    assert other.stat().st_size == before.st_size
    os.utime(other, ns=(before.st_mtime_ns, before.st_mtime_ns))
    other.replace(shards[0])
    found = [row[4] for row in rows(*shards) if row[0].endswith("00000-of-00002")]
    assert sorted(found) == list(range(1, 41, 2))


def test_folders_in_the_place_of_files_are_no_catalog(shards: list[Path], cache: Path) -> None:
    told = rows(*shards)
    for path in [path for path in cache.rglob("*") if path.is_file()]:
        path.unlink()
        path.mkdir()
    assert rows(*shards) == told


def test_a_check_does_not_read_catalogs(shards: list[Path], cache: Path, tmp_path: Path) -> None:
    """Nor does it write any: with questions of a gate, they are in a folder of their own."""
    rows(*shards)
    files = kept(cache)
    for path in cache.rglob("*"):
        if path.is_file():
            path.write_bytes(b"not a catalog")
    registry = tmp_path / "registry"
    registry.mkdir()
    (registry / "tfrecreg.toml").write_text(
        "[gates.default.expect.sum]\nquery = 'SELECT sum(n)::INT FROM records'\nequals = 780\n"
    )
    options = CheckOptions(only=("questions", "crc"))
    (report,) = check([str(shards[0].parent / "*")], registry=str(registry), options=options)
    assert (report.status, report.findings) == ("pass", ())
    assert set(kept(cache)) == set(files)
    assert set(kept(cache).values()) == {b"not a catalog"}


def test_gc_removes_catalogs_of_no_build_and_no_release(
    digits_registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def asked() -> int:
        with ask("digits", registry=str(digits_registry)) as questions:
            return len(questions.answer("SELECT * FROM records"))

    registry = open_registry(digits_registry)
    folder = digits_registry / ".tfrecreg/cache/catalogs"
    assert asked() == 260
    assert gc(registry) == []  # the release has these shards
    for each in ("data/digits", "registry/digits", "versions/digits"):
        shutil.rmtree(digits_registry / each)
    registry = open_registry(digits_registry)
    listed = [each for each in gc(registry) if each.kind == "catalog"]
    assert {each.why for each in listed} == {"no manifest names its shard"}
    files = {path for path in folder.rglob("*") if path.is_file()}
    assert {digits_registry / each.path for each in listed} == files
    assert sum(each.bytes for each in listed) == sum(path.stat().st_size for path in files)
    assert main(["-C", str(digits_registry), "gc"]) == 0
    assert "no manifest names its shard" in capsys.readouterr().out
    assert files == {path for path in folder.rglob("*") if path.is_file()}  # only listed
    assert main(["-C", str(digits_registry), "gc", "--apply"]) == 0
    assert not [path for path in folder.rglob("*") if path.is_file()]
    assert gc(open_registry(digits_registry)) == []


def test_gc_removes_damaged_catalogs_and_keeps_the_others(digits_registry: Path) -> None:
    with ask("digits", registry=str(digits_registry)):
        pass
    folder = digits_registry / ".tfrecreg/cache/catalogs"
    entries = sorted(folder.glob("shards/*/*.json"))
    entries[0].write_bytes(entries[0].read_bytes()[:-1])
    found = gc(open_registry(digits_registry), apply=True)
    removed = {digits_registry / each.path for each in found}
    assert entries[0] in removed
    assert not removed & set(entries[1:])
    assert len(removed) == 2  # with the Parquet file that only it lists
    with ask("digits", registry=str(digits_registry)) as questions:
        assert len(questions.answer("SELECT * FROM records")) == 260
