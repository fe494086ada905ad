"""JSON Lines and Parquet: values that have types, lists and objects."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

pa = pytest.importorskip("pyarrow", reason="reading Parquet needs the extra `parquet`")
pq = pytest.importorskip("pyarrow.parquet", reason="reading Parquet needs the extra `parquet`")

ROWS = [
    {
        "n": 9007199254740993,
        "x": 0.1,
        "ok": True,
        "tags": ["a", "b"],
        "box": {"w": 1, "h": {"d": 2}},
    },
    {"n": -1, "x": None, "ok": False, "tags": [], "box": {"w": 3, "h": {"d": None}}},
    {"n": 0, "x": 2.5, "ok": True, "tags": None, "box": None},
]
WRITTEN = {
    ("train", "00000001"): {
        "n": [9007199254740993],
        "x": [pytest.approx(0.1)],
        "ok": [1],
        "tags": [b"a", b"b"],
        "box/w": [1],
        "box/h/d": [2],
    },
    ("train", "00000002"): {
        "n": [-1],
        "x": [],
        "ok": [0],
        "tags": [],
        "box/w": [3],
        "box/h/d": [],
    },
    ("train", "00000003"): {
        "n": [0],
        "x": [2.5],
        "ok": [1],
        "tags": [],
        "box/w": [],
        "box/h/d": [],
    },
}


def test_json_lines_keep_types_lists_and_objects(raw) -> None:
    raw.put("train.jsonl", "\ufeff" + "\r\n".join(json.dumps(row) for row in ROWS))
    assert raw.made().written == WRITTEN


def test_parquet_keeps_types_lists_and_objects(raw, tmp_path) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "raw/train.parquet", row_group_size=2)
    assert raw.made().written == WRITTEN


def test_columns_of_parquet_are_taken_by_their_names(raw, tmp_path) -> None:
    table = pa.table(
        {
            "f": pa.array([0.5, None], pa.float32()),
            "b": [b"\0\xff", b""],
            "c": pa.array(["u", "v"]).dictionary_encode(),
            "when": [datetime(2026, 1, 2), datetime(2026, 1, 3)],
            "big": pa.array([2**64 - 1, 1], pa.uint64()),
        }
    )
    pq.write_table(table, tmp_path / "raw/train.parquet")
    made = raw.made("columns=f,b,c:label,when:text,big:text")
    assert made.written["train", "00000001"] == {
        "f": [0.5],
        "b": [b"\0\xff"],
        "c": [0],
        "c/text": [b"u"],
        "when": [b"2026-01-02 00:00:00"],
        "big": [b"18446744073709551615"],
    }
    raw.error("columns=when")
    raw.error("columns=big")


def test_two_columns_of_parquet_with_one_name_are_refused(raw, tmp_path) -> None:
    table = pa.table([[1], [2], [3]], names=["a", "b", "a"])
    pq.write_table(table, tmp_path / "raw/train.parquet")
    assert "`train.parquet` has two columns with the same name" in raw.error().message
    raw.error("columns=b")
    pq.write_table(pa.table({"a": [{"b": 1}], "a/b": [2]}), tmp_path / "raw/train.parquet")
    assert "`train.parquet`" in raw.error().message


def test_a_double_that_float32_does_not_hold_is_refused(raw, tmp_path) -> None:
    pq.write_table(pa.table({"x": [0.1, 0.1234567890123]}), tmp_path / "raw/train.parquet")
    assert "line 2," in raw.error().message
    assert raw.made("decimals=round").values("x")[1] == [pytest.approx(0.1234567890123)]
    assert raw.made("columns=x:text").values("x")[1] == [b"0.1234567890123"]


@pytest.mark.parametrize(
    "line",
    [
        "[1]",
        "{",
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a":' * 90_000 + "1" + "}" * 90_000,
        '{"b": {"c": 1}, "b/c": 2}',
    ],
    ids=lambda line: line[:20],
)
def test_a_line_that_is_no_row_is_skipped(raw, line) -> None:
    raw.put("train.jsonl", f'{{"a": 1}}\n{line}\n{{"a": 2}}\n')
    made = raw.made()
    assert made.values("a") == [[1], [2]]
    ((place, (code, detail)),) = made.skipped.items()
    assert (place, code) == (("train", "train.jsonl:2"), "SRC110")
    assert detail.startswith("`train.jsonl`, line 2: ")


@pytest.mark.parametrize(
    "lines",
    [
        '{"a": 1}\n{"a": "x"}',
        '{"a": true}\n{"a": 1}',
        '{"a": [[1]]}',
        '{"a": [{"b": 1}]}',
        '{"a": 9223372036854775808}',
        '{"a": 16777217}\n{"a": 1.5}',
        '{"": 1}',
        '[{"a": 1}, {"a": 2}]',
    ],
)
def test_a_column_without_a_place_in_an_example_is_refused(raw, lines) -> None:
    raw.put("train.jsonl", lines)
    raw.error()


def test_half_a_surrogate_pair_is_no_text(raw) -> None:
    raw.put("train.jsonl", '{"a": "x", "n": 1}\n{"a": "\\ud800", "n": 2}\n')
    made = raw.made()
    assert (made.values("a"), made.codes()) == ([[b"x"]], ["SRC113"])
    made = raw.made("columns=n", "key=a")
    assert (made.values("n"), made.codes()) == ([[1]], ["SRC114"])
    assert "does not name classes: not valid text" in raw.error("columns=a:label").message


def test_integers_and_floats_together_are_floats(raw) -> None:
    raw.put("train.jsonl", '{"a": 1}\n{"a": 1.5}\n')
    assert raw.made().values("a") == [[1.0], [1.5]]
    raw.put("train.jsonl", '{"a": 16777217}\n{"a": 1.5}\n')
    assert raw.made("columns=a:float").codes() == ["SRC113"]


@pytest.mark.parametrize("kind", ["", "columns=a:label"])
def test_a_null_inside_a_list_moves_nothing(raw, kind) -> None:
    raw.put("train.jsonl", '{"a": [1, null, 3]}\n{"a": [1, 3]}\n{"a": null}\n{"a": []}\n')
    made = raw.made(*filter(None, [kind]))
    assert made.skipped["train", "00000001"][0] == "SRC113"
    assert made.values("a") == [[0, 1] if kind else [1, 3], [], []]


def test_classes_may_be_texts_and_numbers(raw) -> None:
    raw.put("train.jsonl", '{"a": "x"}\n{"a": 3}\n{"a": "3"}\n{"a": true}\n')
    made = raw.made("columns=a:label")
    assert made.values("a/text") == [[b"x"], [b"3"], [b"3"], [b"true"]]
    assert made.values("a") == [[2], [0], [0], [1]]


def test_infinity_is_a_float32(raw, tmp_path) -> None:
    values = pa.array([1.5, float("inf"), float("-inf")], pa.float32())
    pq.write_table(pa.table({"a": values}), tmp_path / "raw/train.parquet")
    assert raw.made().values("a") == [[1.5], [float("inf")], [float("-inf")]]
