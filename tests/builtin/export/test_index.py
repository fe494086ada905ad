"""A folder of shards with indexes, as DALI and the package `tfrecord` read them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tfrecreg.builtin.export.run import export
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import int64_feature
from tfrecreg.core.records.reading.access import Records, read
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.workers.local import LocalEngine

SCHEMA = 'feature { name: "x" type: INT }\n'
SPLITS = {
    "train": [[{"x": int64_feature(range(n))} for n in range(40)], [{"x": int64_feature([7])}] * 3],
    "test": [[{"x": int64_feature([1])}]],
}


@pytest.fixture(params=["none", "gzip"])
def registry(request: pytest.FixtureRequest, place_build: Callable[..., Registry]) -> Registry:
    return place_build(SPLITS, SCHEMA, compression=request.param)


def test_each_shard_has_its_index_beside_it(registry: Registry, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = export(registry, "things", out, to="index")
    shards = [
        "things-test.tfrecord-00000-of-00001",
        "things-train.tfrecord-00000-of-00002",
        "things-train.tfrecord-00001-of-00002",
    ]
    expected = sorted([*shards, *(f"{shard}.idx" for shard in shards)])
    assert sorted(path.name for path in out.iterdir()) == expected == list(result.files)
    assert (result.to, result.version, result.splits) == (
        "index",
        "0.0.0",
        {"test": 1, "train": 43},
    )
    assert result.bytes == sum((out / shard).stat().st_size for shard in shards)


@pytest.mark.medium
def test_the_offsets_are_those_of_plain_files(registry: Registry, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(registry, "things", out, to="index", engine=LocalEngine(2))
    for shard in out.glob("*[0-9]"):
        sidecar = shard.with_name(shard.name + ".idx")
        # As both tools read it.
        rows = np.loadtxt(sidecar, dtype=np.int64, ndmin=2)
        data = shard.read_bytes()
        payloads = [data[at + 12 : at + size - 4] for at, size in rows.tolist()]
        with Records(shard) as records:
            assert payloads == list(records)
        assert rows[:, 1].sum() == len(data)
        assert read(shard, -1, index=sidecar) == payloads[-1]
    first = read(out / "things-train.tfrecord-00000-of-00002", 5)
    assert first == encode({"x": int64_feature(range(5))})


@pytest.mark.parametrize("suffix", [".tfindex", ".index"])
def test_the_suffix_can_be_chosen(registry: Registry, tmp_path: Path, suffix: str) -> None:
    result = export(registry, "things", tmp_path / "out", to="index", options={"suffix": suffix})
    assert sum(path.endswith(suffix) for path in result.files) == 3
