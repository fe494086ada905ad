"""Packed items give the same plan as unpacked items, and take little memory."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys

import pytest
from memory_support import PRINT_PEAK, on_linux

from tfrecreg.core.build import plan as item_store
from tfrecreg.core.build.plan import ItemShare, Plan, make_plan
from tfrecreg.core.build.sources.interface import Item
from tfrecreg.core.values.shards import ShardPolicy


def items(count: int) -> list[Item]:
    """Names that are not UTF-8 among them, and states."""
    names = (f"{number:05d}\udcff" if number % 50 == 0 else str(number) for number in range(count))
    return [
        Item("train", name, 100 + number, bytes(number % 5)) for number, name in enumerate(names)
    ]


def planned(listed: list[Item]) -> Plan:
    return make_plan("d", listed, ShardPolicy(shards=7), {})


def test_a_plan_of_many_items_is_that_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = items(500)
    before = planned(listed)
    assert all(isinstance(shard.items, tuple) for shard in before.shards)
    monkeypatch.setattr(item_store, "_UNPACKED", 1000)
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


PLAN = f"""
from tfrecreg.core.build.plan import make_plan
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
