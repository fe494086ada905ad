"""The plan: a global order that depends on split and key alone, dealt to balanced shards."""

from __future__ import annotations

from typing import Any

import pytest

from tfrecreg.core.build.plan import make_plan, order_key
from tfrecreg.core.build.sources.interface import Item, Remark, Skipped
from tfrecreg.core.values.errors import PluginError
from tfrecreg.core.values.shards import ShardPolicy


def items(count: int, split: str = "train") -> list[Item]:
    return [Item(split, f"{number:05d}", 100) for number in range(count)]


def keys(plan) -> list[list[str]]:
    return [[item.key for item in shard.items] for shard in plan.shards]


def test_order_is_pinned_by_a_golden_vector() -> None:
    assert order_key("train", "00000").hex() == "a997295597c567e9d300463efc35e9b6"
    assert order_key("train", "caf\u00e9").hex() == "f3132bdab5a3b0830756e735c4a804f5"


def test_every_item_is_dealt_once_and_shards_are_balanced() -> None:
    plan = make_plan("d", items(103), ShardPolicy(shards=10), {})
    sizes = [len(shard.items) for shard in plan.shards]
    assert sum(sizes) == plan.items == 103
    assert max(sizes) - min(sizes) <= 1
    assert len({key for shard in keys(plan) for key in shard}) == 103
    assert plan.shards[3].path == "d-train.tfrecord-00003-of-00010"
    assert plan.shards[3].index == "index/d-train.tfrecord-00003-of-00010.index"


def test_the_digest_tells_plans_apart() -> None:
    ten = items(10)

    def digest(name: str = "d", listed: Any = ten, shards: int = 2, raw: str = "x") -> str:
        return make_plan(name, listed, ShardPolicy(shards=shards), {"raw": raw}).digest

    remark = Remark("train", "notes.txt", "SRC015", "one stray name")  # in the ledger
    digests = [
        digest(),
        digest(listed=items(11)),
        digest(shards=1),
        digest(raw="y"),
        digest("e"),
        digest(listed=items(10, "test")),
        digest(listed=[each._replace(state=b"s") for each in ten]),
        digest(listed=[*ten, Skipped("train", "b", "SRC001", "")]),
        digest(listed=[*ten, remark]),
        digest(listed=[*ten, remark._replace(times=2)]),
    ]
    assert digest() == digests[0]
    assert len({*digests}) == len(digests)


def test_skipped_items_are_kept_in_order() -> None:
    skipped = [Skipped("train", "b", "SRC001", ""), Skipped("test", "a", "SRC001", "")]
    plan = make_plan("d", [*items(2), *skipped], ShardPolicy(), {})
    assert [each.key for each in plan.skipped] == ["a", "b"]


def test_a_key_that_stands_twice_is_refused() -> None:
    with pytest.raises(PluginError, match="lists `00001` twice in the split `train`"):
        make_plan("d", [*items(3), *items(2)], ShardPolicy(), {})
