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


def test_those_of_numpy_are_saved_as_json(source: tfrecreg.DataSource) -> None:
    two, one = np.int64(2), np.int32(1)
    order = source.order(one, two, host=one, hosts=two, block=np.int64(5))
    plain = source.order(1, 2, host=1, hosts=2, block=5)
    assert json.loads(json.dumps(order.state(3))) == plain.state(3)
    assert list(order) == list(plain)
