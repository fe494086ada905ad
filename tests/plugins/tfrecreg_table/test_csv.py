"""CSV and TSV as people have them, and as they should not be."""

from __future__ import annotations

import pytest


def test_rows_become_records_with_typed_features(raw) -> None:
    raw.put("train.csv", "n,x,name\n1,0.5,Zoë\n2,1.5,b\n")
    made = raw.made()
    assert made.written == {
        ("train", "00000001"): {"n": [1], "x": [0.5], "name": ["Zoë".encode()]},
        ("train", "00000002"): {"n": [2], "x": [1.5], "name": [b"b"]},
    }
    assert not made.skipped
    assert not made.remarks


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("train.csv", b"\xef\xbb\xbfa,b\r\n1,x\r\n2,y\r\n"),
        ("train.csv", b"a;b\n1;x\n2;y"),
        ("train.tsv", b"a\tb\n\n1\tx\n\n2\ty\n"),
        ("train.csv", b'"a","b"\n"1","x"\n"2","y"\n'),
        ("train.CSV", b"a\tb\n1\tx\n2\ty\n"),
    ],
)
def test_marks_line_ends_blank_lines_and_delimiters_make_no_difference(raw, name, data) -> None:
    raw.put(name, data)
    made = raw.made()
    assert (made.values("a"), made.values("b")) == ([[1], [2]], [[b"x"], [b"y"]])


def test_quoted_cells_hold_anything(raw) -> None:
    odd = 'a "b", c\r\nd\u2028e\x0bf'
    raw.put("train.csv", 'n,t\n1,"{}"\n2,"=1+1"\n'.format(odd.replace('"', '""')))
    assert raw.made().values("t") == [[odd.encode()], [b"=1+1"]]


@pytest.mark.medium
def test_every_row_is_found_again_behind_batches_and_blocks(raw, monkeypatch) -> None:
    text = "".join(f'{n},"{"é" * (n % 7)}\n,{n}"\n' for n in range(9000))
    raw.put("train.csv", f"n,t\n{text}")
    made = raw.made()
    assert made.values("n") == [[n] for n in range(9000)]
    assert made.values("t") == [[f"{'é' * (n % 7)}\n,{n}".encode()] for n in range(9000)]


def test_unusable_rows_are_skipped_with_their_lines(raw) -> None:
    raw.put("train.csv", 'a,b\n1,"x\ny"\n1,2,3\n1\n1,"x"y\n1,x\ry\n5,6\n')
    made = raw.made()
    assert {key: code for (_, key), (code, _) in made.skipped.items()} == {
        "train.csv:4": "SRC113 row",
        "train.csv:5": "SRC113 row",
        "train.csv:6": "SRC110",
        "train.csv:7": "SRC110",  # a carriage return
    }
    assert all(f"line {key[1][-1]}:" in detail for key, (_, detail) in made.skipped.items())
    assert list(made.written) == [("train", "00000001"), ("train", "00000006")]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"a,b\n1,x\n2,Z\xfcrich\n", 3),
        ("a,b\n1,2\n".encode("utf-16"), 1),
        (b"\x1f\x8b\x08\0", 1),
        (b'a,b\n1,2\n1,"x\n2,y\n', 3),
        (b'"a"b,c\n', 1),
        (b"a,b\n1\n", 2),
        (b"a,b,a\n1,2,3\n", None),
        (b"", None),
        (b"a,b\n", None),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(raw, data, line) -> None:
    raw.put("train.csv", data)
    message = raw.error().message
    assert "`train.csv`" in message
    assert line is None or f"`train.csv`, line {line}: " in message


def test_a_table_without_header_has_numbered_columns(raw) -> None:
    raw.put("train.csv", "1,x\n2,y\n")
    made = raw.made("header=no", "delimiter=,")
    assert (made.values("1"), made.values("2")) == ([[1], [2]], [[b"x"], [b"y"]])


def test_a_space_may_be_the_delimiter(raw) -> None:
    raw.put("train.csv", "a b\n1 2\n")
    assert raw.made("delimiter= ").written["train", "00000001"] == {"a": [1], "b": [2]}


def test_a_file_that_a_numbered_set_lacks_is_skipped(raw) -> None:
    raw.put("train-0-of-3.csv", "a\n1\n")
    raw.put("train-2-of-3.csv", "a\n2\n")
    assert raw.made().skipped["train", "train-1-of-3.csv"][0] == "SRC112"
    assert not raw.made("file=train-0-of-3.csv").skipped  # named by the user
    raw.put("train-0-of-3.csv", "a,s\n1,dev\n")
    raw.put("train-2-of-3.csv", "a,s\n1,dev\n")
    assert list(raw.made("split_column=s").skipped) == [("validation", "train-1-of-3.csv")]


@pytest.mark.parametrize(
    ("cells", "options", "values", "code"),
    [
        (("1", " NA", "-", "N/A ", "2"), (), [[1], [], [], [], [2]], "SRC115 value"),
        (("0.5", "?", "null", "  "), (), [[0.5], [], [], []], "SRC115 value"),
        (("0.5", " nan", "nan"), (), [[0.5], [], [pytest.approx(float("nan"), nan_ok=True)]], ""),
        (("NA", "x"), (), [[b"NA"], [b"x"]], ""),
        (("NA", "?"), (), [[b"NA"], [b"?"]], ""),
        (("1", " NA"), ("missing=NA",), [[1], []], ""),
        (("x", " NA"), ("missing=NA",), [[b"x"], []], ""),
        ((" 1", " ?"), ("columns=n,v:int64",), [[1], []], "SRC115 value"),
        (("1", "nan"), ("columns=n,v:int64",), [[1], []], "SRC115 value"),
        (("1.5 ", "NULL"), ("columns=n,v:float",), [[1.5], []], "SRC115 value"),
        ((*("1" * 10), "unknown"), (), [*([b"1"],) * 10, [b"unknown"]], "SRC116"),
        ((*("1" * 10), "unknown"), ("missing=unknown",), [*([1],) * 10, []], ""),
        (("1995", r"\N", r"\N"), (), [[1995], [], []], "SRC115 value"),
        (("1.5", "na", "--", ".", "NIL"), (), [[1.5], [], [], [], []], "SRC115 value"),
        ((*("1" * 10), *("x" * 90)), (), [*([b"1"],) * 10, *([b"x"],) * 90], "SRC116"),
    ],
)
def test_marks_of_missing_values_among_numbers_are_no_values(
    raw, cells, options, values, code
) -> None:
    raw.put("train.csv", "n,v\n" + "".join(f"{n},{cell}\n" for n, cell in enumerate(cells)))
    made = raw.made(*options)
    assert made.values("v") == values
    assert not made.skipped
    optional = any(not each for each in values)
    assert raw.source(*options).schema().count("min: 0 max: 1") == int(optional)
    if code:
        assert code in made.remarked()
