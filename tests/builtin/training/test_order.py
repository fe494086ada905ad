"""Every record goes to one host, once an epoch, whatever is stopped and resumed in between."""

from __future__ import annotations

import json
import pickle
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecreg.builtin.training.order import Order
from tfrecreg.core.values.errors import UsageError

SOURCE = "0123456789abcdef"
SEEDS = st.none() | st.integers(0, 1000)


def order(records: int, *, seed: int | None = 7, epoch: int = 0, **more: Any) -> Order:
    return Order(records, SOURCE, seed=seed, epoch=epoch, **more)


def resumed(states: list[dict[str, Any]], records: int, **more: Any) -> Order:
    """As another process would, from what was written to a file."""
    return order(records, **more).resumed(json.loads(json.dumps(states)))


@given(records=st.integers(0, 400), hosts=st.integers(1, 9), seed=SEEDS, epoch=st.integers(0, 9))
def test_hosts_share_all_records(records: int, hosts: int, seed: int | None, epoch: int) -> None:
    shares = [
        order(records, seed=seed, epoch=epoch, host=host, hosts=hosts) for host in range(hosts)
    ]
    seen = [number for share in shares for number in share]
    assert sorted(seen) == list(range(records))
    lengths = [len(share) for share in shares]
    assert max(lengths) - min(lengths) <= 1


