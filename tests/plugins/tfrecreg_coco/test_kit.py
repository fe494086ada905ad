"""The kit's tests of a source."""

from __future__ import annotations

import json
from pathlib import Path

from image_support import png

from tfrecreg.testing import SourceTests


class TestCoco(SourceTests):
    source = "coco"

    def write_raw(self, folder: Path) -> None:
        (folder / "annotations").mkdir()
        for split, count in (("train2017", 4), ("val2017", 2)):
            (folder / split).mkdir()
            images = []
            for number in range(count):
                name = f"{number:012}.png"
                (folder / split / name).write_bytes(png(40 + number, 30))
                images.append({"id": number, "file_name": name, "width": 40 + number, "height": 30})
            corners = [1, 2, 11, 2, 11, 22, 1, 22]
            objects = [
                {
                    "id": number + 1,
                    "image_id": number,
                    "category_id": 3 + number % 2,
                    "bbox": [1, 2, 10, 20],
                    "area": 200,
                    "segmentation": [corners],
                    "iscrowd": 0,
                }
                for number in range(count - 1)
            ]
            categories = [{"id": 3, "name": "cat"}, {"id": 4, "name": "dog"}]
            document = {"images": images, "annotations": objects, "categories": categories}
            path = folder / f"annotations/instances_{split}.json"
            path.write_text(json.dumps(document), "utf-8")
