"""Files of other programs: boxes that are polygons, paths of Windows, names, and URLs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from image_support import png

import tfrecreg
from tfrecreg.core.registry.init import init

POLYGON = [[10, 20, 40, 20, 40, 60, 10, 60]]
RLE = {"size": [80, 100], "counts": [820, *[40, 40] * 29, 40, 4820]}
"""The pixels of the polygon, column by column."""
SIDES = (0.1, 0.25, 0.4, 0.75)


def sides(raw: Any, **options: Any) -> list[tuple[float, ...]]:
    found = raw.values(**options)
    names = [f"image/object/bbox/{side}" for side in ("xmin", "ymin", "xmax", "ymax")]
    return [*zip(*(found[name] for name in names), strict=True)]


@pytest.mark.parametrize("shape", [POLYGON, RLE])
@pytest.mark.parametrize("box", [{}, {"bbox": None}, {"bbox": []}, {"bbox": [10, 20, 0, 5]}])
def test_the_box_around_the_mask_takes_the_place_of_one_that_is_none(
    raw: Any, shape: Any, box: Any
) -> None:
    annotation = raw.annotation(5, segmentation=shape)
    del annotation["bbox"]
    raw.one({**annotation, **box})
    assert sides(raw) == [pytest.approx(SIDES)]
    assert raw.codes() == {"SRC032": 1}


def test_an_option_about_wrong_boxes_comes_first(raw: Any) -> None:
    raw.one(raw.annotation(5, bbox=[90, 20, 30, 5], segmentation=POLYGON))
    assert sides(raw, bad_boxes="keep") == [pytest.approx((0.9, 0.25, 1.2, 0.3125))]
    assert raw.skipped(bad_boxes="skip-image").code == "SRC023"


@pytest.mark.parametrize("shape", [[[10, 20, 40, 20]], {"size": [80, 100], "counts": [8000]}, 7])
def test_what_is_no_mask_gives_no_box(raw: Any, shape: Any) -> None:
    raw.one(raw.annotation(5, bbox=None, segmentation=shape), raw.annotation(6))
    assert len(sides(raw)) == 1
    assert raw.codes() == {"SRC023": 1}


@pytest.mark.parametrize(
    "name", ["images\\{}.png", "..\\..\\up\\4\\{}.png", "C:\\up\\{}.png", "/data/up/{}.png"]
)
def test_paths_of_another_machine_are_files_with_the_same_end(raw: Any, name: str) -> None:
    for number in (1, 2):
        raw.image_file(f"images/{number}.png")
    images = [raw.image(number, name.format(number)) for number in (1, 2)]
    raw.put("result.json", raw.dataset(images, [raw.annotation(1), raw.annotation(2, image=2)]))
    assert raw.splits() == {"train": ["images/1.png", "images/2.png"]}
    assert raw.codes() == ({} if name.startswith("images") else {"SRC045": 2})


@pytest.mark.parametrize(
    ("file", "folder"),
    [
        ("annotations.json", "images"),
        ("labels.json", "data"),
        ("train/coco.json", "train"),
        ("_annotations.coco.json", ""),
        ("valid/_annotations.coco.json", "valid"),
    ],
)
def test_layouts_that_are_read_are_recognized(
    tmp_path: Path, raw: Any, file: str, folder: str
) -> None:
    raw.put(f"{folder}/1.png".lstrip("/"), png(100, 80))
    raw.put(file, raw.dataset([raw.image(1)], [raw.annotation(1)]))
    init(tmp_path / "reg", with_dvc=False)
    built = tfrecreg.open(tmp_path / "reg")["d"].build(raw=raw.path, progress=False)
    assert built.manifest.source.name == "coco"
