"""Orders of rows: short records packed, each of them once, for any number of hosts."""

from __future__ import annotations

import json
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecreg
from tfrecreg.errors import RefusedError, UsageError
from tfrecreg.training.order import Order
from tfrecreg.training.packing import PackedOrder, Packs, first_fit

SOURCE = "0123456789abcdef"
QUICK, ALL = 60, 1000
GOLDEN = [[1, 0, 9], [3], [6], [7, 2], [8], [4, 5]]
LENGTHS = [1 + at * 7 % 20 for at in range(90)]


def packs(lengths: list[int], to: int = 20, window: int = 16) -> Packs:
    return Packs(lengths, "tokens", to, window, "texts")


def order(lengths: Packs, *, seed: int | None = 7, epoch: int = 0, **more: Any) -> PackedOrder:
    return PackedOrder(Order(len(lengths), SOURCE, seed=seed, epoch=epoch), lengths, **more)


def flat(rows: Any) -> list[int]:
    return [record for row in rows for record in row.tolist()]


@given(st.lists(st.integers(0, 9), max_size=60))
def test_each_length_goes_into_the_first_row_with_room(lengths: list[int]) -> None:
    rows: list[list[int]] = []
    for place, length in enumerate(lengths):
        for row in rows:
            if sum(lengths[each] for each in row) + length <= 9:
                row.append(place)
                break
        else:
            rows.append([place])
    assert first_fit(lengths, 9) == rows


@pytest.mark.medium
@given(
    lengths=st.lists(st.integers(0, 20), max_size=150),
    window=st.integers(1, 200),
    epoch=st.integers(0, 9),
)
def test_every_record_comes_once(lengths: list[int], window: int, epoch: int) -> None:
    given = packs(lengths, window=window)
    rows = list(order(given, epoch=epoch))
    assert sorted(flat(rows)) == list(range(len(lengths)))
    assert all(len(row) and sum(lengths[at] for at in row) <= 20 for row in rows)


def test_the_rows_never_change() -> None:
    given = packs([5, 1, 3, 9, 4, 2, 8, 7, 10, 1], to=10, window=4)
    assert [row.tolist() for row in order(given, seed=1, epoch=2)] == GOLDEN
    assert given.digest == "50dd0bef4dae905ce1bb17d3a263e0b3"


def test_rows_are_nearly_full() -> None:
    chance = random.Random(1)
    lengths = [min(2048, int(chance.lognormvariate(5.5, 1))) for _ in range(5000)]
    found = order(packs(lengths, to=2048, window=1024))
    assert sum(lengths) / (2048 * found.rows) > 0.95
    assert flat(found) != flat(order(packs(lengths, to=2048, window=1024), epoch=1))


def rest_of(states: list[dict[str, Any]], given: Packs, **more: Any) -> PackedOrder:
    states = json.loads(json.dumps(states))
    whole = Order(len(given), SOURCE, seed=states[0]["seed"], epoch=states[0]["epoch"])
    return PackedOrder.from_states(states, whole, given, **more)


def one_run(seed: int) -> None:
    """Stopped anywhere, resumed with other hosts, twice: each record once."""
    chance = random.Random(seed)
    most = chance.randint(1, 40)
    lengths = [chance.randint(0, most) for _ in range(chance.randint(0, 200))]
    given = packs(lengths, to=most + chance.randint(0, 60), window=chance.randint(1, 64))
    hosts = chance.randint(1, 8)
    shares = [
        order(given, seed=seed, epoch=seed % 5, host=host, hosts=hosts) for host in range(hosts)
    ]
    assert {each.rows for each in shares} == {shares[0].rows}
    found: list[int] = []
    for _ in range(2):
        states = []
        for share in shares:
            rows = iter(share)
            found += flat(next(rows) for _ in range(chance.randint(0, len(share))))
            states.append(rows.state())
        chance.shuffle(states)
        hosts = chance.randint(1, 8)
        shares = [rest_of(states, given, host=host, hosts=hosts) for host in range(hosts)]
    found += flat(row for share in shares for row in pickle.loads(pickle.dumps(share)))
    assert sorted(found) == list(range(len(lengths)))


