"""The raw data of the benchmarks, which are generated, never downloaded."""

from __future__ import annotations

import gzip
import io
import struct
import zlib
from pathlib import Path

import numpy as np

__all__ = ["coco_annotations", "digits", "images"]


def images(folder: Path, count: int, classes: int = 10) -> None:
    """Write `count` distinct JPEGs of about 100 KB in `classes` folders.

    Up to a thousand are drawn (smooth noise, as in photographs); after that their bytes are
    repeated with other comments, which gives distinct files of the same size.
    """
    from PIL import Image

    rng = np.random.default_rng(0)
    drawn: list[bytes] = []
    for number in range(min(count, 1000)):
        small = rng.integers(0, 256, (60, 80, 3), np.uint8)
        fine = Image.fromarray(small).resize((640, 480), Image.Resampling.BICUBIC)
        grain = rng.normal(0, 9, (480, 640, 3))
        pixels = np.clip(np.asarray(fine, np.float64) + grain, 0, 255).astype(np.uint8)
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "JPEG", quality=86)
        drawn.append(buffer.getvalue())
        _put(folder, number, classes, drawn[-1])
    for number in range(len(drawn), count):
        data = drawn[number % len(drawn)]
        text = str(number).encode()
        comment = b"\xff\xfe" + struct.pack(">H", len(text) + 2) + text
        _put(folder, number, classes, data[:2] + comment + data[2:])


def _put(folder: Path, number: int, classes: int, data: bytes) -> None:
    place = folder / f"class{number % classes:03d}"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{number:06d}.jpg").write_bytes(data)


def digits(folder: Path, count: int) -> None:
    """Write `count` drawn digits as plain IDX files of the split `train`."""
    from tfrecreg.cli.digits import write_digits
    from tfrecreg.core.storage.local import LocalStorage

    folder.mkdir(parents=True, exist_ok=True)
    write_digits(LocalStorage(folder), train=count, test=1, seed=0)
    for path in sorted(folder.glob("*.gz")):
        if path.name.startswith("train"):
            path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()


def coco_annotations(folder: Path, count: int, each: int = 10) -> None:
    """Write `count` tiny images and a COCO file with `each` annotations per image, with polygons.

    The JSON is written incrementally, with the annotations of an image far from each other, as in
    the published files: readers must not expect them together.
    """
    images = folder / "train2017"
    images.mkdir(parents=True)
    (folder / "annotations").mkdir()
    data = _grey(8, 6)
    for number in range(count):
        (images / f"{number:012d}.png").write_bytes(data)
    with (folder / "annotations/instances_train2017.json").open("w") as file:
        file.write('{"images": [')
        for number in range(count):
            file.write("," if number else "")
            file.write(f'{{"id": {number}, "file_name": "{number:012d}.png", ')
            file.write('"height": 6, "width": 8, "license": 1, "date_captured": "2013"}')
        file.write('], "categories": [')
        names = (
            f'{{"id": {n}, "name": "thing {n}", "supercategory": "thing"}}' for n in range(1, 81)
        )
        file.write(",".join(names) + '], "annotations": [')
        rng = np.random.default_rng(0)
        order = rng.permutation(count * each)
        for place, number in enumerate(order):
            x, y = rng.random(2) * 3
            outline = ",".join(f"{value:.2f}" for value in rng.random(40) * 6)
            file.write("," if place else "")
            file.write(f'{{"id": {number}, "image_id": {number % count}, "iscrowd": 0, ')
            file.write(f'"category_id": {number % 80 + 1}, "area": 6.25, ')
            file.write(f'"bbox": [{x:.2f}, {y:.2f}, 2.5, 2.5], "segmentation": [[{outline}]]}}')
        file.write("]}")


def _grey(width: int, height: int) -> bytes:
    """A PNG of one gray."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress((b"\0" + bytes([128]) * width) * height)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks
