"""Tar files as the package webdataset reads them."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from image_support import png

from tfrecreg.builtin.export.webdataset import WebDatasetFormat
from tfrecreg.core.example.model import Example, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.plugins.convert import ShardConversion

from .conftest import GIF, NANS, SCHEMA, MakeTask, webdataset

tariterators: Any = pytest.importorskip("webdataset.tariterators")
autodecode: Any = pytest.importorskip("webdataset.autodecode")

Write = Any

PNG = png(3, 2, seed=1)


def made(schema: str = SCHEMA, **labels: Sequence[str]) -> WebDatasetFormat:
    return webdataset(schema, labels)


@pytest.fixture
def write(make_task: MakeTask, tmp_path: Path) -> Write:
    """``write(examples, keys)``: the path of the file."""

    def call(
        examples: Sequence[Example],
        keys: Sequence[str] | None = None,
        layout: WebDatasetFormat | None = None,
    ) -> Path:
        task = make_task([encode(each) for each in examples], keys)
        ShardConversion(layout or made())(task)
        return tmp_path / "stage/out"

    return call


def samples(path: Path, decode: bool = True) -> list[dict[str, Any]]:
    """What the package reads. Its own `WebDataset` would leave the file open."""
    with path.open("rb") as stream:
        files = tariterators.tar_file_expander([{"url": str(path), "stream": stream}])
        found = list(tariterators.group_by_keys(files))
    if decode:
        pytest.importorskip("PIL", reason="the extra `images` is not installed")
        found = list(map(autodecode.Decoder([autodecode.imagehandler("rgb8")]), found))
    return [
        {name: value for name, value in each.items() if name == "__key__" or name[0] != "_"}
        for each in found
    ]


def test_image_and_label_are_decoded(write: Write) -> None:
    example = {
        "image/encoded": bytes_feature(PNG),
        "image/class/label": int64_feature(7),
        "name": bytes_feature("ü"),
        "boxes": float_feature([0.5, 1.0]),
    }
    (sample,) = samples(write([example], ["cats/7.png"]))
    assert sample.keys() == {"__key__", "png", "cls", "json"}
    assert sample["__key__"] == "cats/7"
    assert sample["png"].shape == (2, 3, 3)
    assert sample["cls"] == 7
    assert sample["json"] == {
        "key": "cats/7.png",
        "files": {"png": "image/encoded", "cls": "image/class/label"},
        "features": {"name": "ü", "boxes": [0.5, 1.0]},
    }


def test_other_values_are_json_without_loss(write: Write) -> None:
    example = {
        "int": int64_feature(5),
        "ints": int64_feature([5, -(2**63)]),
        "float": float_feature(5.0),
        "tiny": float_feature([1e-45, 3.4028234e38]),
        "nan": float_feature(NANS),
        "text": bytes_feature(["5", ""]),
        "bytes": bytes_feature([b"\xff", b"ok"]),
        "none": float_feature([]),
        "unset": unset_feature(),
        "image/encoded": bytes_feature([PNG, PNG]),
        "image/class/label": int64_feature([1, 2]),
    }
    (sample,) = samples(write([example]))
    image = {"base64": b64encode(PNG).decode()}
    assert sample["json"] == {
        "key": None,
        "files": {},
        "features": {
            "int": 5,
            "ints": [5, -(2**63)],
            "float": 5.0,
            "tiny": [1.401298464324817e-45, 3.4028234663852886e38],
            "nan": {"float32": b64encode(NANS).decode()},
            "text": ["5", ""],
            "bytes": [{"base64": "/w=="}, "ok"],
            "none": {"kind": "float"},
            "unset": {"kind": "unset"},
            "image/encoded": [image, image],
            "image/class/label": [1, 2],
        },
    }
    assert isinstance(sample["json"]["features"]["float"], float)


@pytest.mark.parametrize(
    ("data", "suffix"),
    [
        (PNG, "png"),
        (b"\xff\xd8\xff\xe0 and so on", "jpg"),
        (GIF, "gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "webp"),
        (b"anything", "bin"),
        (b"", "bin"),
    ],
)
def test_the_suffix_is_that_of_the_format(write: Write, data: bytes, suffix: str) -> None:
    (sample,) = samples(write([{"image/encoded": bytes_feature(data)}]), decode=False)
    assert sample[suffix] == data
    assert json.loads(sample["json"])["files"] == {suffix: "image/encoded"}


def test_several_images_have_suffixes_of_their_own(write: Write) -> None:
    names = ["Left/a", "left/a", "left/a.b", "mask"]
    schema = "".join(
        f'feature {{ name: "{name}" type: BYTES image_domain {{}} }}\n' for name in names
    )
    example = {name: bytes_feature(PNG + bytes([at])) for at, name in enumerate(names)}
    (sample,) = samples(write([example], layout=made(schema)), decode=False)
    files = json.loads(sample["json"])["files"]
    assert files == {
        "left_a.png": "Left/a",
        "1_left_a.png": "left/a",
        "left_a_b.png": "left/a.b",
        "mask.png": "mask",
    }
    assert all(sample[suffix] == example[name].values[0] for suffix, name in files.items())


@pytest.mark.parametrize(
    ("declared", "images"),
    [
        ({"a": "shape {}", "list": "value_count { min: 0 }"}, ["a"]),
        (
            {"a": "value_count { min: 1 max: 1 }", "any": "", "two": "shape { dim { size: 2 } }"},
            ["a"],
        ),
        ({"any": "", "two": "shape { dim { size: 2 } }"}, ["any"]),
        ({"two": "shape { dim { size: 2 } }"}, []),
    ],
)
def test_lists_of_images_are_no_files(declared: dict[str, str], images: list[str]) -> None:
    schema = "".join(
        f'feature {{ name: "{name}" type: BYTES {shape} image_domain {{}} }}\n'
        for name, shape in declared.items()
    )
    assert made(schema).layout.images == tuple((name, "") for name in images)


KEYS = [
    "plain-key_1",
    "a.b",
    "a/b",
    "../etc/passwd",
    "ü ~\n%",
    "bytes\udcff",
    "a.b",
    "",
    "x" * 100,
    "x" * 101,
    "record_000000012",
    "record_000000013",
    "",
    "record_000000012",
]


def test_escaped_keys_are_names_and_each_sample_has_its_own(write: Write) -> None:
    examples = [{"sizes": int64_feature(number)} for number in range(len(KEYS))]
    found = samples(write(examples, KEYS))
    assert [each["json"]["features"]["sizes"] for each in found] == list(range(len(KEYS)))
    assert [each["json"]["key"] for each in found] == KEYS
    names = [each["__key__"] for each in found]
    assert names == [
        "plain-key_1",
        "a%2Eb",
        "a/b",
        "%2E%2E%2Fetc%2Fpasswd",
        "%C3%BC%20%7E%0A%25",
        "bytes%FF",
        "record_000000006",
        "record_000000007",
        "x" * 100,
        "record_000000009",
        "record_000000012",
        "record_000000013",
        "record_000000012_",
        "record_000000013_",
    ]
    for name, key in zip(names[:6], KEYS, strict=False):
        assert unquote_to_bytes(name) == key.encode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("cat/1.jpg", "cat/1"),
        ("cat/1.PNG", "cat/1"),
        ("v1.0/a+b=c@d,e", "v1.0/a+b=c@d,e"),
        ("a.b", "a%2Eb"),
        ("a.b.jpg", "a%2Eb%2Ejpg"),
        (".jpg", "%2Ejpg"),
        ("/a", "%2Fa"),
        ("a//b", "a%2F%2Fb"),
        ("a/../b", "a%2F%2E%2E%2Fb"),
        ("./a", "%2E%2Fa"),
        ("a/", "a%2F"),
        ("__x__/a", "__x__%2Fa"),
        ("ü", "%C3%BC"),
        ("a\n", "a%0A"),
        ("a%2Eb", "a%252Eb"),
    ],
)
def test_a_safe_key_is_the_name_of_its_sample(write: Write, key: str, name: str) -> None:
    (sample,) = samples(write([{}], [key]))
    assert sample["__key__"] == name
    assert sample["json"]["key"] == key


def test_keys_that_differ_by_their_suffix_have_different_names(write: Write) -> None:
    keys = ["a/1.jpg", "a/1.png", "a/1"]
    found = samples(write([{}, {}, {}], keys))
    assert [each["__key__"] for each in found] == ["a/1", "a%2F1%2Epng", "a%2F1"]
    assert [each["json"]["key"] for each in found] == keys


def test_without_an_index_samples_are_numbered(write: Write) -> None:
    found = samples(write([{}, {}]))
    assert [each["__key__"] for each in found] == ["record_000000000", "record_000000001"]
    assert [each["json"]["key"] for each in found] == [None, None]


LABELS = """
feature { name: "a" type: INT presence { min_fraction: 1 } shape {} }
feature { name: "b" type: INT presence { min_fraction: 1 } value_count { min: 1 max: 1 } }
feature { name: "list" type: INT presence { min_fraction: 1 } }
feature { name: "optional" type: INT shape {} }
feature { name: "text" type: BYTES presence { min_fraction: 1 } shape {} }
"""


@pytest.mark.parametrize(
    ("schema", "labels", "label"),
    [
        (LABELS, {}, None),
        (LABELS, {"b": ["x", "y"]}, "b"),
        (LABELS, {"a": ["x"], "b": ["x"]}, None),
        (LABELS, {"text": ["x"], "gone": ["x"]}, None),
        (LABELS, {"list": ["x"], "optional": ["x"]}, None),
        (LABELS, {"list": ["x"], "a": ["x"]}, "a"),
        (SCHEMA, {}, "image/class/label"),
        (SCHEMA, {"sizes": ["x", "y"]}, "image/class/label"),
    ],
)
def test_the_label_is_the_feature_with_class_names(
    schema: str, labels: dict[str, list[str]], label: str | None
) -> None:
    assert made(schema, **labels).layout.label == label