@given(records=st.integers(0, 400), hosts=st.integers(1, 9), seed=SEEDS)
def test_without_the_remainder_all_hosts_get_the_same_number(
    records: int, hosts: int, seed: int | None
) -> None:
    shares = [
        list(order(records, seed=seed, host=host, hosts=hosts, drop_remainder=True))
        for host in range(hosts)
    ]
    assert {len(share) for share in shares} == {records // hosts}
    seen = [number for share in shares for number in share]
    assert len(set(seen)) == len(seen)


def test_without_a_seed_records_come_in_their_order() -> None:
    assert list(order(10, seed=None)) == list(range(10))
    assert list(order(10, seed=None, host=1, hosts=3)) == [1, 4, 7]


def test_epochs_differ_and_hosts_do_not_matter_to_the_whole() -> None:
    first, second = order(100, epoch=0), order(100, epoch=1)
    assert list(first) != list(second)
    dealt = [list(order(100, host=host, hosts=4)) for host in range(4)]
    assert [number for row in zip(*dealt, strict=True) for number in row] == list(first)


def test_parts_of_an_order() -> None:
    share = order(9000, host=1, hosts=2)
    every = list(share)
    assert len(share) == len(every) == 4500
    assert all(type(number) is int for number in every[:5])
    assert [share[0], share[-1], share[4499]] == [every[0], every[-1], every[-1]]
    assert share[10:20].tolist() == every[10:20]
    assert share[::-1000].tolist() == every[::-1000]
    assert share[4490:9999].tolist() == every[4490:]
    with pytest.raises(IndexError):
        share[4500]
    copy = pickle.loads(pickle.dumps(share))
    assert list(copy) == every
    assert repr(share) == "<Order of 4500 of 9000 records, seed 7, epoch 0, host 1 of 2>"


# --- resuming


@given(data=st.data(), records=st.integers(1, 300), seed=SEEDS)
def test_hosts_in_step_resume_with_any_number_of_hosts(
    data: st.DataObject, records: int, seed: int | None
) -> None:
    """One state stands for all hosts, and stages follow each other."""
    hosts = data.draw(st.integers(1, 6))
    shares = [order(records, seed=seed, host=host, hosts=hosts) for host in range(hosts)]
    seen: list[int] = []
    for _ in range(data.draw(st.integers(1, 4))):
        done = data.draw(st.integers(0, len(shares[0])))
        for share in shares:
            seen += share[:done].tolist()
        saver = data.draw(st.sampled_from([each for each in shares if len(each) >= done]))
        hosts = data.draw(st.integers(1, 6))
        shares = [
            resumed([saver.state(done)], records, host=host, hosts=hosts) for host in range(hosts)
        ]
        assert len(json.dumps(shares[0].state(0))) < 300
    for share in shares:
        seen += list(share)
    assert sorted(seen) == list(range(records))


@pytest.mark.medium
@given(data=st.data(), records=st.integers(1, 300), seed=SEEDS)
def test_hosts_that_are_apart_resume_from_all_their_states(
    data: st.DataObject, records: int, seed: int | None
) -> None:
    hosts = data.draw(st.integers(1, 6))
    shares = [order(records, seed=seed, host=host, hosts=hosts) for host in range(hosts)]
    seen: list[int] = []
    for _ in range(data.draw(st.integers(1, 4))):
        states = []
        for share in shares:
            done = data.draw(st.integers(0, len(share)))
            seen += share[:done].tolist()
            states.append(share.state(done))
        states = data.draw(st.permutations(states))
        hosts = data.draw(st.integers(1, 6))
        shares = [resumed(list(states), records, host=host, hosts=hosts) for host in range(hosts)]
    for share in shares:
        seen += list(share)
    assert sorted(seen) == list(range(records))


@given(records=st.integers(1, 300), hosts=st.integers(1, 6), now=st.integers(1, 6), data=st.data())
def test_the_remainder_is_dropped_at_the_end_only(
    records: int, hosts: int, now: int, data: st.DataObject
) -> None:
    shares = [order(records, host=host, hosts=hosts, drop_remainder=True) for host in range(hosts)]
    done = data.draw(st.integers(0, len(shares[0])))
    seen = [number for share in shares for number in share[:done]]
    rest = [resumed([shares[0].state(done)], records, host=host, hosts=now) for host in range(now)]
    assert len({len(share) for share in rest}) == 1
    seen += [number for share in rest for number in share]
    assert len(set(seen)) == len(seen)
    assert records - len(seen) < now


def test_the_order_goes_on_as_it_would_have() -> None:
    whole = order(1000)
    assert list(resumed([whole.state(137)], 1000)) == list(whole)[137:]


def test_an_iteration_reads_every_number_in_order() -> None:
    every = order(10_000)
    assert list(every) == every[:].tolist()
    assert list(resumed([every.state()], 10_000)) == []


def test_the_state_never_changes_its_form() -> None:
    state = order(100, seed=3, epoch=2, host=1, hosts=4).state(5)
    assert state == {
        "format": 1,
        "source": SOURCE,
        "records": 100,
        "seed": 3,
        "epoch": 2,
        "drop_remainder": False,
        "before": [],
        "host": 1,
        "hosts": 4,
        "done": 5,
    }
    again = resumed([state], 100, host=0, hosts=2)
    assert again.state(1)["before"] == [[20]]
    apart = [order(100, host=host, hosts=2).state(done) for host, done in ((0, 7), (1, 2))]
    assert resumed(apart, 100).state(0)["before"] == [[7, 2]]


def test_ten_records_and_a_thousand_million_take_the_same_memory() -> None:
    """Two hosts that are apart among them."""

    def peak(records: int) -> int:
        tracemalloc.start()
        states = [order(records, host=host, hosts=2).state(host * 3) for host in range(2)]
        rest = resumed(states, records, host=1, hosts=3)
        taken = [next(walk) for walk in [iter(rest)] for _ in range(2)]
        assert len(set(taken)) == 2
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak(10)
    assert peak(10**9) < 1 << 20


# --- what is refused


def test_states_of_other_records_are_refused() -> None:
    state = order(10).state(3)
    with pytest.raises(UsageError, match="its `records` is `10`, but here it is `11`"):
        order(11).resumed([state])
    with pytest.raises(UsageError, match="here it is `fedc`"):
        Order(10, "fedc", seed=1, epoch=0).resumed([state])


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"format": 5}, "has format 5, but this tfrecreg reads only 1, 2 and 4"),
        ({"format": None}, "it is not a JSON object"),
        ({"seed": "x"}, r"at `\$\.seed`"),
        ({"drop_remainder": 0}, r"at `\$\.drop_remainder`"),
        ({"epoch": True}, r"at `\$\.epoch`"),
        ({"done": -1}, r">= 0 - at `\$\.done`"),
        ({"before": [[-1]]}, r">= 0 - at `\$\.before"),
        ({"before": [3]}, r"got `int` - at `\$\.before"),
        ({"before": [[]]}, r">= 1 - at `\$\.before"),
        ({"before": [[7], [4]]}, "it counts more records than there are"),
        ({"hosts": 0}, "it belongs to host 0 of 0"),
        ({"hosts": 1 << 40}, r"<= 1048576 - at `\$\.hosts`"),
        ({"block": {"records": 0}}, "`block` should be from 1 to"),
    ],
)
def test_a_state_that_is_none_is_refused(change: dict[str, Any], fault: str) -> None:
    with pytest.raises(UsageError, match=fault):
        resumed([{**order(10).state(3), **change}], 10)


def test_states_that_do_not_belong_together_are_refused() -> None:
    first = order(10, host=0, hosts=3).state(1)
    with pytest.raises(UsageError, match="its `seed` is `8`, but here it is `7`"):
        resumed([first, order(10, seed=8, epoch=1, host=1, hosts=3).state(1)], 10)
    second = order(10, host=1, hosts=3).state(1)
    for states in ([first, second], [first, second, second]):
        with pytest.raises(UsageError, match="expected one state from each of 3 hosts"):
            resumed(states, 10)


# --- the numbers of a rest with gaps
