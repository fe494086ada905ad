"""Columns without a type: what their values decide, and that nothing is rounded."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecreg.core.schema.proto import parse_schema
from tfrecreg_table.columns import comes_back, float_of


@pytest.mark.parametrize(
    ("cells", "kind", "line"),
    [
        (("0", "-5", "9223372036854775807"), "int64", 0),
        (("9", "1234567", "-9999999"), "int64", 0),
        (("12345678", "0"), "int64", 0),
        (("1234567", "1."), "float", 0),
        (("-0", "1"), "float", 0),
        (("0", "9223372036854775808"), "text", 3),
        (("007",), "text", 2),
        (("+7",), "text", 2),
        (("1", "1.5", "-2e3"), "float", 0),
        (("0.1", "123.456", ".5", "5."), "float", 0),
        (("0.12345678901",), "text", 2),
        (("1.5", "16777217"), "text", 3),
        (("16777217", "1.5"), "text", 2),
        (("16777219", "1.5"), "text", 2),
        (("16777216", "1.5"), "float", 0),
        (("1e39", "1"), "text", 2),
        (("16777217.0", "1"), "text", 2),
        (("1e11", "1"), "float", 0),
        (("1e-60",), "text", 2),
        (("1", "nan"), "float", 0),
        (("1", "two"), "text", 3),
        (("two", "1"), "text", 0),
        (("1_000",), "text", 0),
        ((" 1",), "text", 2),
        (("１",), "text", 0),
        (("0x10",), "text", 0),
        (("true", "false"), "text", 0),
        (("", ""), "text", 0),
    ],
)
@pytest.mark.parametrize("together", [1, 4096])
def test_the_values_of_a_csv_decide(raw, monkeypatch, cells, kind, line, together) -> None:
    monkeypatch.setattr("tfrecreg_table.tables._BATCH", together)
    raw.put("train.csv", "n,v\n" + "".join(f"{n},{cell}\n" for n, cell in enumerate(cells)))
    assert raw.source().describe()["column v"].startswith(kind)
    remarked = raw.made().remarked()
    assert ("SRC116" in remarked) == bool(line)
    assert not line or f"line {line}, " in remarked["SRC116"]


def test_fractions_are_rounded_only_by_the_option_and_whole_numbers_never(raw) -> None:
    cells = "0.123456789012,0.5,16777217.0,16777216.0\n1,16777217,0.123456789012,0.5\n"
    raw.put("train.csv", f"v,w,x,y\n{cells}")
    made = raw.made("decimals=round")
    held = struct.unpack("<f", struct.pack("<f", 0.123456789012))[0]
    assert made.values("v") == [[held], [1.0]]
    assert made.values("w") == [[b"0.5"], [b"16777217"]]
    assert made.values("x") == [[b"16777217.0"], [b"0.123456789012"]]
    assert made.values("y") == [[16777216.0], [0.5]]
    assert raw.made().values("v") == [[b"0.123456789012"], [b"1"]]


@given(
    st.from_regex(r"-?(0|[1-9][0-9]{0,12})(\.[0-9]{0,12})?(e[+-]?[0-9]{1,2})?", fullmatch=True),
    st.booleans(),
)
def test_a_text_that_makes_a_column_float_becomes_a_float(text: str, rounds: bool) -> None:
    """The first pass and the making of records agree."""
    if comes_back(text, rounds=rounds):
        assert float_of(text) == pytest.approx(float(text), rel=1e-6, abs=1e-44)


def test_every_float32_comes_back_from_its_shortest_text() -> None:
    for bits in range(1, 1 << 31, 7_654_321):
        (number,) = struct.unpack("<f", struct.pack("<I", bits))
        if number == number and abs(number) != float("inf"):
            assert comes_back(f"{number:.9g}"), number
            assert not comes_back(repr(number * 1.00000001)) or number == 0


def test_a_column_has_one_value_a_record_where_every_row_of_every_table_has_it(raw) -> None:
    raw.put("train.csv", "n,whole,gaps,other\n1,5,6,7\n2,7,,8\n")
    raw.put("test.csv", "n,whole,gaps\n3,9,9\n")
    rules = {each.name: each for each in parse_schema(raw.source().schema()).features}
    assert rules["whole"].shape == ()
    assert rules["gaps"].shape is None
    assert rules["other"].shape is None


@pytest.mark.parametrize(
    ("kind", "cells", "values"),
    [
        ("int64", ("7", "+07", "3.0", "-0"), [[7], [7], [3], [0]]),
        ("int64", ("3.5", "1e3", "x", "1_0", "٣", "9223372036854775808", "1"), [[1]]),
        ("float", ("16777217", "1e39", "x", "1e-60", "1__0", "1.5"), [[1.5]]),
    ],
)
def test_a_declared_number_loses_nothing(raw, kind, cells, values) -> None:
    raw.put("train.csv", "v,w\n" + "".join(f"{cell},x\n" for cell in cells))
    made = raw.made(f"columns=v:{kind}")
    assert made.values("v") == values
    assert made.codes() == ["SRC113"] * (len(cells) - len(values))
