"""The same differences wherever records are read, and in whatever pieces."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from diff_support import example, image, put_build, side
from tests_support import flip

from tfrecreg import engine as open_engine
from tfrecreg.builtin.releases.diff.compare import Readers, Reading
from tfrecreg.builtin.releases.diff.match import Pairs
from tfrecreg.builtin.releases.diff.result import diff
from tfrecreg.core.example.model import Example
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.values.errors import FailureError
from tfrecreg.core.values.text import json_data
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

RECORDS = 150
SMALL_TASKS = {"_TASK_SECONDS": 7, "_PAIR_SECONDS": 1}
ENGINES = {
    "two jobs": partial(LocalEngine, 2),
    "processes": partial(open_engine, "futures:executors_support:processes", jobs=2),
    "threads": partial(open_engine, "futures:executors_support:threads", jobs=2),
}


def shards(records: Mapping[str, Example | bytes], count: int) -> list[dict[str, Example | bytes]]:
    """The records in shards, dealt out."""
    found: list[dict[str, Example | bytes]] = [{} for _ in range(count)]
    for number, (key, record) in enumerate(records.items()):
        found[number % count][key] = record
    return found


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two builds, `old` and `new`, that differ in every kind, with damage in one shard of each."""
    root = tmp_path_factory.mktemp("registry") / "root"
    train: dict[str, Example | bytes] = {f"k{n:03d}": example(n) for n in range(RECORDS)}
    test: dict[str, Example | bytes] = {f"t{n:03d}": example(1000 + n) for n in range(30)}
    put_build(root, {"train": shards(train, 5), "test": shards(test, 2)}, name="old")
    for n in range(0, RECORDS, 2):
        train[f"k{n:03d}"] = example(n, label=int64_feature(n % 7), more=int64_feature(n))
    for n in range(0, 40, 4):
        del train[f"k{n:03d}"]  # gone
        train[f"r{n:03d}"] = example(n, name=bytes_feature(b"%d" % n))  # another key and record
    for n in range(41, 60, 4):
        test[f"k{n:03d}"] = train.pop(f"k{n:03d}")  # moved
        test[f"m{n:03d}"] = example(n + 1, name=bytes_feature(b"x"))
        train.pop(f"k{n + 1:03d}")  # moved by its image
    for n in range(71, 80, 2):
        del train[f"k{n:03d}"]
    for n in range(61, 70, 2):
        train[f"k{n:03d}"] = b"no example %d" % n
    train["k003"] = {"image/encoded": bytes_feature(image(77))}
    train |= {f"new{n}": example(5000 + n) for n in range(20)}
    put_build(root, {"train": shards(train, 3), "test": shards(test, 4)}, name="new")
    flip(root / "data/old/old-train.tfrecord-00001-of-00005", 300)
    flip(root / "data/new/new-train.tfrecord-00002-of-00003", 2000)
    return root


@pytest.fixture
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task for every few pairs."""
    for name, value in SMALL_TASKS.items():
        monkeypatch.setattr(f"tfrecreg.builtin.releases.diff.compare.{name}", value)


def document(registry: Path, engine: Engine | None = None) -> str:
    """All that a diff says, also of every record."""
    result = diff("old", "new", registry=registry, engine=engine)
    # Processes of this machine start for each kind of records, which the slow tests pay for.
    records = result.records(None if isinstance(engine, LocalEngine) else engine)
    return json.dumps(json_data([result, records]), indent=1)


@pytest.fixture(scope="module")
def expected(registry: Path) -> str:
    """The document of this process, with every pass in one piece."""
    found = document(registry)
    result, records = json.loads(found)
    assert all(result["totals"].values())
    assert result["features"]["unread"]
    assert {each["kind"] for each in records} == set(result["totals"])
    return found


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, light_workers: None) -> Iterator[Engine]:
    with closing(ENGINES[request.param]()) as made:
        yield made


@pytest.mark.medium
def test_the_document_does_not_depend_on_the_engine(
    registry: Path, expected: str, small_tasks: None, engine: Engine
) -> None:
    assert document(registry, engine) == expected


def test_the_document_does_not_depend_on_the_pieces(
    registry: Path, expected: str, small_tasks: None
) -> None:
    assert document(registry) == expected
    assert document(registry, LocalEngine(1)) == expected


def test_features_and_labels_beyond_the_limit_are_counted_alike(
    registry: Path, small_tasks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfrecreg.builtin.releases.diff.compare._MOST", 2)
    pieces = document(registry)
    monkeypatch.setattr("tfrecreg.builtin.releases.diff.compare._TASK_SECONDS", 10_000)
    whole = document(registry)
    assert json.loads(whole)[0]["more_labels"] > 0
    assert pieces == whole


def die(readers: Readers, pairs: Pairs) -> None:
    """A pass that kills its process."""
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.medium
def test_a_killed_worker_is_a_failure(
    registry: Path, small_tasks: None, light_workers: None
) -> None:
    places = np.arange(20, dtype=np.uint64)
    reading = Reading(side(registry, "old"), side(registry, "new"), LocalEngine(2))
    with pytest.raises(FailureError, match="was killed by SIGKILL before its task was done"):
        list(reading.run(die, Pairs(places, places)))
