"""One set of objects in images, written as each source of them reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from image_support import png
from registry_support import write

from tfrecreg.core.images.read import read_header

Objects = Mapping[str, Sequence[tuple[Any, ...]]]
"""By the name of an image: class and box (left, top, width, height in pixels) of each object, and
maybe its polygon (x and y in turn).
"""
Sizes = Mapping[str, tuple[int, int]]

OBJECT_SOURCES = ("coco", "yolo", "voc")


def write_objects(
    source: str,
    raw: Path,
    split: str,
    images: Objects,
    *,
    files: Mapping[str, bytes] | None = None,
    size: tuple[int, int] | None = None,
    classes: Sequence[str] = (),
    polygons: bool = False,
) -> None:
    """Raw data of a source, with these `files` or images of 100 × 80 pixels, whose `size` may be
    stated as it is not. VOC does not state zeros; YOLO has boxes or `polygons`.
    """
    folder = raw / (f"images/{split}" if source == "yolo" else split)
    sizes = {}
    for number, name in enumerate(images):
        data = files[name] if files else png(100, 80, seed=number)
        write(folder / name, data)
        header = read_header(data)
        sizes[name] = size or (header.width, header.height)
    found = {each[0] for objects in images.values() for each in objects}
    names = list(classes) or sorted(found)
    if source == "coco":
        _coco(raw, split, images, sizes, names)
    elif source == "yolo":
        _yolo(raw, split, images, sizes, names, polygons)
    else:
        _voc(folder, images, sizes)


def _coco(raw: Path, split: str, images: Objects, sizes: Sizes, names: Sequence[str]) -> None:
    found, annotations = [], []
    for number, (image, objects) in enumerate(images.items()):
        width, height = sizes[image]
        found.append({"id": number, "file_name": image, "width": width, "height": height})
        for at, (name, box, *polygon) in enumerate(objects):
            one = {"id": 100 * number + at, "image_id": number, "bbox": box}
            one |= {"category_id": names.index(name) + 1, "segmentation": polygon}
            annotations.append(one)
    categories = [{"id": n, "name": name} for n, name in enumerate(names, start=1)]
    data = {"images": found, "annotations": annotations, "categories": categories}
    write(raw / f"annotations/instances_{split}.json", json.dumps(data))


def _yolo(
    raw: Path, split: str, images: Objects, sizes: Sizes, names: Sequence[str], polygons: bool
) -> None:
    """With six digits, as its tools write."""
    for image, objects in images.items():
        rows = ""
        for name, (x, y, wide, high), *polygon in objects:
            numbers = polygon[0] if polygons else (x + wide / 2, y + high / 2, wide, high)
            shares = (value / sizes[image][n % 2] for n, value in enumerate(numbers))
            rows += " ".join([str(names.index(name)), *(f"{each:.6f}" for each in shares)]) + "\n"
        write(raw / f"labels/{split}/{Path(image).stem}.txt", rows)
    (raw / "data.yaml").write_text(f"names: [{', '.join(names)}]\n")


def _voc(folder: Path, images: Objects, sizes: Sizes) -> None:
    """With pixels counted from 1."""
    for image, objects in images.items():
        width, height = sizes[image]
        text = f"<size><width>{width}</width><height>{height}</height></size>"
        for name, (x, y, wide, high), *_ in objects:
            sides = {"xmin": x + 1, "ymin": y + 1, "xmax": x + wide, "ymax": y + high}
            box = "".join(f"<{side}>{value!r}</{side}>" for side, value in sides.items())
            text += f"<object><name>{name}</name><bndbox>{box}</bndbox></object>"
        (folder / f"{Path(image).stem}.xml").write_text(f"<annotation>{text}</annotation>")
