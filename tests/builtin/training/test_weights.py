"""Orders that draw with replacement, by weights."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecreg
from tfrecreg.builtin.training.block_order import Draws, Weights
from tfrecreg.builtin.training.data_source import DataSource
from tfrecreg.builtin.training.order import Order
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.values.errors import UsageError

from .conftest import Write

SOURCE = "0123456789abcdef" * 2
GOLDEN = [2, 2, 2, 4, 1, 4, 1, 4, 4, 4, 4, 1, 1, 1, 4, 4, 2, 4, 4, 2]
DIGEST = "dbaaf96d762876e20960afee9dbcaa5e"


def weights(*values: float) -> Weights:
    return Weights(values, "numbers", "mnist")


def order(given: Weights, **more: int) -> Order:
    return Order(len(given), SOURCE, seed=1, epoch=more.pop("epoch", 0), weights=given, **more)


def drawn(given: Weights, count: int, seed: int = 7) -> list[int]:
    found: list[int] = Draws(given, seed, 0)(np.arange(count)).tolist()
    return found


@pytest.mark.parametrize("values", [[1, 2, 3, 4], [0, 1, 0, 1000], [0.1] * 100, [1e-9, 1]])
def test_frequencies_are_within_chance(values: list[float]) -> None:
    count = 100_000
    found = Counter(drawn(weights(*values), count))
    total = sum(values)
    chi, freedom = 0.0, -1
    for record, weight in enumerate(values):
        expected = count * weight / total
        if weight == 0:
            assert found[record] == 0
        elif expected >= 5:
            chi += (found[record] - expected) ** 2 / expected
            freedom += 1
    # Mean and deviation of the chi-squared distribution; the seed is fixed.
    assert chi <= freedom + 4 * (2 * max(freedom, 1)) ** 0.5


def test_draws_never_change() -> None:
    given = weights(1, 2, 3, 0, 4)
    assert given.ends.tolist() == [1 << 30, 3 << 30, 6 << 30, 6 << 30, 10 << 30]
    assert drawn(given, 20) == GOLDEN
    assert given.digest == DIGEST


def test_the_smallest_weight_above_zero_can_be_drawn() -> None:
    assert weights(1e-300, 1).ends[0] == 1


def test_the_last_record_is_the_last_that_can_be_drawn() -> None:
    given = weights(1, 1, 0)
    assert set(drawn(given, 1000)) == {0, 1}


def test_epochs_and_seeds_draw_others() -> None:
    given = weights(*[1] * 50)
    assert len({tuple(order(given, epoch=epoch)) for epoch in range(5)}) == 5
    assert drawn(given, 50, seed=1) != drawn(given, 50, seed=2)


@pytest.mark.parametrize("hosts", [1, 5])
def test_hosts_stop_and_resume_with_the_same_draws(hosts: int) -> None:
    given = weights(*range(1, 101))
    whole = list(order(given))
    shares = [order(given, host=host, hosts=hosts) for host in range(hosts)]
    states = [share.state(3 + host) for host, share in enumerate(shares)]
    states = json.loads(json.dumps(states))
    rest = Order(100, SOURCE, seed=0, epoch=0, weights=given).resumed(states)
    done = [number for host, share in enumerate(shares) for number in share[: 3 + host].tolist()]
    assert sorted([*done, *rest]) == sorted(whole)


def test_a_state_names_the_weights() -> None:
    given = weights(1, 2)
    assert order(given).state(1) == {
        "format": 2,
        "source": SOURCE,
        "weights": {"by": "numbers", "digest": given.digest},
        "records": 2,
        "seed": 1,
        "epoch": 0,
        "drop_remainder": False,
        "before": [],
        "host": 0,
        "hosts": 1,
        "done": 1,
    }


def test_a_state_of_other_weights_is_refused() -> None:
    state = order(weights(1, 2)).state(1)
    plain = Order(2, SOURCE, seed=1, epoch=0).state(1)
    for states, here in [
        ([state], None),
        ([plain], weights(1, 2)),
        ([state], weights(1, 3)),
        ([{**state, "weights": 3}], weights(1, 2)),
    ]:
        with pytest.raises(UsageError, match="another order: its `weights` is"):
            Order(2, SOURCE, seed=0, epoch=0, weights=here).resumed(states)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1, -2], "the weight of record 1 of `mnist` is -2, according to `numbers`"),
        ([1, float("nan")], "the weight of record 1 of `mnist` is NULL, according to `numbers`"),
        (
            [float("inf"), float("nan")],
            "the weight of record 0 of `mnist` is inf, according to `numbers`",
        ),
        ([0, 0], "no record of `mnist` has a weight above zero, according to `numbers`"),
        ([], "no record of `mnist` has a weight above zero, according to `numbers`"),
        ([[1, 2]], r"one number per record, found"),
        (["x", "x"], "weights should be one number per record$"),
        ([[1], [1, 2]], "weights should be one number per record$"),
    ],
)
def test_weights_that_are_none(values: list[Any], text: str) -> None:
    with pytest.raises(UsageError, match=text) as caught:
        Weights(values, "numbers", "mnist")
    assert caught.value.exit_code == 2


# --- by the catalog


def pet(label: str, number: int) -> bytes:
    return encode(
        {
            "image/class/text": bytes_feature([label.encode()]),
            "number": int64_feature(number),
        }
    )


@pytest.fixture
def pets(write: Write) -> Path:
    """90 cats, and then 10 dogs in another shard; all test records are dogs."""
    pytest.importorskip("duckdb", reason="the extra `query` is not installed")
    cats = [pet("cat", number) for number in range(90)]
    dogs = [pet("dog", number) for number in range(90, 100)]
    write("pets/train-00000-of-00002.tfrecord", cats)
    write("pets/train-00001-of-00002.tfrecord", dogs)
    more = [pet("dog", number) for number in range(100, 500)]
    return write("pets/test-00000-of-00001.tfrecord", more).parent


def share_of_dogs(source: DataSource, found: Order) -> float:
    numbers = [int(each["number"][0]) for each in source.__getitems__(found)]
    return sum(number >= 90 for number in numbers) / len(numbers)


@pytest.mark.medium
def test_classes_are_drawn_as_often_as_each_other(pets: Path) -> None:
    source = tfrecreg.data_source(pets, "train")
    epochs = [source.order(seed=1, epoch=epoch, weights="class") for epoch in range(40)]
    assert {len(each) for each in epochs} == {100}
    shares = [share_of_dogs(source, each) for each in epochs]
    assert abs(sum(shares) / len(shares) - 0.5) < 0.03
    assert min(shares) != max(shares)


def test_an_expression_is_over_the_whole_target_in_the_order_of_the_source(pets: Path) -> None:
    by = "CASE WHEN number >= 98 THEN 1 ELSE 0 END"
    source = tfrecreg.data_source(pets, "train")
    assert set(source.order(seed=1, weights=by)) == {98, 99}
    assert set(source[::-1].order(seed=1, weights=by)) == {0, 1}
    both = tfrecreg.data_source(pets, "test[:5]+train")
    assert set(both.order(seed=1, weights="number = 3")) == {8}
    some = tfrecreg.data_source(pets, "train", where="number % 2 = 1")
    assert set(some.order(seed=1, weights="number = 3")) == {1}


def test_a_run_with_weights_resumes_from_its_state_alone(pets: Path) -> None:
    source = tfrecreg.data_source(pets, "train")
    shares = [source.order(seed=1, host=host, hosts=2, weights="class") for host in range(2)]
    state = json.loads(json.dumps(shares[0].state(20)))
    again = tfrecreg.data_source(pets, "train").from_state(state)
    done = [number for share in shares for number in share[:20].tolist()]
    whole = source.order(seed=1, weights="class")
    assert sorted([*done, *again]) == sorted(whole)
    assert list(pickle.loads(pickle.dumps(again))) == list(again)


def test_numbers_are_given_again(pets: Path) -> None:
    source = tfrecreg.data_source(pets, "train")
    given = np.arange(100)
    state = source.order(seed=1, weights=given).state(10)
    assert len(source.from_state(state, weights=given)) == 90
    with pytest.raises(UsageError, match="weights were given as numbers"):
        source.from_state(state)


def test_records_without_a_class(numbers: Path) -> None:
    pytest.importorskip("duckdb", reason="the extra `query` is not installed")
    source = tfrecreg.data_source(numbers, "train")
    with pytest.raises(UsageError, match='has a class, but `weights="class"` needs classes'):
        source.order(seed=1, weights="class")
    assert len(source.order(seed=1, weights="number")) == 100


def test_a_copy_in_another_process_does_not_ask(pets: Path) -> None:
    copy = pickle.loads(pickle.dumps(tfrecreg.data_source(pets, "train")))
    with pytest.raises(UsageError, match="but a copied source has none"):
        copy.order(seed=1, weights="class")
    assert len(copy.order(seed=1, weights=np.ones(100))) == 100
