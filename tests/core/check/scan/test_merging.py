from __future__ import annotations

from pathlib import Path

import pytest
from scan_support import Looking, stream, target
from scan_support import shard as make_shard

from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.check.scan.run import run_scan
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.workers.local import LocalEngine


class Merger(Looking):
    """Keeps one part a split."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__()
        self.fails = fails
        self.parts: list[tuple[str, str, int]] = []

    def merge(self, part, more):
        if self.fails:
            raise ZeroDivisionError("a bug")
        part[0].merge(more[0])
        return part[0], part[1] + more[1]

    def finish(self, target, parts):
        self.parts = [(shard.split, shard.name, part[1]) for shard, part in parts]
        yield from ()


@pytest.fixture
def shards(tmp_path: Path) -> list[Shard]:
    storage = LocalStorage(tmp_path)
    for number in range(5):
        (tmp_path / f"{number}").write_bytes(stream(number + 1))
    splits = ("test", "test", "train", "train", "train")
    return [make_shard(storage, f"{number}", split) for number, split in enumerate(splits)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_validator_that_merges_gets_one_part_a_split(shards: list[Shard], jobs: int) -> None:
    merger, plain = Merger(), Looking("plain")
    run_scan(target(*shards), [merger, plain], LocalEngine(jobs))
    assert merger.parts == [("test", "0", 3), ("train", "2", 12)]
    assert plain.order == ["0", "1", "2", "3", "4"]


def test_a_merge_that_raises_costs_the_verdict_of_its_validator_only(shards: list[Shard]) -> None:
    merger, plain = Merger(fails=True), Looking("plain")
    result = run_scan(target(*shards), [merger, plain], LocalEngine(1))
    assert {crash.validator for crash in result.crashes} == {"looking"}
    assert result.crashes[0].shard == "1"
    assert "ZeroDivisionError: a bug" in result.crashes[0].reason
    assert plain.order == ["0", "1", "2", "3", "4"]
