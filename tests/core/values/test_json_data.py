"""A result becomes JSON by the fields of its record."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from types import MappingProxyType

import msgspec
import pytest

from tfrecreg.core.values.json_data import json_data


class Colour(Enum):
    RED = "red"


class Stored(msgspec.Struct):
    name: str
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Result:
    parts: tuple[Part, ...]
    data: bytes = field(default=b"much", repr=False)


@dataclass(frozen=True, slots=True)
class Renamed:
    own: str
    parts: tuple[Part, ...]

    def to_json(self) -> dict[str, object]:
        return {"from": self.own, "parts": self.parts}


PART = {"name": "a", "size": 1}


def numbers() -> Iterator[Part]:
    yield Part("a", 1)


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ({"a": (1, 2.5, True, None, "x")}, {"a": [1, 2.5, True, None, "x"]}),
        (MappingProxyType({"c": Colour.RED}), {"c": "red"}),
        (Result((Part("a", 1), Part("b"))), {"parts": [PART, {"name": "b", "size": None}]}),
        (Renamed("x", (Part("a", 1),)), {"from": "x", "parts": [PART]}),
        ([Stored("s", (1, 2))], [{"name": "s", "sizes": [1, 2]}]),
        (numbers(), [PART]),
        ((math.nan, math.inf, -math.inf), [None, "inf", "-inf"]),
        (date(2026, 11, 24), "2026-11-24"),
    ],
)
def test_json_data(value: object, data: object) -> None:
    found = json_data(value)
    assert found == data
    assert json.loads(json.dumps(found, allow_nan=False)) == data
