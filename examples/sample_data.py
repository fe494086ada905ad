"""Small generated datasets, so that the examples run without a download.

Each function writes the files that the real dataset would have, in the layout that people
download, and returns their folder. The same arguments give the same images. The examples take your
own data instead with `--raw DIR`.
"""

from __future__ import annotations

import json
from math import cos, pi, sin
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from tfrecreg import testing

Polygon = list[tuple[float, float]]
"""Corners as (x, y) in pixels."""

SHAPES = ("circle", "square", "star", "triangle")
"""The classes of drawn images, in the order of their labels."""


def write_digits(raw: Path, *, train: int = 4000, test: int = 1000) -> Path:
    """Drawn digits in the four files of MNIST: gray images of 28 x 28 pixels, ten classes."""
    testing.write_digits(raw, train=train, test=test)
    return raw


def write_image_folder(raw: Path, *, images: int = 1000, splits: tuple[str, ...] = ("",)) -> Path:
    """JPEGs of one shape each, 96 to 160 pixels wide and high, in a folder per class.

    Args:
        raw: the folder to write.
        images: how many, in each of the splits.
        splits: folders above those of the classes; the default is none.
    """
    for number, split in enumerate(splits):
        random = np.random.default_rng([1, number])
        for place in range(images):
            shape = SHAPES[place % len(SHAPES)]
            file = raw / split / shape / f"{shape}-{place:04}.jpg"
            image = _background(random, *(int(side) for side in random.integers(96, 161, 2)))
            _draw(image, shape, random, (0, 0, *image.size))
            _save(image, file)
    return raw


def write_coco(raw: Path, *, train: int = 200, validation: int = 50) -> Path:
    """JPEGs of one to five shapes each, with COCO's annotations: boxes, polygons, categories."""
    for number, (split, count) in enumerate((("train2017", train), ("val2017", validation))):
        random = np.random.default_rng([2, number])
        images: list[dict[str, Any]] = []
        objects: list[dict[str, Any]] = []
        for place in range(count):
            image = _background(random, *(int(side) for side in random.integers(120, 181, 2)))
            name = f"{place:012}.jpg"
            images.append(
                {"id": place, "file_name": name, "width": image.width, "height": image.height}
            )
            # Each shape has one of six cells, so that none covers another.
            for cell in random.permutation(6)[: random.integers(1, 6)].tolist():
                width, height = image.width / 3, image.height / 2
                left, top = width * (cell % 3), height * (cell // 3)
                category = int(random.integers(len(SHAPES)))
                bounds = (left, top, left + width, top + height)
                polygon = _draw(image, SHAPES[category], random, bounds)
                objects.append(_annotation(len(objects), place, category, polygon))
            _save(image, raw / split / name)
        categories = [{"id": each + 1, "name": name} for each, name in enumerate(SHAPES)]
        document = {"images": images, "annotations": objects, "categories": categories}
        file = raw / f"annotations/instances_{split}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(document), "utf-8")
    return raw


def _annotation(number: int, image: int, category: int, polygon: Polygon) -> dict[str, Any]:
    """One object, as COCO describes it: the box is (x, y, width, height)."""
    xs, ys = zip(*polygon, strict=True)
    box = [min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)]
    return {
        "id": number + 1,
        "image_id": image,
        "category_id": category + 1,
        "bbox": box,
        "area": box[2] * box[3],
        "segmentation": [[side for corner in polygon for side in corner]],
        "iscrowd": 0,
    }


def _background(random: np.random.Generator, width: int, height: int) -> Image.Image:
    """A dark color with noise."""
    color = random.integers(0, 80, 3)
    noise = random.integers(0, 40, (height, width, 3))
    return Image.fromarray((color + noise).astype(np.uint8))


def _draw(
    image: Image.Image,
    shape: str,
    random: np.random.Generator,
    bounds: tuple[float, float, float, float],
) -> Polygon:
    """Draw a shape of random size, place and bright color, slightly turned, within these bounds."""
    left, top, right, bottom = bounds
    radius = min(right - left, bottom - top) / 2 * random.uniform(0.6, 0.95)
    x = random.uniform(left + radius, right - radius)
    y = random.uniform(top + radius, bottom - radius)
    corners = {"circle": 24, "square": 4, "star": 10, "triangle": 3}[shape]
    start = (pi / 4 if shape == "square" else -pi / 2) + random.uniform(-0.3, 0.3)
    polygon = []
    for corner in range(corners):
        angle = start + 2 * pi * corner / corners
        reach = radius * (0.45 if shape == "star" and corner % 2 else 1)
        polygon.append((round(x + reach * cos(angle), 2), round(y + reach * sin(angle), 2)))
    red, green, blue = (int(each) for each in random.integers(150, 256, 3))
    ImageDraw.Draw(image).polygon(polygon, fill=(red, green, blue))
    return polygon


def _save(image: Image.Image, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    image.save(file, quality=90)
