"""Features of values, by the types of Arrow and of Hugging Face."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pytest
from image_support import jpeg, png

from tfrecreg.core.schema.proto import parse_schema

from .conftest import MEDIA, Raw, media, pa

PNG, JPEG = png(30, 20), jpeg(7, 5)
CLASSES = {"names": ["cat", "dog"], "_type": "ClassLabel"}
IMAGE = {"_type": "Image"}


def test_image_and_class_have_the_usual_names(raw: Raw) -> None:
    columns = {"img": media(PNG, JPEG, path="a.png"), "fine": pa.array([1, -1])}
    raw.table("train.parquet", columns, {"img": IMAGE, "fine": CLASSES})
    source = raw.source()
    made = raw.made()
    assert made.written["train/train/00000000"] == {
        "image/encoded": PNG,
        "image/format": b"png",
        "image/height": 20,
        "image/width": 30,
        "image/filename": b"a.png",
        "image/class/label": 1,
        "image/class/text": b"dog",
    }
    second = made.written["train/train/00000001"]
    assert second["image/encoded"] == JPEG
    assert second["image/class/label"] == -1
    assert "image/class/text" not in second
    assert source.labels() == {"image/class/label": ("cat", "dog")}
    schema = {each.name: each for each in parse_schema(source.schema(), "x").features}
    assert schema.keys() == made.written["train/train/00000000"].keys()
    assert schema["image/encoded"].is_image
    assert schema["image/encoded"].is_required
    assert not schema["image/class/text"].is_required
    assert schema["image/class/label"].domain.min == -1
    raw.table("train.parquet", {"fine": pa.array([1, 0])}, {"fine": CLASSES})
    assert "min: 0 max: 1" in raw.source().schema()


def test_several_images_and_classes_keep_their_names(raw: Raw) -> None:
    columns = {
        "left": media(PNG),
        "right": media(JPEG),
        "coarse": pa.array([0]),
        "fine": pa.array([1]),
    }
    features = {"left": IMAGE, "right": IMAGE, "coarse": CLASSES, "fine": CLASSES}
    raw.table("train.parquet", columns, features)
    (found,) = raw.made().written.values()
    assert found["left/encoded"] == PNG
    assert found["right/encoded"] == JPEG
    assert (found["coarse/label"], found["coarse/text"]) == (0, b"cat")
    assert (found["fine/label"], found["fine/text"]) == (1, b"dog")
    schema = {each.name: each for each in parse_schema(raw.source().schema(), "x").features}
    assert schema["fine/text"].is_required


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([True]), 1),
        (pa.array([-128], pa.int8()), -128),
        (pa.array([2**32 - 1], pa.uint32()), 2**32 - 1),
        (pa.array([2**63 - 1], pa.uint64()), 2**63 - 1),
        (pa.array([0.1], pa.float32()), float(np.float32(0.1))),
        (pa.array([0.5], pa.float64()), 0.5),
        (pa.array(["ü"]), "ü".encode()),
        (pa.array(["ü"], pa.large_string()), "ü".encode()),
        (pa.array([b"\xff"]), b"\xff"),
        (pa.array([b"\xff"], pa.large_binary()), b"\xff"),
        (pa.array([b"ab"], pa.binary(2)), b"ab"),
        (pa.array(["x"]).dictionary_encode(), b"x"),
        (pa.array([datetime.datetime(1970, 1, 1, 0, 0, 1)], pa.timestamp("ms")), 1000),
        (pa.array([datetime.date(1970, 1, 3)]), 2),
        (pa.array([datetime.time(0, 0, 1)], pa.time64("us")), 1_000_000),
        (pa.array([5], pa.duration("s")), 5),
        (pa.array([decimal.Decimal("1.50")]), b"1.50"),
        (pa.array([[1, 2]]), [1, 2]),
        (pa.array([[]], pa.list_(pa.int64())), []),
        (pa.array([["a", "b"]]), [b"a", b"b"]),
        (pa.array([[1.5, 2.5]], pa.list_(pa.float32(), 2)), [1.5, 2.5]),
        (pa.array([[[1, 2], [3, 4]]], pa.list_(pa.list_(pa.int64(), 2))), [1, 2, 3, 4]),
    ],
    ids=lambda each: str(getattr(each, "type", "")),
)
def test_a_value_becomes_one_feature(raw: Raw, column: Any, expected: Any) -> None:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    assert raw.one(column) == {"c": expected}
    schema = parse_schema(raw.source().schema(), "x")
    assert [each.name for each in schema.features] == ["c"]


@pytest.mark.skipif(not hasattr(pa, "string_view"), reason="this pyarrow has no such type")
def test_texts_of_newer_libraries_are_texts(raw: Raw) -> None:
    raw.table("train.parquet", {"x": pa.array(["a", "bé"], pa.string_view())})
    assert [each["x"] for each in raw.made().written.values()] == [b"a", "bé".encode()]


def test_null_is_a_feature_that_is_absent(raw: Raw) -> None:
    raw.table("train.parquet", {"a": pa.array([None, 1]), "b": pa.array([1, 2])})
    assert list(raw.made().written.values()) == [{"b": 1}, {"a": 1, "b": 2}]
    schema = {each.name: each for each in parse_schema(raw.source().schema(), "x").features}
    assert not schema["a"].is_required
    assert schema["b"].is_required


def test_fields_of_structs_are_features(raw: Raw) -> None:
    kind = pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.string())]))])
    rows = [{"x": 1, "y": {"z": "a"}}, None, {"x": None, "y": None}]
    raw.table("train.parquet", {"c": pa.array(rows, kind), "n": pa.array([0, 1, 2])})
    assert list(raw.made().written.values()) == [
        {"c/x": 1, "c/y/z": b"a", "n": 0},
        {"n": 1},
        {"n": 2},
    ]


def test_objects_are_lists_by_field(raw: Raw) -> None:
    """As datasets of detection have them: a struct of lists, and a list of structs."""
    boxes = pa.list_(pa.list_(pa.float32(), 4))
    of_lists = pa.struct([("bbox", boxes), ("category", pa.list_(pa.int64()))])
    row = {"bbox": [[0, 0, 1, 1], [1, 1, 2, 2]], "category": [1, 0]}
    features = {
        "c": {
            "bbox": {
                "feature": {"feature": {"dtype": "float32", "_type": "Value"}, "_type": "List"},
                "_type": "List",
            },
            "category": {"feature": CLASSES, "_type": "List"},
        }
    }
    expected = {
        "c/bbox": [0, 0, 1, 1, 1, 1, 2, 2],
        "c/category/label": [1, 0],
        "c/category/text": [b"dog", b"cat"],
    }
    assert raw.one(pa.array([row], of_lists), **features) == expected
    structs = pa.list_(pa.struct([("bbox", pa.list_(pa.float32(), 4)), ("category", pa.int64())]))
    rows = [
        {"bbox": [0, 0, 1, 1], "category": 1},
        {"bbox": [1, 1, 2, 2], "category": 0},
    ]
    features["c"] = {  # type: ignore[assignment]
        "feature": {
            "bbox": {"feature": {"dtype": "float32", "_type": "Value"}, "_type": "List"},
            "category": CLASSES,
        },
        "_type": "List",
    }
    assert raw.one(pa.array([rows], structs), **features) == expected
    assert raw.source().labels() == {"c/category/label": ("cat", "dog")}


def test_lists_of_lists_have_the_lengths_of_their_rows(raw: Raw) -> None:
    column = pa.array([[[1, 2], [], [3]]])
    assert raw.one(column) == {"c": [1, 2, 3], "c/row_lengths": [2, 0, 1]}
    array = {"shape": [2, 2], "dtype": "int64", "_type": "Array2D"}
    assert raw.one(pa.array([[[1, 2], [3, 4]]]), c=array) == {"c": [1, 2, 3, 4]}


def test_lists_of_images_are_images(raw: Raw) -> None:
    column = pa.array([[{"bytes": PNG, "path": None}] * 2], pa.list_(MEDIA))
    found = raw.one(column, c={"feature": IMAGE, "_type": "Sequence"})
    assert found == {
        "c/encoded": [PNG, PNG],
        "c/format": [b"png", b"png"],
        "c/height": [20, 20],
        "c/width": [30, 30],
    }


def test_sounds_pass_through(raw: Raw) -> None:
    found = raw.one(media(b"RIFF", path="a.wav"), c={"sampling_rate": 16000, "_type": "Audio"})
    assert found == {"c/encoded": b"RIFF", "c/filename": b"a.wav"}
    assert raw.one(media(b"RIFF")) == {"c/encoded": b"RIFF"}  # without any metadata


@pytest.mark.parametrize(
    ("column", "code"),
    [
        (pa.array([[1, None]]), "SRC113"),
        (pa.array([[None, [1]]]), "SRC113"),
        (pa.array([2**63], pa.uint64()), "SRC113"),
        (pa.array([b"a\xff"]).view(pa.string()), "SRC113"),
        (pa.array([{"bytes": None, "path": "../a.png"}], MEDIA), "SRC112"),
        (media(b"<html>"), "SRC110 format"),
    ],
)
def test_a_value_that_no_feature_holds_skips_its_row(raw: Raw, column: Any, code: str) -> None:
    features = {"c": IMAGE} if code != "SRC113" else {}
    assert raw.skipped(column, **features)[0] == code


def test_a_float_of_64_bits_is_exact_or_rounded_on_purpose(raw: Raw) -> None:
    raw.table("train.parquet", {"c": pa.array([0.1, float("nan")])})
    raw.error()
    values = [each["c"] for each in raw.made("float64=round").written.values()]
    assert values[0] == float(np.float32(0.1))
    assert np.isnan(values[1])
    raw.table("train.parquet", {"c": pa.array([1e300])})
    raw.error("float64=round")


def test_what_no_feature_holds_is_left_out_with_a_remark(raw: Raw) -> None:
    columns = {
        "a": pa.array([1]),
        "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        "null": pa.array([None]),
        "deep": pa.array([[[[1]]]]),
    }
    raw.table("train.parquet", columns)
    made = raw.made()
    assert list(made.written.values()) == [{"a": 1}]
    assert [(each.code, each.key) for each in made.remarks] == [
        ("SRC117", "map"),
        ("SRC117", "null"),
        ("SRC117", "deep"),
    ]
