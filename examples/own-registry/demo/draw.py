"""Draws the raw data of this repository's own pipeline: a stage of `dvc.yaml` runs it.

The same digits three times, as each source reads raw data: IDX files in gzip, pictures in folders
of splits and classes, and pictures with several digits each, whose boxes stand in COCO's JSON.
PNGs are written without compression: so they are the same bytes whatever zlib there is.
"""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from struct import pack
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tfrecreg.testing import write_digits

Pixels = np.ndarray[Any, np.dtype[np.uint8]]

SIDE = 28
TRAIN, TEST = 600, 200
SCENES, CELLS = {"train": 80, "val": 20}, 3


def main(raw: Path) -> None:
    """Draw all three."""
    write_digits(raw / "digits", train=TRAIN, test=TEST)
    for split, (pixels, labels) in zip(("train", "test"), digits(TRAIN, TEST, seed=2), strict=True):
        for place, label in enumerate(labels.tolist()):
            file = raw / f"pictures/{split}/{label}/{place:04}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(png(pixels[place]))
    counts = [count * CELLS * CELLS for count in SCENES.values()]
    for split, drawn in zip(SCENES, digits(*counts, seed=3), strict=True):
        draw_scenes(raw / "scenes", split, *drawn)


def digits(train: int, test: int, *, seed: int) -> Iterator[tuple[Pixels, Pixels]]:
    """Pixels and labels of the two splits."""
    with TemporaryDirectory() as folder:
        write_digits(folder, train=train, test=test, seed=seed)
        for split in ("train", "t10k"):
            images, labels = (
                np.frombuffer(
                    gzip.decompress(Path(folder, f"{split}-{kind}").read_bytes()), np.uint8
                )
                for kind in ("images-idx3-ubyte.gz", "labels-idx1-ubyte.gz")
            )
            yield images[16:].reshape(-1, SIDE, SIDE), labels[8:]


def draw_scenes(folder: Path, split: str, pixels: Pixels, labels: Pixels) -> None:
    """Pictures of 84 × 84 pixels with up to nine digits, and their boxes."""
    here = folder / split
    here.mkdir(parents=True, exist_ok=True)
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    side = SIDE * CELLS
    for image in range(SCENES[split]):
        scene = np.zeros((side, side), np.uint8)
        for cell in range(CELLS * CELLS):
            at = image * CELLS * CELLS + cell
            if at % 3 == image % 3:
                continue  # not every place has a digit
            top, left = SIDE * (cell // CELLS), SIDE * (cell % CELLS)
            scene[top : top + SIDE, left : left + SIDE] = pixels[at]
            rows, columns = np.nonzero(pixels[at])
            x, y = left + int(columns.min()), top + int(rows.min())
            width = int(columns.max() - columns.min()) + 1
            height = int(rows.max() - rows.min()) + 1
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image + 1,
                    "category_id": int(labels[at]) + 1,
                    "bbox": [x, y, width, height],
                    "area": width * height,
                    "iscrowd": 0,
                }
            )
        name = f"{image:04}.png"
        (here / name).write_bytes(png(scene))
        images.append({"id": image + 1, "file_name": name, "width": side, "height": side})
    document = {
        "images": images,
        "annotations": annotations,
        "categories": [{"id": digit + 1, "name": str(digit)} for digit in range(10)],
    }
    file = folder / f"annotations/instances_{split}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(document, indent=1), "utf-8")


def png(pixels: Pixels) -> bytes:
    """An 8-bit greyscale PNG: https://www.w3.org/TR/png-3/."""
    height, width = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 0)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
