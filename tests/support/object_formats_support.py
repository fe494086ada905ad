"""One dataset of objects in images as COCO, as YOLO and as VOC."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from tfrecreg.core.images.read import read_header


class Drawn(NamedTuple):
    """An object."""

    category: int
    """Number of its class, from 0."""
    box: tuple[float, float, float, float]
    """Left, top, width and height in pixels."""
    polygon: list[float]
    """x and y in turn, in pixels; empty without one."""


class Picture(NamedTuple):
    """An image file with its objects."""

    path: Path
    objects: list[Drawn]

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        header = read_header(self.path.read_bytes())
        return header.width, header.height


def read_coco(file: Path, images: Path) -> tuple[list[str], list[Picture]]:
    """The classes and the images of a file of instances: boxes, and polygons of one part."""
    data: dict[str, Any] = json.loads(file.read_text("utf-8"))
    categories = sorted(data["categories"], key=lambda each: each["id"])
    numbers = {each["id"]: number for number, each in enumerate(categories)}
    objects: dict[int, list[Drawn]] = {each["id"]: [] for each in data["images"]}
    for each in data["annotations"]:
        found = each.get("segmentation")
        polygon = found[0] if isinstance(found, list) and len(found) == 1 else []
        drawn = Drawn(numbers[each["category_id"]], tuple(each["bbox"]), polygon)
        objects[each["image_id"]].append(drawn)
    pictures = [Picture(images / each["file_name"], objects[each["id"]]) for each in data["images"]]
    return [each["name"] for each in categories], pictures


def write_coco(folder: Path, classes: list[str], splits: dict[str, list[Picture]]) -> None:
    """`annotations/instances_SPLIT.json` and `SPLIT/`."""
    categories = [{"id": number, "name": name} for number, name in enumerate(classes, start=1)]
    for split, pictures in splits.items():
        images, annotations = [], []
        for number, picture in enumerate(pictures, start=1):
            _copy(picture, folder / split)
            width, height = picture.size
            name = picture.path.name
            images.append({"id": number, "file_name": name, "width": width, "height": height})
            for each in picture.objects:
                found = {"id": len(annotations) + 1, "image_id": number, "iscrowd": 0}
                segmentation = [each.polygon] if each.polygon else []
                found |= {"category_id": each.category + 1, "bbox": each.box}
                annotations.append({**found, "segmentation": segmentation})
        data = {"images": images, "annotations": annotations, "categories": categories}
        file = folder / f"annotations/instances_{split}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(data), "utf-8")


def write_yolo(
    folder: Path, classes: list[str], splits: dict[str, list[Picture]], *, polygons: bool = False
) -> None:
    """`data.yaml`, `images/SPLIT/` and `labels/SPLIT/`, with six digits as YOLO's tools write."""
    for split, pictures in splits.items():
        labels = folder / "labels" / split
        labels.mkdir(parents=True, exist_ok=True)
        for picture in pictures:
            _copy(picture, folder / "images" / split)
            width, height = picture.size
            rows = []
            for each in picture.objects:
                x, y, wide, high = each.box
                if polygons:
                    pairs = zip(each.polygon[::2], each.polygon[1::2], strict=True)
                    numbers = [side for x, y in pairs for side in (x / width, y / height)]
                else:
                    numbers = [(x + wide / 2) / width, (y + high / 2) / height]
                    numbers += [wide / width, high / height]
                rows.append(" ".join([str(each.category), *(f"{value:.6f}" for value in numbers)]))
            (labels / f"{picture.path.stem}.txt").write_text("".join(f"{row}\n" for row in rows))
    names = "".join(f"  {number}: {json.dumps(name)}\n" for number, name in enumerate(classes))
    lines = "".join(f"{split}: images/{split}\n" for split in splits)
    (folder / "data.yaml").write_text(f"path: .\n{lines}names:\n{names}", "utf-8")


def write_voc(folder: Path, classes: list[str], splits: dict[str, list[Picture]]) -> None:
    """`Annotations/`, `JPEGImages/` and `ImageSets/Main/SPLIT.txt`, pixels counted from 1."""
    for name in ("Annotations", "ImageSets/Main"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for split, pictures in splits.items():
        for picture in pictures:
            _copy(picture, folder / "JPEGImages")
            width, height = picture.size
            objects = ""
            for each in picture.objects:
                x, y, wide, high = each.box
                sides = {"xmin": x + 1, "ymin": y + 1, "xmax": x + wide, "ymax": y + high}
                box = "".join(f"<{name}>{value!r}</{name}>" for name, value in sides.items())
                name = escape(classes[each.category])
                objects += f"<object><name>{name}</name><bndbox>{box}</bndbox></object>\n"
            text = (
                f"<annotation><filename>{escape(picture.path.name)}</filename><size><width>{width}"
                f"</width><height>{height}</height><depth>3</depth></size>\n{objects}</annotation>"
            )
            (folder / f"Annotations/{picture.path.stem}.xml").write_text(text, "utf-8")
        names = "".join(f"{picture.path.stem}\n" for picture in pictures)
        (folder / f"ImageSets/Main/{split}.txt").write_text(names, "utf-8")


def _copy(picture: Picture, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(picture.path, folder / picture.path.name)
