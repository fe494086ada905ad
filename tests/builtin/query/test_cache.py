"""The cache of catalogs: killed writers, races, damage, swapped files, and what `gc` removes."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from check_support import framed
from child_support import Child
from steps_support import CHANGING, Step, killed, steps_of
from sweep_support import part

from tfrecreg.builtin.dvc.garbage import gc
from tfrecreg.builtin.query import rows as query_rows
from tfrecreg.builtin.query.ask import ask
from tfrecreg.cli.main import main
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.run import check
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.registry.indexes import CATALOG_FORMAT
from tfrecreg.core.registry.registry import open_registry

pytest.importorskip("duckdb", reason="the extra `query` is not installed")
pq = pytest.importorskip("pyarrow.parquet")

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


def changes(step: Step) -> bool:
    return step.kind in CHANGING


def killed_at(
    at: int, shards: list[Path], cache: Path, told: Rows, files: dict[str, bytes]
) -> bool:
    """Ask in a process that dies at its step `at`, and again. Whether it lived to its end."""
    shutil.rmtree(cache)
    lived = not killed(lambda: rows(*shards), [cache], changes, at).killed
    assert set(kept(cache).items()) <= set(files.items()), at  # each file is whole, or not there
    assert rows(*shards) == told, at
    assert kept(cache) == files, at
    return lived


@pytest.mark.slow
def test_killed_at_any_call(shards: list[Path], cache: Path) -> None:
    told = rows(*shards)
    files = kept(cache)
    shutil.rmtree(cache)
    calls = len(steps_of(lambda: rows(*shards), [cache], changes))
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


def test_notes_that_are_swapped_are_not_used(shards: list[Path], cache: Path) -> None:
    """Each is sound by itself, but of the other shard."""
    told = rows(*shards)
    files = kept(cache)
    one, other = sorted(path for path in cache.glob("places/*/*") if path.is_file())
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    assert rows(*shards) == told
    assert kept(cache) == files


def test_a_catalog_with_damaged_columns_is_removed_and_made_again(
    shards: list[Path], cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = rows(*shards)
    files = kept(cache)
    path, other = sorted(cache.glob("shards/*/*"))
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    path.write_bytes(data[:4] + bytes(footer - 4) + data[footer:])
    question = ["query", *map(str, shards), "SELECT sum(n) FROM records"]
    assert main(question) == 3
    assert (path.exists(), other.exists()) == (False, True)
    capsys.readouterr()
    assert main([*question, "--format", "csv"]) == 0
    assert capsys.readouterr().out.split() == ["sum(n)", "780"]
    assert rows(*shards) == told
    assert kept(cache) == files


def test_rows_beyond_the_limit_of_memory_are_in_the_same_file(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Features come and go, and single values become lists, from one row group to the next."""
    sides = [f"image/object/bbox/{side}" for side in ("xmin", "xmax", "ymin", "ymax")]
    records = []
    for number in range(12):
        record = {
            "large": bytes_feature(bytes(700_000)),
            "n": int64_feature([0, 1] if number % 5 == 4 else 0),
        }
        if number % 3:
            record["f"] = float_feature(number / 3)
        if number > 5:
            record["late"] = bytes_feature(b"x" * number)
        if number in (2, 9):
            record |= {side: float_feature([0.25, 0.5]) for side in sides}
        records.append(record)
    path = tmp_path / "x.tfrecord"
    path.write_bytes(framed(*map(encode, records)))
    tables = ("SELECT * FROM records ORDER BY record", "SELECT * FROM objects ORDER BY ALL")

    def answers() -> list[list[dict[str, Any]]]:
        with ask(str(path)) as questions:
            return [questions.answer(sql).rows() for sql in tables]

    told = answers()
    assert [len(rows) for rows in told] == [12, 4]
    assert [row["n"] for row in told[0]] == [[0, 1] if n % 5 == 4 else [0] for n in range(12)]
    shutil.rmtree(cache)
    monkeypatch.setattr("tfrecreg.builtin.query.rows.CHUNK_ROWS", 1)
    assert answers() == told
    records_file, _ = sorted(cache.glob("shards/*/*.parquet"), key=lambda each: len(each.name))
    assert pq.ParquetFile(records_file).num_row_groups > 3


def test_single_values_and_lists_of_other_chunks_and_shards_are_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_rows, "CHUNK_ROWS", 1)
    large = {"large": bytes_feature(bytes(1 << 20))}
    found = [
        {"x": int64_feature(1), "long": int64_feature(3)},
        {},
        {"x": int64_feature(2)},
        {},
        {"x": int64_feature([3, 4]), "long": int64_feature(range(17))},
    ]
    other = [{"x": int64_feature(5), "long": int64_feature([6, 7])}]
    for name, records in (("a", found), ("b", other)):
        payloads = (encode({**each, **large}) for each in records)
        (tmp_path / f"{name}.tfrecord").write_bytes(framed(*payloads))
    sql = "SELECT x, len(x) AS n, long FROM records ORDER BY shard, record"
    with ask(f"{tmp_path}/*.tfrecord") as questions:
        told = [tuple(row.values()) for row in questions.answer(sql).rows()]
    assert [row[:2] for row in told] == [
        ([1], 1),
        (None, None),
        ([2], 1),
        (None, None),
        ([3, 4], 2),
        ([5], 1),
    ]
    assert [row[2] for row in told] == [[3], None, None, None, None, [6, 7]]


def test_single_values_become_lists_and_nulls_stay() -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"v0": pa.array([1, None, 2, None, None])})
    field = pa.field("v0", pa.list_(pa.int64()))
    lists = query_rows._column(pa, table, field)
    assert lists.to_pylist() == [[1], None, [2], None, None]
    assert pa.compute.list_value_length(lists).to_pylist() == [1, None, 1, None, None]


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


def test_gc_removes_damaged_notes_and_catalogs_of_other_formats(digits_registry: Path) -> None:
    with ask("digits", registry=str(digits_registry)):
        pass
    folder = digits_registry / ".tfrecreg/cache/catalogs"
    catalogs, notes = sorted(folder.glob("shards/*/*")), sorted(folder.glob("places/*/*"))
    notes += [folder / "places/00/young.json"] * (not notes)
    notes[0].parent.mkdir(parents=True, exist_ok=True)
    notes[0].write_bytes(b"{")
    old = [folder / "parts/00/0123.parquet", folder / "shards/00/0123.json"]
    old.append(catalogs[0].with_name(catalogs[0].name.replace(f"-{CATALOG_FORMAT}.", "-3.")))
    for path in old:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(catalogs[0].read_bytes())
    found = gc(open_registry(digits_registry), apply=True)
    assert {digits_registry / each.path for each in found} == {notes[0], *old}
    assert all(path.exists() for path in catalogs)
    with ask("digits", registry=str(digits_registry)) as questions:
        assert len(questions.answer("SELECT * FROM records")) == 260
