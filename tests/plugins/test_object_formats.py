"""One dataset as COCO, YOLO and VOC is one dataset: equal images, boxes, labels, polygons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from image_support import jpeg, png
from object_formats_support import Drawn, Picture, read_coco, write_coco, write_voc, write_yolo
from tests_support import tree

import tfrecreg
from tfrecreg.builtin.python_data.build import build
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.build.sources.interface import Skipped
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.run import check
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import Registry, open_registry
from tfrecreg.core.values.shards import ShardPolicy
from tfrecreg.testing import examples

CLASSES = ["red fox", "Ameise", "zebra"]
ROUNDED = 2e-6
"""Two sides of a box in YOLO's six digits."""
OWN = {
    *("image/source_id", "image/object/is_crowd", "image/object/area"),
    *(f"image/object/{name}" for name in ("difficult", "truncated", "occluded", "view")),
}
"""Features that only one format knows, or that are not the same in all."""


def pictures(folder: Path) -> dict[str, list[Picture]]:
    """Two splits of generated images, also without objects."""
    folder.mkdir(parents=True)
    found: dict[str, list[Picture]] = {"train": [], "val": []}
    for number in range(9):
        width, height = 60 + 7 * number, 90 - 3 * number
        path = folder / f"{number:03}.{'png' if number % 2 else 'jpg'}"
        path.write_bytes((png if number % 2 else jpeg)(width, height))
        objects = []
        for each in range(number % 4):
            left, top = 3 * each + number, 5 * each
            box = (left, top, 11 + each, 20 + number)
            right, bottom = left + box[2], top + box[3]
            polygon = [left, top, right, top + each + 1, right, bottom, left + 5, bottom]
            polygon += [left, bottom - 2.5]
            objects.append(Drawn((number + each) % 3, box, polygon))
        found["val" if number > 5 else "train"].append(Picture(path, objects))
    return found


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


def require_one_dataset(folder: Path, classes: list[str], splits: dict[str, list[Picture]]) -> int:
    """Write it in the three formats and compare what the sources make; the number of boxes."""
    write_coco(folder / "coco", classes, splits)
    write_yolo(folder / "yolo", classes, splits)
    write_voc(folder / "voc", classes, splits)
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
    splits = pictures(tmp_path / "images")
    drawn = sum(len(each.objects) for split in splits.values() for each in split)
    assert require_one_dataset(tmp_path, CLASSES, splits) == drawn == 12


def test_polygons_are_equal_in_coco_and_yolo(tmp_path: Path) -> None:
    splits = pictures(tmp_path / "images")
    write_coco(tmp_path / "coco", CLASSES, splits)
    write_yolo(tmp_path / "yolo", CLASSES, splits, polygons=True)
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
    classes, found = read_coco(realdata / "coco" / annotations, realdata / "coco" / images)
    drawn = sum(len(each.objects) for each in found)
    assert drawn > 0
    half = max(1, len(found) // 2)
    splits = {"train": found[:half], **({"val": found[half:]} if len(found) > 1 else {})}
    assert require_one_dataset(tmp_path, classes, splits) == drawn


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


class TestBuilds:
    @pytest.fixture
    def registry(self, tmp_path: Path) -> Registry:
        init(tmp_path / "registry", with_dvc=False)
        return open_registry(tmp_path / "registry")

    @pytest.fixture
    def raw(self, tmp_path: Path) -> Path:
        splits = pictures(tmp_path / "images")
        write_yolo(tmp_path / "raw/yolo", CLASSES, splits)
        write_voc(tmp_path / "raw/voc", CLASSES, splits)
        return tmp_path / "raw"

    @staticmethod
    def request(source: str, raw: object, **more: Any) -> BuildRequest:
        policy = ShardPolicy(records_per_shard=2)
        return BuildRequest(name="d", source=source, raw=f"{raw}/{source}", policy=policy, **more)

    @pytest.mark.parametrize("source", ["yolo", "voc"])
    def test_a_build_is_clean_and_compares_with_its_raw_data(
        self, registry: Registry, raw: Path, source: str
    ) -> None:
        built = build(registry, self.request(source, raw))
        assert built.manifest.labels["image/object/class/label"] == (
            CLASSES if source == "yolo" else sorted(CLASSES)
        )
        options = CheckOptions(raw=f"{raw}/{source}", skip=("duplicates", "annotations"))
        (report,) = check(["d"], options=options, registry=registry)
        assert [each.code for each in report.findings] == []

    @pytest.mark.parametrize("source", ["yolo", "voc"])
    def test_raw_data_behind_a_url_give_the_same_files(
        self, registry: Registry, raw: Path, memory: Any, tmp_path: Path, source: str
    ) -> None:
        memory.put(str(raw), "/lake/raw", recursive=True)
        whole = build(registry, self.request(source, raw))
        files = tree(tmp_path / "registry/data/d")
        other = build(registry, self.request(source, "memory://lake/raw"))
        assert other.manifest == whole.manifest
        assert tree(tmp_path / "registry/data/d") == files
