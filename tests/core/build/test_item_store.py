"""Items on disk: the same plan, the same bytes, and memory that does not hold them."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys

import numpy as np
import pytest
from memory_support import PRINT_PEAK, on_linux

from tfrecreg.core.build.planning import plan as item_store
from tfrecreg.core.build.planning.plan import ItemShare, ItemStore, Plan, make_plan, order_key
from tfrecreg.core.build.sources.interface import Item
from tfrecreg.core.values.errors import PluginError
from tfrecreg.core.values.shards import ShardPolicy


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_store, "_HELD", 1000)
    monkeypatch.setattr(item_store, "_AT_ONCE", 7)


def items(count: int) -> list[Item]:
    """Names that are not UTF-8 among them, and states."""
    names = (f"{number:05d}\udcff" if number % 50 == 0 else str(number) for number in range(count))
    return [
        Item("train", name, 100 + number, bytes(number % 5)) for number, name in enumerate(names)
    ]


def planned(listed: list[Item]) -> Plan:
    return make_plan("d", listed, ShardPolicy(shards=7), {})


def test_a_plan_on_disk_is_that_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = items(500)
    before = planned(listed)
    assert all(isinstance(shard.items, tuple) for shard in before.shards)
    monkeypatch.setattr(item_store, "_HELD", 1000)
    monkeypatch.setattr(item_store, "_AT_ONCE", 7)
    random.Random(1).shuffle(listed)
    after = planned(listed)
    assert all(isinstance(shard.items, ItemShare) for shard in after.shards)
    assert before.digest == after.digest
    for one, other in zip(before.shards, after.shards, strict=True):
        assert one.items == tuple(other.items)
        assert one.items[3] == other.items[3]
        assert one.items[-1] == other.items[-1]
        assert one.items[5:30:3] == other.items[5:30:3]
        assert list(one.segments()) == list(other.segments())
        assert one == pickle.loads(pickle.dumps(other))
        with pytest.raises(IndexError):
            other.items[len(one.items)]


@pytest.mark.usefixtures("on_disk")
def test_a_key_that_stands_twice_is_refused() -> None:
    with pytest.raises(PluginError, match="lists `321` twice in the split `train`"):
        planned([*items(500), Item("train", "321", 1)])


@pytest.mark.parametrize("held", [1, 1 << 20])
def test_positions_are_found_by_key(monkeypatch: pytest.MonkeyPatch, held: int) -> None:
    monkeypatch.setattr(item_store, "_HELD", held)
    store = ItemStore("train")
    for item in items(100):
        store.add(item)
    assert store.sort() is None
    at = store.find(["7", "none", "00050\udcff", "99"])
    assert at[1] == -1
    assert [item.key for item in store.pick(at[[0, 2, 3]])] == ["7", "00050\udcff", "99"]
    assert store.sizes(at[[0, 2, 3]]).tolist() == [107, 150, 199]
    assert store.find([]).tolist() == []
    ordered = [order_key("train", item.key) for item in store.pick(np.arange(100))]
    assert ordered == sorted(ordered)


PLAN = f"""
from tfrecreg.core.build.planning.plan import make_plan
from tfrecreg.core.values.shards import ShardPolicy
from tfrecreg.core.build.sources.interface import Item
listed = (Item("train", f"class/image_{{number:09d}}.jpg", 100_000) for number in range(3_000_000))
plan = make_plan("big", listed, ShardPolicy(), {{}})
print(plan.items, len(plan.shards))
{PRINT_PEAK}"""


@on_linux
@pytest.mark.slow
def test_three_million_items_are_planned_in_400_mb() -> None:
    done = subprocess.run([sys.executable, "-c", PLAN], capture_output=True, text=True, check=True)
    counted, peak = done.stdout.splitlines()
    assert counted == "3000000 1024"
    assert int(peak) * 1024 < 400e6
