"""The same files and the same report on every engine, also where tasks run twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from check_support import framed
from salvage_support import filler, make, put

from tfrecreg import engine as open_engine
from tfrecreg.builtin.salvage.run import salvage
from tfrecreg.cli.main import main
from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.storage.interface import Writer
from tfrecreg.core.values.errors import StorageError
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

ENGINES = {
    "two jobs": partial(LocalEngine, 2),
    "processes": partial(open_engine, "futures:executors_support:processes", jobs=2),
    "threads": partial(open_engine, "futures:executors_support:threads", jobs=2),
}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, light_workers: None) -> Iterator[Engine]:
    with closing(ENGINES[request.param]()) as made:
        yield made


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Shards of every outcome: sound, cut records, damaged gzip, doubtful records, no TFRecord."""
    folder = tmp_path / "in"
    folder.mkdir()
    plain = make([filler(number) for number in range(30)])
    data = bytearray(plain.data)
    data[700] ^= 1
    put(folder, plain.data, plain.index, "a.tfrecord")
    put(folder, bytes(data), plain.index, "b.tfrecord")
    put(folder, plain.data[:1000], None, "c.tfrecord")
    gzip = make([filler(number, 300) for number in range(60)], member_bytes=2000)
    data = bytearray(gzip.data)
    data[len(data) // 2] ^= 0x10
    put(folder, bytes(data), gzip.index, "d.tfrecord.gz")
    inner = framed(filler(1), filler(2), filler(3))
    whole = make([filler(0), inner, filler(4), inner, filler(5)])
    data = bytearray(whole.data)
    for number in (1, 3):
        data[whole.offsets[number] : whole.offsets[number] + 30] = bytes(30)
    put(folder, bytes(data), None, "e.tfrecord")
    put(folder, b"no TFRecord at all, " * 9, None, "f.tfrecord")
    return folder


def salvaged(folder: Path | str, output: Path, engine: Engine | None = None) -> dict[str, bytes]:
    """All files of a salvage, with the document without the name of the output."""
    result = salvage(f"{folder}/*.tfrecord*", output, engine=engine)
    document = {**result.to_json(), "output": ""}
    found = {path.name: path.read_bytes() for path in output.iterdir()}
    assert not [name for name in found if name.startswith(".")]
    assert not list(output.parent.glob(".tfrecreg-salvage*"))
    return {**found, "--json": json.dumps(document).encode()}


@pytest.fixture
def expected(damaged: Path, tmp_path: Path) -> dict[str, bytes]:
    found = salvaged(damaged, tmp_path / "expected")
    statuses = {each["status"] for each in json.loads(found["salvage.json"])["shards"]}
    assert statuses == {"sound", "salvaged", "refused"}
    assert {"b.tfrecord.quarantine", "e.tfrecord.doubtful"} <= found.keys()
    return found


@pytest.mark.medium
def test_files_and_report_do_not_depend_on_the_engine(
    damaged: Path, expected: dict[str, bytes], tmp_path: Path, engine: Engine
) -> None:
    assert salvaged(damaged, tmp_path / "out", engine) == expected


def test_shards_of_a_reference_are_compared_by_the_engine(
    digits_registry: Path, tmp_path: Path
) -> None:
    shard = digits_registry / "data/digits/digits-train.tfrecord-00001-of-00002"
    data = bytearray(shard.read_bytes())
    data[5000] ^= 1
    shard.write_bytes(bytes(data))
    with closing(ENGINES["threads"]()) as threads:
        results = [
            salvage(["digits"], tmp_path / name, registry=digits_registry, engine=made)
            for name, made in (("one", None), ("two", threads))
        ]
    assert [each.passed for each in results] == [3, 3]
    assert results[0].report() == results[1].report()


class Twice(LocalEngine):
    """Runs every task two times, each after a worker that is killed while it writes."""

    def __init__(self) -> None:
        super().__init__(2)

    def run(
        self, function: Callable[[Any], Any], tasks: Iterable[Any]
    ) -> Generator[Any, None, None]:
        self.killed: list[Writer] = []
        for task in tasks:
            if isinstance(task, Shard) and "stage" in getattr(function, "keywords", {}):
                stage = function.keywords["stage"]
                for name in (task.path, ".original.0123456789abcdef.tmp/.original"):
                    self.killed.append(stage.create(name))
                    self.killed[-1].write(b"half of it")
                with stage.create(".original.fedcba9876543210.tmp/.original.index") as whole:
                    whole.write(b"all of it")
            first, second = function(task), function(task)
            assert first == second
            yield second


def test_killed_workers_leave_nothing_behind(
    damaged: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    engine = Twice()
    assert salvaged(damaged, tmp_path / "out", engine) == expected
    for writer in engine.killed:
        writer.abort()


def test_a_url_is_salvaged_in_threads(
    memory: Any, damaged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in damaged.rglob("*"):
        if path.is_file():
            memory.pipe(f"/in/{path.relative_to(damaged)}", path.read_bytes())
    command = ["salvage", "memory://in", "--json", "--output"]
    said = []
    for name, more in (
        ("one", ["--jobs", "1"]),
        ("two", ["--engine", "futures:executors_support:threads"]),
    ):
        assert main([*command, str(tmp_path / name), *more]) == 1
        said.append(capsys.readouterr().out.replace(str(tmp_path / name), ""))
    assert said[0] == said[1]
    for path in (tmp_path / "one").iterdir():
        assert (tmp_path / "two" / path.name).read_bytes() == path.read_bytes()
    assert sorted(each.name for each in (tmp_path / "two").iterdir()) == sorted(
        each.name for each in (tmp_path / "one").iterdir()
    )


def test_what_a_worker_cannot_write_is_the_error_of_the_command(
    damaged: Path, tmp_path: Path
) -> None:
    (damaged / ("x" * 245 + ".tfrecord")).write_bytes(make([filler(1)]).data)
    with closing(ENGINES["threads"]()) as threads, pytest.raises(StorageError) as caught:
        salvage(f"{damaged}/*.tfrecord*", tmp_path / "out", engine=threads)
    assert "File name too long" in caught.value.message
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".tfrecreg-salvage*"))
