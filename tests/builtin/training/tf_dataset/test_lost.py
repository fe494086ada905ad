"""Damage in the middle names shard, record and key, however the records are grouped and ordered."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests_support import flip

from tfrecreg.builtin.training.load import load
from tfrecreg.core.records.reading.access import Records

pytestmark = pytest.mark.slow  # TensorFlow traces a graph for each test

SHARD = "digits7-train.tfrecord-00004-of-00007"
PIPELINES: dict[str, dict[str, Any]] = {
    "batches": {"batch_size": 16},
    "shuffled": {"shuffle": True, "seed": 1},
    "shuffled batches": {"shuffle": True, "seed": 1, "batch_size": 16, "decode": True},
    "no remainder": {"batch_size": 150, "drop_remainder": True},
    "cached": {"cache": True, "shuffle": True, "batch_size": 16, "decode": True},
    "any order": {"deterministic": False, "batch_size": 16},
    "keys": {"features": [], "with_key": True},
    "repeated": {"repeat": True, "shuffle": 20, "batch_size": 16},
    "host of records": {"host": 1, "hosts": 2},
}


@pytest.fixture
def copy(numbered: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(numbered, tmp_path / "registry"))


def start_of(root: Path, record: int) -> int:
    with Records(root / "data/digits7" / SHARD) as records:
        return int(records.offsets[record])


def stopped(tf: Any, root: Path, split: str = "train", **arguments: Any) -> str:
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        for _ in load("digits7", split, registry=root, **arguments):
            pass
    return str(caught.value.message)


@pytest.mark.parametrize("pipeline", sorted(PIPELINES))
def test_a_damaged_record_is_named(tf: Any, copy: Path, pipeline: str) -> None:
    flip(copy / "data/digits7" / SHARD, start_of(copy, 9) + 40)
    message = stopped(tf, copy, **PIPELINES[pipeline])
    assert f"record 9 of `{SHARD}` of digits7 is damaged: CRC002" in message
    assert "; its key is `" in message


@pytest.mark.parametrize("arguments", [{"decode": True}, {"batch_size": 16, "decode": True}])
def test_records_before_damage_come(
    tf: Any, copy: Path, keys: Callable[..., list[bytes]], arguments: dict[str, Any]
) -> None:
    flip(copy / "data/digits7" / SHARD, start_of(copy, 9) + 40)
    came: list[Any] = []
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"record 9 of .* is damaged: CRC002"):
        came.extend(load("digits7", "train", registry=copy, with_key=True, **arguments))
    found = [key for each in came for key in np.atleast_1d(each["record/key"].numpy())]
    shards = [copy / "data/digits7" / SHARD.replace("4", str(number), 1) for number in range(4)]
    assert found == keys()[: sum(map(len, map(Records, shards))) + 9]


@pytest.mark.parametrize("pipeline", ["cached", "host of records"])
def test_a_shard_that_is_cut_between_two_epochs_is_named(
    tf: Any, copy: Path, pipeline: str
) -> None:
    arguments = {**PIPELINES[pipeline]}
    dataset = load("digits7", "train", registry=copy, **arguments)
    path = copy / "data/digits7" / SHARD
    path.write_bytes(path.read_bytes()[: start_of(copy, 20)])
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        for _ in dataset:
            pass
    assert f"`{SHARD}` of digits7 should have " in caught.value.message


def test_damage_outside_the_part_that_is_read_is_not_met(tf: Any, copy: Path) -> None:
    flip(copy / "data/digits7" / SHARD, start_of(copy, 9) + 40)
    dataset = load("digits7", "train[:100]", registry=copy, batch_size=16)
    assert sum(len(batch["image/height"]) for batch in dataset) == 100


def test_a_record_after_damage_in_its_shard_names_the_damage(tf: Any, copy: Path) -> None:
    """Part of a shard is found by reading from its beginning."""
    flip(copy / "data/digits7" / SHARD, start_of(copy, 0) + 40)
    with Records(copy / "data/digits7" / SHARD) as records:
        last = len(records)
    message = stopped(tf, copy, f"train[{last * 4 + 8}:{last * 4 + 12}]")
    assert f"record 0 of `{SHARD}` of digits7 is damaged: CRC002" in message


def test_an_index_that_is_damaged_is_told_where_keys_are_wanted(tf: Any, copy: Path) -> None:
    path = copy / "data/digits7/index" / f"{SHARD}.index"
    path.write_bytes(path.read_bytes()[:-9])
    message = stopped(tf, copy, with_key=True, batch_size=16)
    assert f"{SHARD}.index" in message
