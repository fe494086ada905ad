"""Folders of COCO's form, good and bad, made on the spot."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from image_support import png
from raw_source_support import RawObjects

from tfrecreg_coco.source import CocoSource

BOX = [10.0, 20.0, 30.0, 40.0]
IMAGE = {
    "image/encoded",
    "image/format",
    "image/height",
    "image/width",
    "image/filename",
    "image/source_id",
    "image/key/sha256",
}
LISTS = {
    "image/object/bbox/xmin",
    "image/object/bbox/xmax",
    "image/object/bbox/ymin",
    "image/object/bbox/ymax",
    "image/object/class/label",
    "image/object/class/text",
    "image/object/is_crowd",
    "image/object/area",
}


class Raw(RawObjects):
    """A raw folder, and what the source makes of it."""

    kind = CocoSource

    box = BOX
    of_image = frozenset(IMAGE)
    of_objects = frozenset(LISTS)

    def put(self, name: str, data: bytes | str | Mapping[str, Any] | list[Any]) -> Path:
        return super().put(name, data if isinstance(data, bytes | str) else json.dumps(data))

    def image_file(self, name: str, width: int = 100, height: int = 80) -> Path:
        return self.put(name, png(width, height, colour=0, pixels=name.encode()))

    @staticmethod
    def image(number: int, name: str | None = None, **more: Any) -> dict[str, Any]:
        """An entry of `images` for an image of 100 × 80 pixels."""
        name = f"{number}.png" if name is None else name
        return {"id": number, "file_name": name, "width": 100, "height": 80, **more}

    @staticmethod
    def annotation(number: int, image: int = 1, **more: Any) -> dict[str, Any]:
        found = {"id": number, "image_id": image, "category_id": 1, "bbox": BOX, "area": 900.5}
        return {**found, "iscrowd": 0, **more}

    @staticmethod
    def dataset(images: list[Any], annotations: list[Any] | None = None, **more: Any) -> Any:
        categories = [{"id": 1, "name": "cat"}, {"id": 3, "name": "dog"}]
        found = {"images": images, "annotations": annotations or [], "categories": categories}
        return {**found, **more}

    def one(self, *annotations: Any, **more: Any) -> None:
        """`train`: one image of 100 × 80 pixels with these annotations."""
        self.image_file("train2017/1.png")
        data = self.dataset([self.image(1)], list(annotations), **more)
        self.put("annotations/instances_train2017.json", data)

    def several(self) -> None:
        """Instances 1 to 3; keypoints of 2, 3 (another category) and 9; captions; images 1, 2."""
        images = [self.image(1), self.image(2)]
        for number in (1, 2):
            self.image_file(f"train2017/{number}.png")
        objects = [self.annotation(id, area=id) for id in (1, 2, 3)]
        self.put("annotations/instances_train2017.json", self.dataset(images, objects))
        people = [{"id": 1, "name": "cat", "keypoints": ["nose", "tail"]}, {"id": 3, "name": "dog"}]
        points = [
            self.annotation(2, area=2, keypoints=[50, 40, 2, 0, 0, 0]),
            self.annotation(3, area=33, category_id=3, keypoints=[10, 8, 1, 20, 16, 2]),
            self.annotation(9, area=9, keypoints=[100, 80, 1, 0, 0, 0]),
        ]
        data = self.dataset(images, points, categories=people)
        self.put("annotations/person_keypoints_train2017.json", data)
        said = [{"id": id, "image_id": 1, "caption": text} for id, text in ((5, "a\nb"), (4, "é"))]
        del data["categories"]
        self.put("annotations/captions_train2017.json", {"images": images, "annotations": said})


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    """An empty raw folder."""
    return Raw(tmp_path / "raw")
