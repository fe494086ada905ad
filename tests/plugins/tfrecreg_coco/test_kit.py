"""The kit's tests of a source."""

from __future__ import annotations

from pathlib import Path

from object_sources_support import write_objects

from tfrecreg.testing import SourceTests

CORNERS = [1, 2, 11, 2, 11, 22, 1, 22]


class TestCoco(SourceTests):
    source = "coco"

    def write_raw(self, folder: Path) -> None:
        for split, count in (("train2017", 4), ("val2017", 2)):
            objects = [(("cat", "dog")[number % 2], (1, 2, 10, 20), CORNERS) for number in range(3)]
            images = {f"{number:012}.png": objects[:number] for number in range(count)}
            write_objects("coco", folder, split, images, classes=("cat", "dog"))
