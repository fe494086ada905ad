"""Folders of VOC's form, good and bad, made on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from image_support import png
from raw_source_support import RawObjects

from tfrecreg_voc.source import VocSource

SIZE = "<size><width>100</width><height>80</height><depth>3</depth></size>"


class Raw(RawObjects):
    """A raw folder, and what the source makes of it."""

    kind = VocSource
    size = SIZE

    @staticmethod
    def object(name: str = "cat", *sides: object, more: str = "") -> str:
        """An object; its box is that of VOC for the pixels 10 to 29 and 20 to 59."""
        values = sides or (11, 21, 30, 60)
        names = ("xmin", "ymin", "xmax", "ymax")
        box = "".join(
            f"<{side}>{value}</{side}>" for side, value in zip(names, values, strict=True)
        )
        return f"<object><name>{name}</name>{more}<bndbox>{box}</bndbox></object>"

    @staticmethod
    def xml(*objects: str, more: str = SIZE) -> str:
        return f"<annotation>{more}{''.join(objects)}</annotation>"

    def image(self, name: str) -> None:
        self.put(name, png(100, 80, seed=sum(name.encode())))

    def entry(self, name: str, *objects: str, folder: str = "") -> None:
        """`JPEGImages/NAME.png` of 100 × 80 pixels and `Annotations/NAME.xml`."""
        self.image(f"{folder}JPEGImages/{name}.png")
        self.put(f"{folder}Annotations/{name}.xml", self.xml(*objects))

    def one(self, *objects: str, more: str = SIZE) -> None:
        """The image `a` with these objects."""
        self.image("JPEGImages/a.png")
        self.put("Annotations/a.xml", self.xml(*objects, more=more))

    def objects(self, *names: str, **options: Any) -> dict[str, tuple[Any, ...]]:
        """Features of the objects of the only image, without their prefix."""
        found = self.values(**options)
        return {name: found[f"image/object/{name}"] for name in names}

    def box(self, **options: Any) -> list[float]:
        """The sides of the only box: xmin, ymin, xmax, ymax."""
        sides = [f"bbox/{side}" for side in ("xmin", "ymin", "xmax", "ymax")]
        return [value for side in self.objects(*sides, **options).values() for value in side]


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    """An empty raw folder."""
    return Raw(tmp_path / "raw")
