"""Batches of NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from image_support import png

import tfrecreg
from tfrecreg.builtin.training.batches import numbers_of_batches
from tfrecreg.builtin.training.order import Order
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.values.errors import UsageError

from .conftest import Write


def test_features_of_fixed_shape_are_stacked(digits_original: Path) -> None:
    source = tfrecreg.data_source(
        "digits", "train", registry=digits_original, decode=True, with_key=True, with_digest=True
    )
    batches = list(source.batches(64))
    assert [len(batch["image/class/label"]) for batch in batches] == [64, 64, 64, 8]
    first = batches[0]
    assert (first["image/encoded"].shape, first["image/encoded"].dtype) == (
        (64, 28, 28, 1),
        np.uint8,
    )
    assert first["image/class/label"].dtype == np.int64
    assert first["image/format"].tolist() == [b"png"] * 64
    assert first["record/key"] == [source.key(number) for number in range(64)]
    assert first["record/digest"].shape == (64, 16)
    assert len(list(source.batches(64, drop_remainder=True))) == 3
    assert len(list(source.batches(50, drop_remainder=True))) == 4


def test_an_order_chooses_the_records(digits_original: Path) -> None:
    source = tfrecreg.data_source("digits", "train", registry=digits_original)
    share = source.order(5)
    (batch,) = source.batches(4, share[:4])
    expected = [source[number]["image/class/label"] for number in share[:4]]
    assert batch["image/class/label"].tolist() == expected


SCHEMA = """
feature { name: "label" type: INT presence { min_fraction: 1 } shape {} }
feature { name: "point" type: FLOAT presence { min_fraction: 1 } shape { dim { size: 2 } } }
feature { name: "image" type: BYTES presence { min_fraction: 1 } shape {} image_domain {} }
feature { name: "boxes" type: FLOAT shape { dim {} dim { size: 4 } } }
"""


def test_what_varies_is_a_list(write: Write, tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")
    payloads = [
        encode(
            {
                "label": int64_feature(number),
                "point": float_feature([number, 1]),
                "image": bytes_feature(png(3 if number < 2 else number + 3, 2, colour=0)),
                "boxes": float_feature([0] * 4 * number),
            }
        )
        for number in range(4)
    ]
    (tmp_path / "schema.pbtxt").write_text(SCHEMA)
    path = write("x.tfrecord", payloads)
    source = tfrecreg.data_source(path, schema=tmp_path / "schema.pbtxt", decode=True)
    same, other = source.batches(2)
    assert (same["image"].shape, other["image"][1].shape) == ((2, 2, 3, 1), (2, 6, 1))
    assert isinstance(other["image"], list)
    assert other["point"].tolist() == [[2, 1], [3, 1]]
    assert [each.shape for each in other["boxes"]] == [(2, 4), (3, 4)]


# --- batches of all hosts together


def shares_of(order: Callable[..., Order], size: int, hosts: int, **more: bool) -> list[list[int]]:
    """The records of each global batch, of all hosts together."""
    found: list[list[int]] = []
    for host in range(hosts):
        share = order(host=host, hosts=hosts)
        batches = numbers_of_batches(None, share, more.get("drop_remainder", False), size)
        for at, numbers in enumerate(batches):
            if at == len(found):
                found.append([])
            found[at] += map(int, numbers)
    return [sorted(each) for each in found]


@pytest.mark.medium
@settings(max_examples=25)
@given(
    records=st.integers(0, 150),
    size=st.sampled_from([1, 12, 24, 60]),
    seed=st.none() | st.integers(0, 99),
    done=st.integers(0, 10),
    before=st.sampled_from([1, 2, 3, 4]),
)
def test_a_global_batch_has_the_same_records_for_any_hosts(
    records: int, size: int, seed: int | None, done: int, before: int
) -> None:
    """Also after a restart that changed the number of hosts."""

    def order(**more: Any) -> Order:
        return Order(records, "source", seed=seed, epoch=2, **more)

    def rest(**more: Any) -> Order:
        state = order(hosts=before).state(min(done, records // before))
        return Order(records, "source", seed=0, epoch=0, **more).resumed([state])

    for make in (order, rest):
        single = shares_of(make, size, 1)
        assert [len(each) for each in single[:-1]] == [size] * (len(single) - 1)
        assert sorted(chain.from_iterable(single)) == sorted(make())
        whole = [each for each in single if len(each) == size]
        for hosts in (each for each in range(1, 9) if size % each == 0):
            assert shares_of(make, size, hosts, drop_remainder=True) == whole
            if not single or len(single[-1]) >= hosts:
                assert shares_of(make, size, hosts) == single


def test_batches_of_all_hosts_and_their_certificate(digits_original: Path) -> None:
    source = tfrecreg.data_source(
        "digits@1.0.0", "train", registry=digits_original, with_digest=True
    )
    certificate = source.certificate()
    states = []
    for host in range(4):
        share = source.order(seed=1, host=host, hosts=4)
        for batch in islice(source.batches(order=share, global_batch=24), 5):
            assert len(batch["record/digest"]) == 6
            certificate.add(batch["record/digest"])
        states.append(share.state(5 * 24 // 4))
    for host in range(2):
        rest = source.from_state(states[host], host=host, hosts=2)
        for batch in source.batches(order=rest, global_batch=24):
            certificate.add(batch["record/digest"])
    assert source.report(certificate).is_complete


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"size": 3, "global_batch": 3},
        {"global_batch": 10},
        {"global_batch": 0},
        {"global_batch": 33},
        {"global_batch": 3, "order": range(9)},
    ],
)
def test_global_batches_that_cannot_be(digits_original: Path, given: dict[str, Any]) -> None:
    source = tfrecreg.data_source("digits@1.0.0", "train", registry=digits_original)
    order = source.order(seed=1, hosts=3)
    with pytest.raises(UsageError):
        source.batches(**{"order": order, **given})
