"""Orders whose batches hold records of similar length."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecreg
from tfrecreg.errors import UsageError
from tfrecreg.training.batches import numbers_of_batches
from tfrecreg.training.length_buckets import LengthBuckets
from tfrecreg.training.order import Order

SOURCE = "0123456789abcdef"
QUICK, ALL = 60, 1000
GOLDEN = [0, 9, 4, 3, 7, 8, 1, 6, 2, 5]


def buckets(lengths: list[float], size: int, count: Any = 4) -> LengthBuckets:
    return LengthBuckets(lengths, "bytes", count, size, "texts")


def order(given: LengthBuckets, *, seed: int | None = 7, epoch: int = 0, **more: Any) -> Order:
    return Order(len(given), SOURCE, seed=seed, epoch=epoch, buckets=given, **more)


@given(
    lengths=st.lists(st.integers(0, 50), max_size=200),
    size=st.integers(1, 30),
    count=st.integers(1, 9) | st.just([10, 20, 30]),
    epoch=st.integers(0, 9),
)
def test_every_record_comes_once(lengths: list[float], size: int, count: Any, epoch: int) -> None:
    found = list(order(buckets(lengths, size, count), epoch=epoch))
    assert sorted(found) == list(range(len(lengths)))


def test_the_order_never_changes() -> None:
    given = buckets([5, 1, 3, 9, 7, 2, 4, 8, 10, 6], 3, 3)
    assert given.ids.tolist() == [1, 0, 0, 2, 1, 0, 0, 2, 2, 1]
    assert list(order(given, seed=1, epoch=2)) == GOLDEN
    assert given.digest == "06bc21de2d433eeadc4833693c06690d"


def test_a_batch_has_records_of_similar_length() -> None:
    chance = random.Random(1)
    lengths = [chance.lognormvariate(5, 1) for _ in range(5000)]
    padded: dict[str, float] = {}
    plain = list(Order(5000, SOURCE, seed=1, epoch=0))
    sorted_ = list(order(buckets(lengths, 50, 20), seed=1))
    for name, numbers in (("plain", plain), ("buckets", sorted_)):
        batches = [
            [lengths[at] for at in numbers[first : first + 50]] for first in range(0, 5000, 50)
        ]
        padded[name] = sum(50 * max(batch) for batch in batches) / sum(lengths)
    assert padded["plain"] > 4
    assert padded["buckets"] < 1.8
    # Batches come in another order each epoch, and are of other records.
    again = list(order(buckets(lengths, 50, 20), seed=1, epoch=1))
    sets = [
        {frozenset(numbers[first : first + 50]) for first in range(0, 5000, 50)}
        for numbers in (sorted_, again)
    ]
    assert not sets[0] & sets[1]
    means = [
        np.mean([lengths[at] for at in sorted_[first : first + 50]]) for first in range(0, 5000, 50)
    ]
    assert abs(np.corrcoef(means, range(100))[0, 1]) < 0.3


def test_what_is_left_after_the_last_batch_is_chance() -> None:
    """A run that leaves it out would never see the longest records otherwise."""
    given = buckets(list(range(103)), 10)
    left = [set(list(order(given, epoch=epoch))[100:]) for epoch in range(50)]
    assert len(set().union(*left)) > 60


def test_given_limits_are_those_of_the_buckets() -> None:
    given = buckets([1, 16, 17, 40, 3, 33], 2, [16, 33])
    assert given.ids.tolist() == [0, 1, 1, 2, 0, 2]
    numbers = list(order(given))
    pairs = [{int(given.ids[at]) for at in numbers[first : first + 2]} for first in (0, 2, 4)]
    assert sorted(map(sorted, pairs)) == [[0], [1], [2]]


def consume(chance: random.Random) -> None:
    """One epoch by hosts that stop after a batch and resume with other numbers."""
    records, size = chance.randint(1, 150), chance.choice([1, 4, 12, 24])
    given = buckets([chance.randint(0, 99) for _ in range(records)], size, chance.randint(1, 8))
    seed, epoch = chance.randrange(1000), chance.randrange(5)
    whole = list(order(given, seed=seed, epoch=epoch))
    expected = [sorted(whole[at : at + size]) for at in range(0, records, size)]
    found: list[list[int]] = []
    fitting = [each for each in range(1, 9) if size % each == 0]
    hosts = chance.choice(fitting)
    shares = [order(given, seed=seed, epoch=epoch, host=at, hosts=hosts) for at in range(hosts)]
    while len(found) * size + size <= records:
        stop = chance.randint(1, 4)
        batches: list[list[int]] = []
        for share in shares:
            mine = numbers_of_batches(None, share, True, size)
            for at, numbers in zip(range(stop), mine, strict=False):
                batches += [[]] * (at == len(batches))
                batches[at] = batches[at] + list(map(int, numbers))
        found += map(sorted, batches)
        states = [share.state(len(batches) * size // hosts) for share in shares]
        given_states = json.loads(json.dumps(chance.choice([states, states[:1]])))
        hosts = chance.choice(fitting)
        shares = [
            Order.from_states(
                given_states, records=records, source=SOURCE, buckets=given, host=at, hosts=hosts
            )
            for at in range(hosts)
        ]
    rest = sorted(int(number) for share in shares for number in share)
    assert found + ([rest] if rest else []) == expected


@pytest.mark.medium
def test_batches_are_the_same_for_hosts_that_change() -> None:
    for seed in range(QUICK):
        consume(random.Random(seed))


@pytest.mark.slow
def test_batches_are_the_same_for_hosts_that_change_a_thousand_times() -> None:
    for seed in range(QUICK, ALL):
        consume(random.Random(seed))


# --- lengths of a source


@pytest.fixture
def texts(tmp_path: Path) -> Callable[..., tfrecreg.DataSource]:
    registry = tfrecreg.init(tmp_path / "texts", with_dvc=False)
    data = [{"tokens": np.arange(at * 37 % 90 + 1)} for at in range(90)]
    registry["texts"].build(data={"train": data})

    def opened(**more: Any) -> tfrecreg.DataSource:
        source = tfrecreg.data_source("texts", "train", registry=registry, **more)
        assert isinstance(source, tfrecreg.DataSource)
        return source

    return opened


def test_lengths_are_by_a_feature_an_expression_a_function_or_given(
    texts: Callable[..., tfrecreg.DataSource],
) -> None:
    source = texts()
    lengths = [len(element["tokens"]) for element in source]
    expected = list(source.order(seed=1, bucket_by=lengths, global_batch=9))
    for by in ("tokens", '"tokens.count"', lambda element: len(element["tokens"])):
        assert list(source.order(seed=1, bucket_by=by, global_batch=9)) == expected
    batches = source.batches(
        9, source.order(seed=1, bucket_by="tokens", global_batch=9, buckets=10)
    )
    for batch in batches:
        several = [len(each) for each in batch["tokens"]]
        assert max(several) - min(several) <= 9


def test_a_state_has_the_buckets(texts: Callable[..., tfrecreg.DataSource]) -> None:
    source = texts()
    whole = source.order(seed=1, bucket_by="tokens", global_batch=9)
    state = json.loads(json.dumps(whole.state(18)))
    assert state["format"] == 3
    assert whole.buckets is not None
    assert state["buckets"] == {
        "by": "tokens",
        "digest": whole.buckets.digest,
        "buckets": 16,
        "global_batch": 9,
    }
    rest = source.from_state(state)
    assert list(rest) == list(whole)[18:]
    assert list(pickle.loads(pickle.dumps(rest))) == list(rest)
    limits = source.order(seed=1, bucket_by="bytes", global_batch=9, buckets=[50, 100])
    assert list(source.from_state(limits.state(9))) == list(limits)[9:]
    lengths = [len(element["tokens"]) for element in source]
    given = source.order(seed=1, bucket_by=lengths, global_batch=9)
    assert list(source.from_state(given.state(9), bucket_by=lengths)) == list(given)[9:]
    with pytest.raises(UsageError, match="whose lengths were given as numbers"):
        source.from_state(given.state(9))
    with pytest.raises(UsageError, match="with lengths with the digest `"):
        source.from_state(given.state(9), bucket_by=[*lengths[1:], 1])
    with pytest.raises(UsageError, match="an order without `bucket_by`"):
        source.from_state(source.order(seed=1).state(3), bucket_by=lengths)
    with pytest.raises(UsageError, match=r"an order with `bucket_by` `tokens`, .* here is `None`"):
        Order.from_states([state], records=90, source=source.identity)


@pytest.mark.parametrize(
    "change",
    [
        {"by": 3},
        {"buckets": "x"},
        {"buckets": [1, None]},
        {"global_batch": None},
        {"buckets": True},
    ],
)
def test_a_state_with_other_buckets_is_refused(
    texts: Callable[..., tfrecreg.DataSource], change: dict[str, Any]
) -> None:
    source = texts()
    state = source.order(seed=1, bucket_by="tokens", global_batch=9).state(9)
    with pytest.raises(UsageError, match="not the state of an order: its `buckets` is"):
        source.from_state({**state, "buckets": {**state["buckets"], **change}})
    with pytest.raises(UsageError, match="not the state of an order: its `buckets` is 7"):
        source.from_state({**state, "buckets": 7})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bucket_by": "tokens"}, "`bucket_by` and `global_batch` belong together"),
        ({"global_batch": 9}, "`bucket_by` and `global_batch` belong together"),
        (
            {"buckets": [3]},
            "`bucket_by` and `global_batch` belong together, and `buckets` is about them",
        ),
        ({"bucket_by": "tokens", "global_batch": 9, "buckets": 1.5}, "`buckets` should be an int"),
        ({"bucket_by": [1], "global_batch": 9}, "there are 1 lengths for 90 records"),
        ({"bucket_by": [[1]], "global_batch": 9}, "lengths should be one number per record, found"),
        (
            {"bucket_by": ["a"] * 90, "global_batch": 9},
            "lengths should be one number per record, found `['a', ",
        ),
        (
            {"bucket_by": {"a": 1}, "global_batch": 9},
            "lengths should be one number per record, found `{'a': 1}`",
        ),
        (
            {"bucket_by": lambda _: "a", "global_batch": 9},
            "the length of element 0 is an object of type `str`, expected a number",
        ),
        (
            {"bucket_by": lambda _: None, "global_batch": 9},
            "the length of element 0 is None, expected a number",
        ),
        (
            {"weights": lambda _: 1.0},
            "weights should be one number per record, found `<function ",
        ),
        ({"weights": [[1]]}, "weights should be one number per record, found shape (1, 1)"),
        ({"bucket_by": "NULL", "global_batch": 9}, "the length of record 0 of `texts` is NULL"),
        (
            {"bucket_by": "tokens", "global_batch": 0},
            "`global_batch` should be at least 1, found 0",
        ),
        (
            {"bucket_by": "tokens", "global_batch": 9, "buckets": 0},
            "`buckets` should be at least 1, found 0",
        ),
        (
            {"bucket_by": "tokens", "global_batch": 9, "buckets": [3, 2]},
            "`buckets` should be lengths in ascending order",
        ),
        (
            {"bucket_by": "tokens", "global_batch": 9, "weights": [1] * 90},
            "records are drawn by weights or sorted by length, not both",
        ),
        ({"bucket_by": "tokens", "global_batch": 9, "seed": None}, "`bucket_by` needs a seed"),
    ],
)
def test_lengths_that_cannot_be(
    texts: Callable[..., tfrecreg.DataSource], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        texts().order(**{"seed": 1, **given})
    assert caught.value.message.startswith(message)
    assert (caught.value.exit_code, bool(caught.value.hint)) == (2, True)


def test_a_function_needs_all_records(texts: Callable[..., tfrecreg.DataSource]) -> None:
    source = texts(damaged="skip", max_damaged=3)
    with pytest.raises(UsageError, match="lengths of records that may be left out are not known"):
        source.order(seed=1, bucket_by=len, global_batch=9)


def test_a_copy_of_a_source_has_no_catalog(texts: Callable[..., tfrecreg.DataSource]) -> None:
    copy = pickle.loads(pickle.dumps(texts()))
    with pytest.raises(UsageError, match="`bucket_by='tokens'` needs the catalog"):
        copy.order(seed=1, bucket_by="tokens", global_batch=9)