@pytest.mark.parametrize("seed", range(QUICK))
def test_a_resumed_epoch_has_every_record_once(seed: int) -> None:
    one_run(seed)


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(QUICK, ALL))
def test_many_resumed_epochs_have_every_record_once(seed: int) -> None:
    one_run(seed)


def test_hosts_with_a_dropped_remainder_have_as_many_rows() -> None:
    given = packs(LENGTHS)
    shares = [order(given, host=host, hosts=8, drop_remainder=True) for host in range(8)]
    assert {len(share) for share in shares} == {shares[0].rows // 8}


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    registry = tfrecreg.init(tmp_path, with_dvc=False)
    registry["texts"].build(
        data={
            "train": [
                {
                    "tokens": np.arange(length) + 1000 * at,
                    "loss": np.full(length, at / 2, np.float32),
                    "number": at,
                }
                for at, length in enumerate(LENGTHS)
            ]
        }
    )
    return tmp_path


def length(element: dict[str, Any]) -> int:
    return len(element["tokens"])


def test_a_batch_says_which_value_is_whose(texts: Path) -> None:
    source = tfrecreg.data_source("texts", "train", registry=texts, with_key=True, with_digest=True)
    rows = source.packed_order(32, lambda pair: len(pair[1]["tokens"]), seed=1)
    certificate = source.certificate()
    for batch in source.batches(4, rows):
        certificate.add(batch["record/digest"])
        segments, positions, tokens = (
            batch[name] for name in ("pack/segment", "pack/position", "tokens")
        )
        assert tokens.shape == segments.shape == positions.shape == batch["loss"].shape
        assert (segments.dtype, positions.dtype, tokens.dtype) == (np.int32, np.int32, np.int64)
        seen: dict[int, int] = {}
        for number, row, key in zip(
            batch["number"], batch["pack/row"], batch["record/key"], strict=True
        ):
            segment = seen[row] = seen.get(row, 0) + 1
            inside = segments[row] == segment
            wanted = np.arange(LENGTHS[number])
            assert tokens[row][inside].tolist() == (wanted + 1000 * number).tolist()
            assert positions[row][inside].tolist() == wanted.tolist()
            assert set(batch["loss"][row][inside].tolist()) <= {number / 2}
            assert key
        padding = segments == 0
        assert not tokens[padding].any()
        assert not positions[padding].any()
        assert padding.sum() == padding.size - sum(LENGTHS[at] for at in batch["number"])
        assert np.all(np.diff(padding.astype(int), axis=1) >= 0)  # at the end of each row
    assert source.report(certificate).is_complete


@pytest.mark.parametrize("hosts", [1, 2, 4])
def test_a_global_batch_is_the_same_for_any_hosts(texts: Path, hosts: int) -> None:
    source = tfrecreg.data_source("texts", "train", registry=texts)

    def numbers(hosts: int) -> list[list[int]]:
        found: list[list[int]] = []
        for host in range(hosts):
            rows = source.packed_order(32, length, seed=1, host=host, hosts=hosts)
            batches = source.batches(order=rows, global_batch=4, drop_remainder=True)
            for at, batch in enumerate(batches):
                found += [[]] if at == len(found) else []
                found[at] += batch["number"].tolist()
        return [sorted(batch) for batch in found]

    assert numbers(hosts) == numbers(1)


def test_lengths_by_a_feature_are_asked_again_from_a_state(texts: Path) -> None:
    pytest.importorskip("duckdb", reason="the extra `query` is not installed")
    source = tfrecreg.data_source("texts", "train", registry=texts)
    rows = source.packed_order(32, "tokens", seed=1)
    assert [row.tolist() for row in rows] == [
        row.tolist() for row in source.packed_order(32, length, seed=1)
    ]
    rest = source.packed_order_from_state(json.loads(json.dumps(rows.state(5))), hosts=2)
    assert rest.left == rows.rows - 5
    with pytest.raises(UsageError, match="2 features of numbers whose length varies") as caught:
        source.packed_order(32, seed=1)
    assert caught.value.hint == '`packed_order(2048, by="tokens", seed=1)`'
    only = source.with_features(["tokens"]).packed_order(32, seed=1)
    assert flat(only) == flat(rows)


def test_a_feature_of_another_length_is_refused(texts: Path) -> None:
    source = tfrecreg.data_source("texts", "train", registry=texts)
    rows = source.packed_order(32, [20] * len(LENGTHS))
    with pytest.raises(RefusedError) as caught:
        next(source.batches(2, rows))
    assert caught.value.message == (
        f"record 0 has {length(source[0])} values in `loss`, and is packed with a length of 20"
    )
    hint = "`source.with_features([…])` leaves a feature out that is not as long"
    assert caught.value.hint == hint


def test_rows_without_a_schema_are_refused(texts: Path) -> None:
    source = tfrecreg.data_source("texts", "train", registry=texts, raw=True)
    with pytest.raises(UsageError, match="no schema says which features of `texts`"):
        source.batches(2, source.packed_order(32, LENGTHS))


@pytest.mark.parametrize(
    ("lengths", "more", "message", "hint"),
    [
        (
            [1, 21, 22],
            {},
            "record 1 of `texts` has a length of 21, and a row of 20; 2 records are too long",
            "longer rows, or a `where` that leaves long records out",
        ),
        (
            [1, 1.5],
            {},
            "the length of record 1 of `texts` is 1.5, by `tokens`",
            "lengths are whole numbers from 0; coalesce(x, 0) gives 0 for NULL",
        ),
        (
            [float("nan")],
            {},
            "the length of record 0 of `texts` is NULL, by `tokens`",
            "lengths are whole numbers from 0; coalesce(x, 0) gives 0 for NULL",
        ),
        (
            [[1]],
            {},
            "lengths should be one number per record, found shape (1, 1)",
            "a list of numbers, a function of elements, or an expression in SQL",
        ),
        (
            ["a"],
            {},
            "lengths should be one number per record, found `['a']`",
            "a list of numbers, a function of elements, or an expression in SQL",
        ),
        (
            [1],
            {"window": 0},
            "a row and `window` should be at least 1, found 20 and 0",
            '`packed_order(2048, by="tokens", seed=1)`',
        ),
    ],
)
def test_lengths_that_make_no_rows_are_refused(
    lengths: Any, more: dict[str, int], message: str, hint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        packs(lengths, **more)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_as_many_lengths_as_records() -> None:
    with pytest.raises(UsageError, match="there are 2 lengths for 3 records"):
        PackedOrder(Order(3, SOURCE, seed=1, epoch=0), packs([1, 2]))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (packs([2, 2]), "the state belongs to other records: to 90 with the identity"),
        (packs(LENGTHS, to=30), "an order with rows of `20`, and here is `30`"),
        (packs(LENGTHS, window=8), "an order with `window` `16`, and here is `8`"),
        (packs(LENGTHS[::-1]), "an order with lengths with the digest `"),
        (Packs(LENGTHS, "bytes", 20, 16, "texts"), "with `by` `tokens`, and here is `bytes`"),
    ],
)
def test_other_lengths_are_refused(other: Packs, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        rest_of([order(packs(LENGTHS)).state(3)], other)
    assert message in caught.value.message


def test_states_of_other_epochs_and_orders_are_refused(texts: Path) -> None:
    given = packs(LENGTHS)
    states = [order(given, epoch=host, host=host, hosts=2).state(1) for host in range(2)]
    with pytest.raises(UsageError, match="they differ in `seed` or `epoch`"):
        rest_of(states, given)
    source = tfrecreg.data_source("texts", "train", registry=texts)
    state = source.packed_order(32, LENGTHS, seed=1).state(3)
    with pytest.raises(UsageError, match="the state belongs to an order of rows"):
        source.from_state(state)
    with pytest.raises(UsageError, match="whose lengths were given as numbers"):
        source.packed_order_from_state(state)
    with pytest.raises(UsageError, match="this is not the state of an order of rows"):
        source.packed_order_from_state(source.order(seed=1).state(3))
    with pytest.raises(UsageError, match="its `pack` is 7"):
        source.packed_order_from_state({**state, "pack": 7})
    with pytest.raises(UsageError, match="`done` should be a number from 0 to"):
        source.packed_order(32, LENGTHS).state(1000)
