"""Features of samples: members by their suffixes."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from image_support import bmp, gif, jpeg, png, webp

from tfrecreg.core.example.tensors import parse_tensor
from tfrecreg.core.schema.proto import parse_schema

from .conftest import Raw

PNG = png(30, 20)


def npy(array: np.ndarray, **options: bool) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def one(raw: Raw, suffix: str, data: bytes, *options: str) -> dict:
    raw.put("a.tar", {f"k.{suffix}": data})
    made = raw.made(*options)
    assert not made.skipped
    return made.written["train/k"]


def skipped(raw: Raw, suffix: str, data: bytes, *options: str) -> str:
    """The code of the only sample, which is skipped."""
    raw.put("a.tar", {f"k.{suffix}": data})
    made = raw.made(*options)
    assert not made.written
    return made.skipped["train/k"][0]


@pytest.mark.parametrize(
    ("suffix", "data", "form"),
    [
        ("jpg", jpeg(30, 20), "jpeg"),
        ("JPEG", jpeg(30, 20), "jpeg"),
        ("png", PNG, "png"),
        ("webp", webp(30, 20), "webp"),
        ("gif", gif(30, 20), "gif"),
        ("bmp", bmp(30, 20), "bmp"),
        ("jpg", PNG, "png"),
    ],
)
def test_an_image_goes_in_byte_for_byte(raw: Raw, suffix: str, data: bytes, form: str) -> None:
    assert one(raw, suffix, data) == {
        "image/encoded": data,
        "image/format": form.encode(),
        "image/height": 20,
        "image/width": 30,
    }


def test_a_sample_has_the_features_of_all_its_members(raw: Raw) -> None:
    raw.put(
        "train-000000.tar",
        {
            "cats/7.jpg": PNG,
            "cats/7.cls": b"1\n",
            "cats/7.txt": "ü".encode(),
            "cats/7.json": b'{"a": 1}',
            "cats/7.left.png": PNG,
            "cats/7.left.cls": b"0",
            "cats/7.dat": b"\xff",
        },
    )
    raw.put("classes.txt", b"dog\r\ncat\n")
    source = raw.source("classes=classes.txt")
    made = raw.made("classes=classes.txt")
    assert made.written["train/cats/7"] == {
        "image/encoded": PNG,
        "image/format": b"png",
        "image/height": 20,
        "image/width": 30,
        "image/left/encoded": PNG,
        "image/left/format": b"png",
        "image/left/height": 20,
        "image/left/width": 30,
        "image/class/label": 1,
        "image/class/text": b"cat",
        "image/left/class/label": 0,
        "image/left/class/text": b"dog",
        "txt": "ü".encode(),
        "json": b'{"a": 1}',
        "dat": b"\xff",
    }
    assert not made.remarks
    names = {"image/class/label", "image/left/class/label"}
    assert source.labels() == {name: ["dog", "cat"] for name in names}
    assert {each.path for each in source.raw_files()} == {"train-000000.tar", "classes.txt"}
    schema = {each.name: each for each in parse_schema(source.schema(), "x").features}
    assert schema.keys() == made.written["train/cats/7"].keys()
    assert all(each.is_required and each.tensor_shape == () for each in schema.values())
    assert schema["image/encoded"].is_image
    assert schema["image/left/encoded"].is_image
    assert schema["txt"].is_text


def test_a_label_without_an_image_is_not_of_an_image(raw: Raw) -> None:
    raw.put("a.tar", {"k.cls": b"-3", "k.wav": b"RIFF"})
    assert raw.made().written["train/k"] == {"class/label": -3, "wav": b"RIFF"}
    assert raw.source().labels() == {}


def test_what_some_samples_lack_is_optional(raw: Raw) -> None:
    raw.put("a.tar", {"1.jpg": PNG, "1.txt": b"a", "2.png": PNG})
    schema = {each.name: each for each in parse_schema(raw.source().schema(), "x").features}
    assert schema["image/encoded"].is_required
    assert not schema["txt"].is_required


def test_fields_of_json_become_features(raw: Raw) -> None:
    data = {"n": 1, "list": [1, 2], "x": 0.5, "y": 3, "s": "ü", "null": None, "b": True}
    fields = "json_fields=n:int,list:int,x:float,y:float,s:text,null:int,none:text,b:int"
    assert one(raw, "json", json.dumps(data).encode(), fields) == {
        "json/n": 1,
        "json/list": [1, 2],
        "json/x": 0.5,
        "json/y": 3.0,
        "json/s": "ü".encode(),
        "json/b": 1,
    }
    schema = parse_schema(raw.source(fields).schema(), "x")
    assert len(schema.features) == 8


def test_an_array_is_a_tensor_or_its_file(raw: Raw) -> None:
    array = np.asfortranarray(np.arange(6, dtype=">i2").reshape(2, 3))
    found = parse_tensor(one(raw, "npy", npy(array))["npy"])
    assert found.dtype == np.int16
    assert found.tolist() == array.tolist()
    assert one(raw, "npy", npy(array), "npy=bytes") == {"npy": npy(array)}


@pytest.mark.parametrize(
    ("suffix", "data", "code"),
    [
        ("cls", b"cat", "SRC113"),
        ("cls", b"", "SRC113"),
        ("cls", b"1_0", "SRC113"),
        ("cls", b"9" * 5000, "SRC113"),
        ("cls", b"9223372036854775808", "SRC113"),
        ("a.txt", b"\xff", "SRC113"),
        ("json", b"{", "SRC113"),
        ("json", b'{"w": 1, "w": 2}', "SRC113"),
        ("json", b"[" * 100_000, "SRC113"),
        ("npy", b"x", "SRC113"),
        ("jpg", b"", "SRC110 empty"),
        ("png", b"<html>", "SRC110 format"),
    ],
)
def test_an_unusable_member_skips_its_sample(raw: Raw, suffix: str, data: bytes, code: str) -> None:
    assert skipped(raw, suffix, data) == code


def test_an_array_that_is_hostile_is_refused(raw: Raw) -> None:
    whole = npy(np.zeros((2, 2)))
    for data in (
        npy(np.array([{}], dtype=object), allow_pickle=True),
        npy(np.zeros(2, "i4,f8")),
        whole.replace(b"(2, 2)", b"(9**9)"),
        whole.replace(b"(2, 2), }          ", b"(200000, 200000), }"),
        whole[:-1],
        whole + b"x",
        b"\x93NUMPY\x02\x00" + (1 << 30).to_bytes(4, "little"),
    ):
        assert skipped(raw, "npy", data) == "SRC113"


@pytest.mark.parametrize(
    "text",
    [
        '{"n": "1"}',
        '{"n": [1, null]}',
        '{"n": 1e400}',
        '{"n": 9223372036854775808}',
        "[]",
        '{"n": 1, "n": 2}',
    ],
)
def test_a_field_of_another_type_skips_the_sample(raw: Raw, text: str) -> None:
    assert skipped(raw, "json", text.encode(), "json_fields=n:int") == "SRC113"


def test_a_label_without_a_name_skips_the_sample(raw: Raw) -> None:
    raw.put("names.json", b'["cat", "dog"]')
    assert skipped(raw, "cls", b"2", "classes=names.json") == "SRC113"


def test_two_images_for_one_feature_skip_the_sample(raw: Raw) -> None:
    raw.put("a.tar", {"k.jpg": PNG, "k.png": PNG})
    assert raw.made().skipped["train/k"][0] == "SRC113"
    assert raw.made("suffixes=png").written


def test_an_image_that_is_cut_short_is_written_and_remarked(raw: Raw) -> None:
    raw.put("a.tar", {"k.png": PNG[:-20]})
    made = raw.made()
    assert made.written["train/k"]["image/encoded"] == PNG[:-20]
    assert [each.code for each in made.remarks] == ["SRC014"]


@pytest.mark.parametrize(
    "data",
    [
        None,
        b" ",
        b"\xff",
        b"{",
        b"[1]",
        b'{"a": 0}',
    ],
)
def test_a_file_of_class_names_that_is_none_is_refused(raw: Raw, data: bytes | None) -> None:
    raw.put("a.tar", {"k.cls": b"1"})
    if data is not None:
        raw.put("c.json", data)
    raw.error("classes=c.json")


def test_class_names_are_a_list_in_json(raw: Raw) -> None:
    raw.put("a.tar", {"k.cls": b"2"})
    raw.put("c.json", b'["a", "", "c"]')
    source = raw.source("classes=./c.json")
    assert source.labels() == {"class/label": ["a", "", "c"]}
    assert [each.path for each in source.raw_files()] == ["a.tar", "c.json"]


def test_an_option_that_cannot_be_is_refused(raw: Raw) -> None:
    raw.put("a.tar", {"k.cls": b"2"})
    raw.error("json_fields=a")
