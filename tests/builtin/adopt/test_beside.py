"""Label maps and schemas that TensorFlow's object detection and TFX leave beside shards; pixels."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from check_support import framed
from foreign_support import put

import tfrecreg
from tfrecreg.builtin.adopt.request import schema_beside
from tfrecreg.cli.main import main
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.registry.find import bare_files
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import RefusedError, UsageError

MAP = 'item { id: 1 name: "cat" }\nitem { id: 2 name: "dog" }\n'
OBJECTS = "image/object/class/label"


def boxes(folder: Path, *splits: str, feature: str = OBJECTS) -> Path:
    for split in splits:
        put(folder / f"{split}.record", encode({feature: int64_feature([1, 2])}))
    return folder


@pytest.mark.parametrize(
    ("name", "above"), [("label_map.pbtxt", True), ("pets_label_map.pbtxt", False)]
)
def test_a_label_map_beside_the_shards_or_above_is_taken(
    adopter, tmp_path: Path, name: str, above: bool
) -> None:
    folder = tmp_path / "det"
    for split in ("train", "val"):
        boxes(folder / split, split)
    for place in (folder,) if above else (folder / "train", folder / "val"):
        (place / name).write_text(MAP)
    notes = adopter.adopt(folder).notes
    assert adopter.manifest().labels == {OBJECTS: ["", "cat", "dog"]}
    assert len(notes) == 1
    assert notes[0].startswith(f"the class names of `{OBJECTS}` are from `/")
    assert notes[0].endswith(f"/{name}`")


def test_label_maps_that_disagree_are_refused(adopter, tmp_path: Path) -> None:
    folder = boxes(tmp_path / "det", "train")
    (folder / "a_label_map.pbtxt").write_text(MAP)
    (folder / "b_label_map.pbtxt").write_text(MAP.replace("dog", "cow"))
    with pytest.raises(UsageError, match=f"give the classes of `{OBJECTS}` different names"):
        adopter.adopt(folder)
    adopter.adopt(folder, labels=((OBJECTS, str(folder / "a_label_map.pbtxt")),))
    assert adopter.manifest().labels == {OBJECTS: ["", "cat", "dog"]}


def tfx(folder: Path, schema: str) -> Path:
    """Examples of TFX: a folder a split, gzip."""
    for split in ("train", "eval"):
        path = folder / f"Split-{split}/data_tfrecord-00000-of-00001.gz"
        path.parent.mkdir(parents=True)
        path.write_bytes(gzip.compress(framed(encode({"age": int64_feature(3)})), mtime=0))
    (folder / "schema.pbtxt").write_text(schema)
    return folder


def test_the_schema_of_tfx_is_taken(adopter, tmp_path: Path) -> None:
    text = 'feature { name: "age" type: INT int_domain { min: 0 max: 9 } }\n'
    folder = tfx(tmp_path / "tfx", text)
    (note,) = adopter.adopt(folder).notes
    assert note == f"the schema was taken from `{folder}/schema.pbtxt` next to the files"
    assert (adopter.root / "schemas/pets.pbtxt").read_text() == text
    assert {split.name for split in adopter.manifest().splits} == {"train", "eval"}
    assert adopter.manifest().compression == "gzip"


def test_the_folder_above_the_shards_may_be_the_root(tmp_path: Path) -> None:
    (shard,) = bare_files([str(boxes(tmp_path / "data", "train"))]).shards
    shard = replace(shard, storage=LocalStorage(tmp_path), path="data/train.record")
    assert schema_beside([shard]) is None
    (tmp_path / "schema.pbtxt").write_text("")
    assert schema_beside([shard]) == "/schema.pbtxt"


def test_records_are_held_against_the_schema_of_tfx(adopter, tmp_path: Path) -> None:
    folder = tfx(tmp_path / "tfx", 'feature { name: "age" type: FLOAT }\n')
    with pytest.raises(RefusedError) as refused:
        adopter.adopt(folder)
    assert [each.code for each in refused.value.findings] == ["SCH003"] * 2


@pytest.mark.realdata
def test_label_maps_that_others_published_are_taken(adopter, realdata: Path) -> None:
    folder = realdata / "tfrecord/datumaro/tf_detection_api_dataset"
    adopter.adopt(folder)
    assert adopter.manifest().labels[OBJECTS] == ["", *(f"label_{each}" for each in range(10))]
    adopter.adopt(realdata / "tfrecord/datumaro/roboflow_dataset", name="robo")
    assert adopter.manifest("robo").labels[OBJECTS] == ["", "label_0", "label_1"]


PIXELS = (5, 4, 3)


def picture(number: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return ((np.arange(60) * 4 + number) % 256).astype(np.uint8).reshape(PIXELS)


@pytest.fixture
def pixels(tmp_path: Path) -> Path:
    """Images as bytes and as numbers."""
    payloads = [
        encode(
            {
                "raw": bytes_feature(picture(number).tobytes()),
                "numbers": float_feature((picture(number).ravel() / 255).tolist()),
                "label": int64_feature(number % 2),
            }
        )
        for number in range(4)
    ]
    put(tmp_path / "pix/train-00000-of-00001.tfrecord", *payloads)
    return tmp_path / "pix"


DECLARED = (("raw", PIXELS), ("numbers", PIXELS))


def test_pixels_are_declared_in_the_schema(adopter, pixels: Path) -> None:
    adopter.adopt(pixels, pixels=DECLARED)
    text = (adopter.root / "schemas/pets.pbtxt").read_text()
    schema = parse_schema(text, "pets")
    assert schema.pixels() == {"numbers": PIXELS, "raw": PIXELS}
    assert schema.byte_pixels() == {"raw": PIXELS}
    shapes = {each.name: each.shape for each in schema.features}
    assert shapes == {"raw": (), "numbers": PIXELS, "label": ()}
    assert schema.images() == ()
    assert adopter.check()["status"] == "pass"


def test_declared_pixels_are_decoded_and_shown(adopter, pixels: Path) -> None:
    adopter.adopt(pixels, pixels=DECLARED)
    source = tfrecreg.data_source("pets", decode=True, registry=adopter.root)
    for number in range(4):
        assert np.array_equal(source[number]["raw"], picture(number))
        assert source[number]["numbers"].shape == PIXELS
    (record,) = tfrecreg.head("pets", 1, registry=adopter.root)
    shown = {each.name: each.shown for each in record.features or ()}
    assert shown["raw"] == "pixels, 5x4x3, 60 B"
    assert shown["numbers"] == "pixels, 5x4x3, as 60 numbers"
    assert [each.feature for each in record.images] == ["numbers", "raw"]
    page = tfrecreg.report("pets", registry=adopter.root)
    assert page.html.count("data:image/png;base64,") >= 4


@pytest.mark.parametrize(
    ("feature", "message"),
    [
        ("raw", "has 60 bytes in `raw`, expected 5 x 5 x 3 = 75"),
        ("numbers", "has 60 values in `numbers`, expected 5 x 5 x 3 = 75"),
    ],
)
def test_pixels_of_another_size_are_refused(
    adopter, pixels: Path, feature: str, message: str
) -> None:
    with pytest.raises(UsageError) as refused:
        adopter.adopt(pixels, pixels=((feature, (5, 5, 3)),))
    assert refused.value.message.endswith(message)


def test_pixels_that_the_schema_cannot_take_are_refused(adopter, pixels: Path) -> None:
    with pytest.raises(UsageError, match="no record has a feature `rwa`"):
        adopter.adopt(pixels, pixels=(("rwa", PIXELS),))
    adopter.adopt(pixels)
    with pytest.raises(UsageError, match=r"`schemas/pets\.pbtxt` does not declare `raw` as pixels"):
        adopter.adopt(pixels, pixels=(("raw", PIXELS),))


def test_the_option_declares_pixels(adopter, pixels: Path) -> None:
    option = "image=raw:5x4x3"
    assert main(["-C", str(adopter.root), "adopt", "pets", str(pixels), "--option", option]) == 0
    assert 'tag: "pixels:5x4x3"' in (adopter.root / "schemas/pets.pbtxt").read_text()
