"""What the classes of adopted records are called, and what a release makes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from foreign_support import put

from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.values.errors import UsageError

CATS = "cat\ndog\ncow\n"


@pytest.mark.parametrize("name", ["label.labels.txt", "labels.json"])
def test_label_files_beside_the_shards_are_kept(adopter, name: str) -> None:
    text = CATS if name.endswith(".txt") else '{"label": ["cat", "dog", "cow"], "other": ["x"]}'
    (adopter.foreign / name).write_text(text)
    result = adopter.adopt()
    assert adopter.manifest().labels == {"label": ["cat", "dog", "cow"]}
    assert json.loads((adopter.data() / "labels.json").read_bytes()) == adopter.manifest().labels
    assert result.to_json()["labels"] == {"label": 3}
    assert adopter.passes()


@pytest.mark.parametrize(
    "text",
    ["[1]", "{", '{"label": [1]}', '{"label": "cat"}', '{"label": ["\xe9"]}', '{"a":' * 100_000],
)
def test_a_label_file_of_somebody_else_is_left_alone(adopter, text: str) -> None:
    (adopter.foreign / "labels.json").write_text(text, encoding="latin-1")
    adopter.adopt()
    assert adopter.manifest().labels == {}


def test_a_label_map_can_be_named(adopter, tmp_path: Path) -> None:
    (adopter.foreign / "label.labels.txt").write_text(CATS)
    items = ('item { id: 1 name: "dog" }', "item { id: 0 name: 'cat' }", "item { id: 3 name: 'x' }")
    path = tmp_path / "map.pbtxt"
    path.write_text("\n".join(items))
    adopter.adopt(labels=(("label", str(path)),))
    assert adopter.manifest().labels == {"label": ["cat", "dog", "", "x"]}


def test_in_place_the_names_stay(adopter, tmp_path: Path) -> None:
    (tmp_path / "names").write_text(CATS)
    adopter.adopt(labels=(("label", str(tmp_path / "names")),))
    before = adopter.manifest()
    assert adopter.adopt(how="in-place").manifest.labels == {"label": ["cat", "dog", "cow"]}
    (adopter.data() / "label.labels.txt").write_text("ape\ndog\ncow\n")
    assert adopter.adopt(how="in-place").manifest.labels == {"label": ["ape", "dog", "cow"]}
    assert adopter.manifest().content == before.content


def test_folders_that_disagree_are_refused(adopter) -> None:
    for number, folder in enumerate(("train", "val")):
        (adopter.foreign / folder).mkdir()
        for path in list(adopter.foreign.glob(f"{folder}-*")):
            path.rename(path.parent / folder / path.name)
        (adopter.foreign / folder / "label.labels.txt").write_text(f"cat\n{number}\n")
    with pytest.raises(UsageError, match="give the classes of `label` different names"):
        adopter.adopt()
    assert not adopter.data().exists()


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        ((b"cat", b"dog"), {"image/class/label": ["cat", "dog"]}),
        ((b"cat", b"cat"), {}),
        ((b"cat", b""), {}),
    ],
)
def test_names_in_the_records_are_class_names_if_each_number_has_one(
    adopter, tmp_path: Path, texts: tuple[bytes, ...], names: dict[str, list[str]]
) -> None:
    folder = tmp_path / "slim"
    records = [classified(number % 2, texts[number % 2]) for number in range(4)]
    put(folder / "train.tfrecord", *records)
    adopter.adopt(folder)
    assert adopter.manifest().labels == names


def test_records_that_the_label_map_does_not_fit_are_told(adopter, tmp_path: Path) -> None:
    folder = tmp_path / "slim"
    put(folder / "train.tfrecord", *(classified(each, b"dog") for each in (0, 1)))
    (folder / "label_map.pbtxt").write_text('item { id: 1 name: "cat" }')
    found = {(each.code, each.count) for each in adopter.adopt(folder).findings}
    assert found == {("ANN004", 1), ("ANN007", 1)}
    assert adopter.manifest().labels == {"image/class/label": ["", "cat"]}


def classified(label: int, text: bytes) -> bytes:
    features = {"image/class/label": int64_feature(label), "image/class/text": bytes_feature(text)}
    return encode(features)
