"""One dataset as COCO, YOLO and VOC is one dataset: equal images, boxes, labels, polygons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from image_support import jpeg, png
from object_sources_support import OBJECT_SOURCES, write_objects

import tfrecreg
from tfrecreg.core.build.sources.interface import Skipped
from tfrecreg.testing import examples

Pictures = dict[str, dict[str, list[tuple[Any, ...]]]]
"""By split and image: class, box and polygon of each object."""


def read_coco(file: Path, images: Path) -> tuple[list[str], dict[str, Any], dict[str, bytes]]:
    """The classes, the objects and the bytes of the images of a file of instances."""
    data: dict[str, Any] = json.loads(file.read_text("utf-8"))
    categories = sorted(data["categories"], key=lambda each: each["id"])
    names = {each["id"]: each["name"] for each in categories}
    files = {each["id"]: each["file_name"] for each in data["images"]}
    objects: dict[str, list[Any]] = {name: [] for name in files.values()}
    for each in data["annotations"]:
        objects[files[each["image_id"]]].append((names[each["category_id"]], each["bbox"]))
    found = {name: (images / name).read_bytes() for name in objects}
    return list(names.values()), objects, found


CLASSES = ["red fox", "Ameise", "zebra"]
ROUNDED = 2e-6
"""Two sides of a box in YOLO's six digits."""
OWN = {
    *("image/source_id", "image/object/is_crowd", "image/object/area"),
    *(f"image/object/{name}" for name in ("difficult", "truncated", "occluded", "view")),
}
"""Features that only one format knows, or that are not the same in all."""


def pictures() -> tuple[Pictures, dict[str, bytes]]:
    """Two splits of generated images, also without objects, and the bytes of the images."""
    found: Pictures = {"train": {}, "val": {}}
    files = {}
    for number in range(9):
        name = f"{number:03}.{'png' if number % 2 else 'jpg'}"
        files[name] = (png if number % 2 else jpeg)(60 + 7 * number, 90 - 3 * number)
        objects = []
        for each in range(number % 4):
            left, top = 3 * each + number, 5 * each
            box = (left, top, 11 + each, 20 + number)
            right, bottom = left + box[2], top + box[3]
            polygon = [left, top, right, top + each + 1, right, bottom, left + 5, bottom]
            polygon += [left, bottom - 2.5]
            objects.append((CLASSES[(number + each) % 3], box, polygon))
        found["val" if number > 5 else "train"][name] = objects
    return found, files


def values(source: str, raw: Path, *options: str) -> dict[tuple[str, str], dict[str, Any]]:
    """The features of each image, by split and hash."""
    found = {}
    for item, made in examples(source, str(raw), options):
        assert not isinstance(made, Skipped), made
        features = {name: feature.values for name, feature in made.items()}
        found[item.split, features["image/key/sha256"][0].decode()] = features
    return found


def require_equal(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert ours.keys() - OWN == theirs.keys() - OWN
    for name in ours.keys() - OWN:
        if isinstance(next(iter(ours[name]), None), float):
            assert ours[name] == pytest.approx(theirs[name], rel=0, abs=ROUNDED), name
        else:
            assert tuple(ours[name]) == tuple(theirs[name]), name


def require_one_dataset(
    folder: Path, classes: list[str], splits: Pictures, files: dict[str, bytes]
) -> int:
    """Write it in the three formats and compare what the sources make; the number of boxes."""
    for source in OBJECT_SOURCES:
        for split, images in splits.items():
            write_objects(source, folder / source, split, images, files=files, classes=classes)
    names = f"classes={','.join(classes)}"
    coco = values("coco", folder / "coco", "categories=contiguous")
    yolo = values("yolo", folder / "yolo")
    voc = values("voc", folder / "voc", names)
    assert coco.keys() == yolo.keys() == voc.keys()
    boxes = 0
    for key, ours in coco.items():
        for theirs in (yolo[key], voc[key]):
            require_equal(ours, theirs)
            areas = ours["image/object/area"]
            assert theirs["image/object/area"] == pytest.approx(areas, rel=2e-3)
            assert set(theirs["image/object/is_crowd"]) <= {0}
        boxes += len(ours["image/object/class/label"])
    return boxes


def test_generated_images_are_equal_in_three_formats(tmp_path: Path) -> None:
    assert require_one_dataset(tmp_path, CLASSES, *pictures()) == 12


def test_polygons_are_equal_in_coco_and_yolo(tmp_path: Path) -> None:
    splits, files = pictures()
    for split, images in splits.items():
        for source in ("coco", "yolo"):
            raw = tmp_path / source
            write_objects(source, raw, split, images, files=files, classes=CLASSES, polygons=True)
    coco = values("coco", tmp_path / "coco", "categories=contiguous", "masks=polygons")
    yolo = values("yolo", tmp_path / "yolo")
    assert any(each["image/object/polygon/x"] for each in coco.values())
    for key, ours in coco.items():
        require_equal(ours, yolo[key])


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("annotations", "images"),
    [
        ("dali/instances.json", "dali/images"),
        (
            "retinanet/coco/annotations/instances_train2017.json",
            "retinanet/coco/images/train2017",
        ),
        ("retinanet/coco/annotations/instances_val2017.json", "retinanet/coco/images/val2017"),
    ],
)
def test_published_images_are_equal_in_three_formats(
    realdata: Path, tmp_path: Path, annotations: str, images: str
) -> None:
    folder = realdata / "coco"
    classes, found, files = read_coco(folder / annotations, folder / images)
    drawn = sum(map(len, found.values()))
    assert drawn > 0
    assert require_one_dataset(tmp_path, classes, {"train": found}, files) == drawn


@pytest.mark.realdata
def test_published_xml_gives_the_boxes_that_another_tool_wrote(realdata: Path) -> None:
    """Images of raccoons as their author drew them with LabelImg, and the TFRecord he made."""
    folder = realdata / "tfrecord/raccoon"
    found = {}
    for item, made in examples("voc", folder, ["coordinates=edges"]):
        assert not isinstance(made, Skipped)
        assert set(made["image/object/class/text"].values) == {b"raccoon"}
        found[item.key.rpartition("/")[2].encode()] = made
    assert len(found) == 200
    sides = [f"image/object/bbox/{side}" for side in ("xmin", "ymin", "xmax", "ymax")]
    theirs = tfrecreg.data_source(folder / "data/test.record")
    boxes = 0
    for other in theirs:
        name, encoded = (np.ravel(other[f"image/{key}"])[0] for key in ("filename", "encoded"))
        ours = found[name]
        assert ours["image/encoded"].values == (encoded,)
        for side in sides:
            assert sorted(ours[side].values) == pytest.approx(sorted(np.ravel(other[side])))
        boxes += len(ours[sides[0]].values)
    assert len(theirs) == 40 < boxes


@pytest.mark.parametrize("source", ["yolo", "voc"])
def test_a_build_is_clean_and_compares_with_its_raw_data(tmp_path: Path, source: str) -> None:
    splits, files = pictures()
    raw = tmp_path / "raw"
    for split, images in splits.items():
        write_objects(source, raw, split, images, files=files, classes=CLASSES)
    dataset = tfrecreg.init(tmp_path / "registry", with_dvc=False)["d"]
    built = dataset.build(source=source, raw=raw, records_per_shard=2, progress=False)
    assert built.manifest.labels["image/object/class/label"] == (
        CLASSES if source == "yolo" else sorted(CLASSES)
    )
    report = built.check(raw=raw, skip=("duplicates", "annotations"))
    assert [each.code for each in report.findings] == []
