"""Folders of YOLO's form, good and bad, made on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from image_support import png
from raw_source_support import RawObjects

from tfrecreg_yolo.source import YoloSource


class Raw(RawObjects):
    """A raw folder, and what the source makes of it."""

    kind = YoloSource

    def images(self, *names: str, width: int = 100, height: int = 80) -> None:
        """Images of different bytes."""
        for name in names:
            self.put(name, png(width, height, seed=sum(name.encode())))

    def one(self, rows: str | bytes, *, yaml: str = "") -> None:
        """`train`: one image of 100 × 80 pixels with these rows; the classes cat and dog."""
        self.put("data.yaml", f"train: images/train\nnames: [cat, dog]\n{yaml}")
        self.images("images/train/a.png")
        self.put("labels/train/a.txt", rows)

    def two_splits(self) -> None:
        """`images/{train,val}` with two images and one, without a file that describes them."""
        self.images("images/train/a.png", "images/train/b.png", "images/val/c.png")
        for name in ("train/a", "train/b", "val/c"):
            self.put(f"labels/{name}.txt", "0 0.5 0.5 0.2 0.5\n")

    def objects(self, *names: str, **options: Any) -> dict[str, tuple[Any, ...]]:
        """Features of the objects of the only image, without their prefix."""
        found = self.values(**options)
        return {name: found[f"image/object/{name}"] for name in names}


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    """An empty raw folder."""
    return Raw(tmp_path / "raw")
