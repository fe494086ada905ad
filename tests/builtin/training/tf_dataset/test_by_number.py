"""Large records are ordered by their numbers, and each is read when it is due."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests_support import flip

from tfrecreg.builtin.training.load import load
from tfrecreg.core.records.reading.access import Records

pytestmark = pytest.mark.slow  # TensorFlow traces a graph for each test

Keys = Callable[..., list[bytes]]
SHARD = "digits7-train.tfrecord-00004-of-00007"


def read(dataset: Any) -> list[bytes]:
    """The keys of a dataset, in their order."""
    found: list[bytes] = []
    for element in dataset:
        keys = element["record/key"].numpy()
        found += [keys] if isinstance(keys, bytes) else keys.tolist()
    return found


@pytest.fixture
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits count as large."""
    monkeypatch.setattr("tfrecreg.builtin.training.tf_dataset.pipeline._ALONE_BYTES", 1)


def refuse(*_: object, **__: object) -> None:
    raise AssertionError("payloads are read in another way")


@pytest.mark.parametrize(
    "arguments",
    [
        {"shards": 1},
        {"shards": 7, "batch_size": 16},
        {"shards": 7, "shuffle": 5},
        {"shards": 7, "hosts": 5, "host": 4, "batch_size": 3},
        {"shards": 2, "hosts": 3, "host": 1, "drop_remainder": True, "batch_size": 16},
        {"shards": 7, "split": "train[20:150]+test[:9]"},
        {"shards": 2, "deterministic": False, "repeat": 2},
        {"shards": 7, "shuffle": False, "seed": None, "batch_size": 16, "split": "train[20:-9]"},
        {"shards": 7, "cache": True, "batch_size": 16},
    ],
)
def test_the_order_is_that_of_payloads(
    tf: Any, numbered: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any]
) -> None:
    arguments = {"shuffle": True, "seed": 3, "split": "train", **arguments}
    shards, split = arguments.pop("shards"), arguments.pop("split")

    def epochs() -> list[list[bytes]]:
        dataset = load(
            f"digits{shards}", split, registry=numbered, features=[], with_key=True, **arguments
        )
        return [read(dataset), read(dataset)]

    monkeypatch.setattr("tfrecreg.builtin.training.tf_dataset.source._MOST", 8)
    by_payload = epochs()
    with monkeypatch.context() as changed:
        changed.setattr("tfrecreg.builtin.training.tf_dataset.pipeline._ALONE_BYTES", 1)
        changed.setattr("tfrecreg.builtin.training.tf_dataset.pipeline.read_payloads", refuse)
        by_number = epochs()
    assert [sorted(each) for each in by_number] == [sorted(each) for each in by_payload]
    if arguments["shuffle"]:
        assert by_number[0] != by_number[1]
    if arguments.get("deterministic", True):
        assert by_number == by_payload


def test_large_records_are_read_by_number(
    tf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tfrecreg import init

    for name, size in (("large", 1 << 14), ("small", 200)):
        (tmp_path / name).mkdir()
        for number in range(3):
            (tmp_path / name / f"{number}.txt").write_bytes(bytes([number]) * size)
    registry = init(tmp_path / "registry", with_dvc=False)
    for name in ("large", "small"):
        registry[name].build(source="folder", raw=tmp_path / name)
    monkeypatch.setattr("tfrecreg.builtin.training.tf_dataset.pipeline.read_payloads", refuse)
    found = read(load("large", registry=registry, shuffle=True, with_key=True))
    assert sorted(found) == [b"0.txt", b"1.txt", b"2.txt"]
    assert sorted(read(load("large", registry=registry, with_key=True))) == sorted(found)
    with pytest.raises(AssertionError, match="in another way"):
        load("small", registry=registry, shuffle=True)


@pytest.mark.usefixtures("all_are_large")
def test_gzip_is_read_in_order(
    tf: Any, numbered: Path, keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tfrecreg import init

    registry = init(tmp_path / "registry", with_dvc=False)
    registry["digits"].build(source="mnist", raw=numbered / "raw", compression="gzip")
    path = next((tmp_path / "registry/data/digits").glob("*train*"))
    assert gzip.decompress(path.read_bytes())
    found = read(load("digits", "train", registry=registry, with_key=True, shuffle=True))
    assert sorted(found) == sorted(keys())


@pytest.mark.usefixtures("all_are_large")
def test_a_damaged_record_is_named(tf: Any, numbered: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(numbered, tmp_path / "registry"))
    path = root / "data/digits7" / SHARD
    with Records(path) as records:
        start = int(records.offsets[9])
    flip(path, start + 40)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        list(load("digits7", "train", registry=root, shuffle=True, seed=1, batch_size=16))
    message = str(caught.value.message)
    assert f"record 9 of `{SHARD}` of digits7 is damaged: CRC002" in message
    assert "; its key is `" in message


@pytest.mark.usefixtures("all_are_large")
def test_a_damaged_index_is_done_without(
    tf: Any, numbered: Path, keys: Keys, tmp_path: Path
) -> None:
    """As it is where payloads are shuffled."""
    root = Path(shutil.copytree(numbered, tmp_path / "registry"))
    path = root / "data/digits7/index" / f"{SHARD}.index"
    path.write_bytes(path.read_bytes()[:-9])
    batches = load("digits7", "train", registry=root, shuffle=True, batch_size=16)
    assert sum(len(each["image/height"]) for each in batches) == len(keys())


@pytest.mark.usefixtures("all_are_large")
def test_a_shard_that_is_cut_between_two_epochs_is_named(
    tf: Any, numbered: Path, tmp_path: Path
) -> None:
    root = Path(shutil.copytree(numbered, tmp_path / "registry"))
    dataset = load("digits7", "train", registry=root, shuffle=True, seed=2, batch_size=16)
    path = root / "data/digits7" / SHARD
    with Records(path) as records:
        start = int(records.offsets[20])
    path.write_bytes(path.read_bytes()[:start])
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        list(dataset)
    assert f"`{SHARD}` of digits7 " in str(caught.value.message)
