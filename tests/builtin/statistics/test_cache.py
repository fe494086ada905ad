from __future__ import annotations

import json
from pathlib import Path

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import statistics_pb2

from tfrecreg.builtin.statistics.collect import LeftOut, SplitStatistics, StatisticsCache
from tfrecreg.builtin.statistics.options import StatisticsOptions
from tfrecreg.core.example.kinds import PayloadKind
from tfrecreg.core.storage.local import LocalStorage

CONTENT = "c" * 64
OPTIONS = StatisticsOptions()


def statistics(**more) -> SplitStatistics:
    proto = text_format.Parse(
        'datasets { num_examples: 4 features { path { step: "x" } num_stats { mean: nan } } }',
        statistics_pb2.DatasetFeatureStatisticsList(),
    )
    kinds = {PayloadKind.EVENT: 2}
    values = {"examples": 4, "left_out": LeftOut(0, 1, kinds), "sketched": ("x",), **more}
    return SplitStatistics(split="train", proto=proto, **values)


@pytest.fixture
def cache(tmp_path: Path) -> StatisticsCache:
    return StatisticsCache(LocalStorage(tmp_path))


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_file_that_does_not_hold_is_not_believed(cache: StatisticsCache, tmp_path: Path) -> None:
    cache.remember(statistics(), CONTENT, OPTIONS)
    (path,) = files(tmp_path)
    good = path.read_bytes()
    head, _, body = good.partition(b"\n")
    told = json.loads(head)
    strange = json.dumps({**told, "kinds": {"cake": 1}}).encode()
    deep = b"[" * 100_000
    for bad in (
        b"",
        good[:-1],
        good + b"x",
        head,
        b"[]\n" + body,
        b"{}\n",
        strange + b"\n" + body,
        deep,
    ):
        path.write_bytes(bad)
        assert cache.recall("train", CONTENT, OPTIONS) is None, bad
    path.write_bytes(good)
    assert cache.recall("train", CONTENT, OPTIONS) is not None
    path.unlink()
    path.mkdir()
    assert cache.recall("train", CONTENT, OPTIONS) is None
