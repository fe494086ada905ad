"""Orders that shuffle by blocks."""

from __future__ import annotations

import json
import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecreg
from tfrecreg.builtin.training.block_order import Blocks
from tfrecreg.builtin.training.order import Order
from tfrecreg.core.values.errors import UsageError

SOURCE = "0123456789abcdef"
QUICK, ALL = 60, 1000
GOLDEN = [14, 20, 16, 0, 13, 7, 19, 5, 18, 22, 17, 4, 15, 6, 12, 21, 9, 2, 10, 1, 11, 3, 8]


def order(records: int, blocks: Blocks, *, seed: int | None = 7, **more: Any) -> Order:
    return Order(records, SOURCE, seed=seed, epoch=more.pop("epoch", 0), blocks=blocks, **more)


@pytest.mark.medium
@given(
    records=st.integers(0, 300),
    size=st.integers(1, 50),
    window=st.integers(1, 5),
    lanes=st.integers(1, 9),
    epoch=st.integers(0, 9),
)
def test_every_record_comes_once(
    records: int, size: int, window: int, lanes: int, epoch: int
) -> None:
    found = list(order(records, Blocks(size, window, lanes), epoch=epoch))
    assert sorted(found) == list(range(records))


def test_the_order_never_changes() -> None:
    assert list(order(23, Blocks(4, 2, 2), seed=1, epoch=2)) == GOLDEN


def test_epochs_and_seeds_differ() -> None:
    blocks = Blocks(10, 2, 2)
    found = {
        tuple(order(200, blocks, seed=seed, epoch=epoch)) for seed in range(3) for epoch in range(3)
    }
    assert len(found) == 9


def test_hosts_that_divide_the_lanes_share_no_block() -> None:
    size, records = 50, 8000
    for hosts in (2, 4):
        shares = [
            {int(at) // size for at in order(records, Blocks(size, 4, 4), host=host, hosts=hosts)}
            for host in range(hosts)
        ]
        # Lanes end inside blocks: up to one block for each end.
        assert sum(map(len, shares)) <= records // size + 3


def test_a_block_is_used_up_within_a_window_of_its_lane() -> None:
    size, window, lanes, records = 25, 4, 4, 10_000
    numbers = np.array(list(order(records, Blocks(size, window, lanes))))
    places = np.empty(records, np.int64)
    places[numbers] = np.arange(records)
    spans = np.ptp(places.reshape(-1, size), axis=1)
    # A block may lie in two windows that follow each other, or at the end of one lane and the
    # beginning of the next.
    assert np.sort(spans)[: -(lanes - 1)].max() <= 2 * size * window * lanes


def test_how_random_it_is() -> None:
    """What docs/training.md states: neighbours of an epoch, and batches of sorted data."""
    size, window, lanes, records = 100, 8, 4, 64_000
    numbers = np.array(list(order(records, Blocks(size, window, lanes))))
    # Two records of a lane that follow each other are of one block in 1 of `window` cases; two
    # places that follow each other are of different lanes.
    block = numbers // size
    assert np.mean(block[1:] == block[:-1]) < 0.01
    same = np.mean(block[lanes:] == block[:-lanes])
    assert abs(same - 1 / window) < 0.02
    # Blocks come in any order: records move as far as in a shuffle of all, a third of the epoch.
    moved = np.mean(np.abs(numbers - np.arange(records))) / records
    assert abs(moved - 1 / 3) < 0.03
    # Of sorted classes a batch has those of as many blocks as all lanes have in a window.
    batches = block.reshape(-1, 256)
    kinds = [len(np.unique(batch)) for batch in batches]
    assert window * lanes * 0.9 < np.mean(kinds) < window * lanes * 2


def consume(chance: random.Random) -> None:
    """One epoch by hosts that stop anywhere and resume with other numbers."""
    records = chance.randint(1, 400)
    blocks = Blocks(chance.randint(1, 60), chance.randint(1, 5), chance.randint(1, 8))
    seed, epoch = chance.randrange(1000), chance.randrange(5)
    whole = sorted(order(records, blocks, seed=seed, epoch=epoch))
    found: list[int] = []
    hosts = chance.randint(1, min(8, records))
    shares = [
        order(records, blocks, seed=seed, epoch=epoch, host=at, hosts=hosts) for at in range(hosts)
    ]
    while True:
        in_step = chance.random() < 0.5
        step = chance.randint(0, 80)
        done = [min(len(each), step if in_step else chance.randint(0, 80)) for each in shares]
        for share, taken in zip(shares, done, strict=True):
            found += share[:taken].tolist()
        states = [share.state(taken) for share, taken in zip(shares, done, strict=True)]
        assert states[0]["block"] == asdict(blocks)
        chance.shuffle(states)
        hosts = chance.randint(1, 8)
        shares = [
            Order(records, SOURCE, seed=0, epoch=0, host=at, hosts=hosts).resumed(
                json.loads(json.dumps(states))
            )
            for at in range(hosts)
        ]
        if not shares[0].left:
            break
    assert sorted(found) == whole == list(range(records))


@pytest.mark.parametrize("seed", range(QUICK // 10))
def test_stopped_anywhere_and_resumed_with_other_hosts(seed: int) -> None:
    for number in range(10):
        consume(random.Random(seed * 10 + number))


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(ALL // 50))
def test_stopped_anywhere_and_resumed_with_other_hosts_often(seed: int) -> None:
    for number in range(50):
        consume(random.Random(10_000 + seed * 50 + number))


def test_a_source_shuffles_by_blocks_of_a_size(numbers: Path) -> None:
    source = tfrecreg.data_source(str(numbers), "train", with_digest=True)
    shuffled = source.order(seed=3, block="1kB")
    assert shuffled.blocks is not None
    assert 5 < shuffled.blocks.records < 30
    assert sorted(shuffled) == list(range(100))
    state = json.loads(json.dumps(shuffled.state(40)))
    assert state["format"] == 4
    rest = source.from_state(state, host=1, hosts=2)
    assert rest.blocks == shuffled.blocks
    certificate = source.certificate()
    taken = [*shuffled[:40].tolist(), *source.from_state(state)]
    for element in source.__getitems__(taken):
        certificate.add(element["record/digest"])
    assert source.report(certificate).is_complete


@pytest.mark.parametrize("arguments", [{"block_window": 2}, {"block_lanes": 2}])
def test_windows_and_lanes_need_blocks(numbers: Path, arguments: dict[str, Any]) -> None:
    source = tfrecreg.data_source(numbers, "train")
    with pytest.raises(UsageError, match="`block_window` and `block_lanes` need `block`"):
        source.order(seed=3, **arguments)


def test_states_of_other_blocks_do_not_go_together() -> None:
    states = [
        order(100, Blocks(size), host=host, hosts=2).state(5) for host, size in enumerate((10, 20))
    ]
    with pytest.raises(UsageError, match="another order: its `block` is"):
        Order(100, SOURCE, seed=0, epoch=0).resumed(states)
