"""The records of `load(where=)`: those of `data_source`, in its order, and nothing else is read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import tfrecreg as tr
from tfrecreg.builtin.python_data.build import build
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.shards import ShardPolicy

pytest.importorskip("duckdb", reason="the extra `query` is not installed")

WHERE = "label IN ('3', '7')"


@pytest.fixture(scope="module")
def tf() -> Any:
    return pytest.importorskip("tensorflow", reason="the extra `tf` is not installed")


def keys(dataset: Any) -> list[str]:
    return [key.numpy().decode() for each in dataset for key in [each["record/key"]]]


def wanted(root: Path, split: str = "train", where: str = WHERE) -> list[str]:
    source = tr.data_source("digits", split, registry=root, where=where)
    return [str(source.key(at)) for at in range(len(source))]


@pytest.mark.medium
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_the_selected_records_come_in_their_order(
    tf: Any, digits_registry: Path, compression: Any
) -> None:
    request = BuildRequest(name="digits", compression=compression, policy=ShardPolicy(shards=3))
    build(open_registry(digits_registry), request)
    root = str(digits_registry)
    dataset = tr.load("digits", "train", registry=root, where=WHERE, with_key=True, decode=True)
    assert keys(dataset) == wanted(digits_registry)
    assert len(dataset) == len(wanted(digits_registry)) > 0
    labels = {int(each["image/class/label"]) for each in dataset}
    assert labels == {3, 7}
    sliced = tr.load("digits", "train[:50%]+test", registry=root, where=WHERE, with_key=True)
    assert keys(sliced) == wanted(digits_registry, "train[:50%]+test")


@pytest.mark.medium
def test_batches_shuffles_and_hosts_have_each_record_once(tf: Any, digits_registry: Path) -> None:
    options = {"registry": digits_registry, "where": WHERE, "with_key": True}
    expected = wanted(digits_registry)
    shuffled = tr.load("digits", "train", shuffle=True, seed=1, **options)
    first, second = keys(shuffled), keys(shuffled)
    assert sorted(first) == sorted(second) == sorted(expected)
    assert len({tuple(first), tuple(second), tuple(expected)}) == 3
    parts = [tr.load("digits", "train", host=host, hosts=3, **options) for host in range(3)]
    assert [key for part in parts for key in keys(part)] == expected
    batched = tr.load("digits", "train", batch_size=8, drop_remainder=True, decode=True, **options)
    assert len(batched) == len(list(batched)) == len(expected) // 8
    with pytest.raises(UsageError, match="too few for 1000 hosts"):
        tr.load("digits", "train", hosts=1000, **options)
    assert keys(tr.load("digits", "train", **{**options, "where": "label = '11'"})) == []


@pytest.mark.medium
def test_damage_after_the_question_is_named(tf: Any, digits_registry: Path) -> None:
    dataset = tr.load("digits", "train", registry=digits_registry, where=WHERE, with_key=True)
    every = tr.data_source("digits", "train", registry=digits_registry, raw=True)
    source = tr.data_source("digits", "train", registry=digits_registry, where=WHERE, raw=True)
    place = source._shards.places[0]
    path = Path(place.root, place.path)
    status, data = path.stat(), bytearray(path.read_bytes())
    others = [each for each in every if each in data and each not in list(source)]
    for payload in [source[2], *others]:
        data[data.index(payload) + 5] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    found = iter(dataset)
    expected = wanted(digits_registry)
    assert [next(found)["record/key"].numpy().decode() for _ in range(2)] == expected[:2]
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        next(found)
    assert f"`{place.path}` of digits is damaged" in str(caught.value)
