"""Seeds, epochs, hosts and blocks are integers, of Python or of NumPy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecreg
from tfrecreg.core.values.errors import UsageError


@pytest.fixture
def source(digits_original: Path) -> tfrecreg.DataSource:
    return tfrecreg.data_source("digits@1.0.0", "train", registry=digits_original)


@pytest.mark.parametrize(
    ("name", "more"),
    [("seed", {}), ("epoch", {"seed": 1}), ("hosts", {}), ("host", {"hosts": 4})]
    + [(name, {"seed": 1, "block": 5}) for name in ("block_window", "block_lanes")],
)
@pytest.mark.parametrize("value", [1.0, True, float("nan"), "1", [1]])
def test_anything_else_is_refused(
    name: str, more: dict[str, Any], value: Any, source: tfrecreg.DataSource
) -> None:
    with pytest.raises(UsageError, match=f"`{name}` should be an integer, found"):
        source.order(**{**more, name: value})


@pytest.mark.parametrize("value", [1.5, True])
def test_a_block_is_an_integer_too(value: Any, source: tfrecreg.DataSource) -> None:
    with pytest.raises(UsageError, match="`block` should be an integer"):
        source.order(seed=1, block=value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"block": 10**30}, "`block` should be a number from 1 to 1099511627776"),
        ({"block": 5, "block_lanes": 2**21}, "`block_lanes` should be a number from 1 to 1048576"),
        ({"block": 5, "block_window": 0}, "`block_window` should be a number from 1 on, found 0"),
    ],
)
def test_blocks_have_limits(
    more: dict[str, Any], message: str, source: tfrecreg.DataSource
) -> None:
    with pytest.raises(UsageError, match=message):
        source.order(seed=1, **more)


def test_those_of_numpy_are_saved_as_json(source: tfrecreg.DataSource) -> None:
    two, one = np.int64(2), np.int32(1)
    order = source.order(one, two, host=one, hosts=two, block=np.int64(5))
    plain = source.order(1, 2, host=1, hosts=2, block=5)
    assert json.loads(json.dumps(order.state(3))) == plain.state(3)
    assert list(order) == list(plain)


@pytest.mark.parametrize("size", [(5, 5, 3), (5.5, 5), (True, 5), ("5", 5), 5])
def test_a_size_is_height_and_width(size: Any, digits_original: Path) -> None:
    with pytest.raises(UsageError, match="`image_size` should be height and width, found"):
        tfrecreg.data_source(
            "digits@1.0.0", "train", registry=digits_original, decode=True, image_size=size
        )
