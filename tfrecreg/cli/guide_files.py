"""The small files that the guides begin with: `tfrecreg demo --files`."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path

from tfrecreg.cli.digits import write_digits
from tfrecreg.core.images.headers import png_of
from tfrecreg.core.records.writer import TFRecordWriter
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import UsageError

FOLDERS = {
    "coco": "six images with boxes, as COCO",
    "exports": "three undamaged shards of another tool, in two splits",
    "kaggle": "a table next to a folder of images",
    "mnist": "700 drawn digits, as MNIST",
    "more-mnist": "the same digits, and 50 more for training",
    "pets": "images in a folder for each class",
    "shards": "two shards of another tool, and one flipped bit in the second",
}
"""Each folder, with a description of its content."""


def write_guide_files(folder: Path) -> None:
    """Write the folders.

    Raises:
        UsageError: a folder exists already.
    """
    for name in FOLDERS:
        if (folder / name).exists():
            raise UsageError(f"`{folder / name}` exists, so nothing was written")
    write_digits(LocalStorage(folder / "mnist"), train=600, test=100, seed=1)
    write_digits(LocalStorage(folder / "more-mnist"), train=600, test=100, seed=1, more=50)
    _write_shards(folder)
    storage = LocalStorage(folder)
    for name, data in (*_pets(), *_kaggle(), *_coco()):
        with storage.create(name) as writer:
            writer.write(data)


def _write_shards(folder: Path) -> None:
    """Write the shards of two other tools, and flip a bit in the second shard of the first tool."""
    for number in range(2):
        with TFRecordWriter(folder / f"shards/train-{number:05d}-of-00002.tfrecord") as file:
            for record in range(30):
                file.write({"label": record % 10, "text": f"{number} {record} " * 50})
    for split, shards, count in (("train", 2, 60), ("eval", 1, 10)):
        for number in range(shards):
            name = f"exports/{split}-{number:05d}-of-{shards:05d}.tfrecord"
            with TFRecordWriter(folder / name) as file:
                for record in range(number, count, shards):
                    text = f"{record} " * 60
                    file.write({"label": record % 10, "name": f"{split}-{record}", "text": text})
    damaged = folder / "shards/train-00001-of-00002.tfrecord"
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 0x10
    damaged.write_bytes(data)


def _pets() -> Iterator[tuple[str, bytes]]:
    for number in range(24):
        yield f"pets/{('cat', 'dog')[number % 2]}/{number}.png", _png(3, 2, number)


def _kaggle() -> Iterator[tuple[str, bytes]]:
    rows = ["id,breed,age"]
    for number in range(6):
        yield f"kaggle/images/{number}.png", _png(3 + number, 2, number)
        rows.append(f"{number},{('korat', 'manx')[number % 2]},{number}")
    yield "kaggle/train.csv", "\n".join(rows).encode()


def _coco() -> Iterator[tuple[str, bytes]]:
    """Yield images of different sizes with 0 to 5 boxes, and their annotations."""
    images: list[dict[str, object]] = []
    boxes: list[dict[str, object]] = []
    for number in range(6):
        name, width, height = f"{number}.png", 40 + number, 30 + 2 * number
        yield f"coco/train2017/{name}", _png(width, height, number)
        images.append({"id": number, "file_name": name, "width": width, "height": height})
        for box in range(number):
            one = {"id": len(boxes) + 1, "image_id": number, "category_id": 1, "iscrowd": 0}
            boxes.append({**one, "bbox": [box, 2, 10, 10], "area": 100})
    found = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "cat"}]}
    yield "coco/annotations/instances_train2017.json", json.dumps(found).encode()


def _png(width: int, height: int, seed: int) -> bytes:
    """Return a small color picture as PNG."""
    rows = b"".join(
        b"\0" + bytes((seed + 7 * y + 3 * x) % 251 for x in range(3 * width)) for y in range(height)
    )
    return png_of(zlib.compress(rows), width, height, colour=2)
