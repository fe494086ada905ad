"""Remarks of a source are counted and listed, and never refuse a build."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tfrecreg.core.build.conclude import ledger_entries, ledgers
from tfrecreg.core.build.plan import Plan, make_plan
from tfrecreg.core.build.shard import BuildTask, MadeShard, Stage, make_shard
from tfrecreg.core.build.sources.guarded import GuardedSource
from tfrecreg.core.build.sources.interface import Item, Remark, Skipped, Written
from tfrecreg.core.example.values import int64_feature
from tfrecreg.core.plugins.guard import PluginId
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.shards import ShardPolicy
from tfrecreg.core.workers.local import LocalEngine


class Boxes:
    """A source with three items: one plain, one with a remark, one that is skipped."""

    def items(self) -> Iterator[Item | Skipped | Remark]:
        yield Remark("train", "images/", "SRC117", "nothing names them: `b.jpg` …", 7)
        for key in ("plain", "remarked", "skipped"):
            yield Item("train", key, 10)

    def example(self, item: Item):
        if item.key == "skipped":
            return Skipped("train", item.key, "SRC110", "empty")
        example = {"x": int64_feature(len(item.key))}
        if item.key == "plain":
            return example
        remarks = [
            Remark("train", item.key, "SRC116", "2 boxes were clipped", 2),
            Remark("train", item.key, "SRC115", "a box was dropped"),
        ]
        return Written(example, remarks)


def made(folder: Path) -> tuple[Plan, list[MadeShard]]:
    plan = make_plan("d", Boxes().items(), ShardPolicy(shards=2), {})
    source = pickle.dumps(GuardedSource(Boxes(), PluginId("source", "boxes")))
    task = partial(BuildTask, stage=Stage(LocalStorage(folder)), source=source)
    tasks = [task(plan=plan.digest, compression="none", shard=shard) for shard in plan.shards]
    return plan, list(LocalEngine(1).run(make_shard, tasks))


def test_remarks_are_counted_beside_the_items(tmp_path) -> None:
    plan, shards = made(tmp_path)
    ledger = ledgers(plan, shards, ledger_entries(plan, shards))["train"]
    assert (ledger.items, ledger.written, ledger.skipped) == (3, 2, {"SRC110": 1})
    assert ledger.remarks == {"SRC115": 1, "SRC116": 2, "SRC117": 7}


def test_remarks_on_an_item_that_is_skipped_after_all_are_not_counted(tmp_path) -> None:
    _, shards = made(tmp_path)
    assert all(remark.key == "remarked" for shard in shards for remark in shard.notes.remarks)


def test_a_journal_keeps_remarks(tmp_path) -> None:
    plan, shards = made(tmp_path)
    stage = Stage(LocalStorage(tmp_path))
    for planned, shard in zip(plan.shards, shards, strict=True):
        stage.finish(shard)
        assert stage.finished(planned) == shard
