"""COCO: records, boxes and masks on a contact sheet, padded boxes, and a classifier of crops.

python examples/coco_boxes.py [--raw DIR] [--epochs N] [--train SPLIT] [--test SPLIT]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from PIL import Image, ImageDraw

import sample_data
import tfrecreg as tr

BOX = [f"image/object/bbox/{side}" for side in ("ymin", "xmin", "ymax", "xmax")]
LABEL = "image/object/class/label"
SIDE, CROP, TILE = 192, 32, 160
"""Pixels: of the images of a batch, of a crop, of a tile on the contact sheet."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw COCO's objects, and classify them.")
    parser.add_argument("--raw", type=Path, help="a dataset in COCO's layout; default: drawn")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--train", default="train", help="split expression, as train[:80%%]")
    parser.add_argument("--test", default="validation", help="split expression, as train[80%%:]")
    parser.add_argument("--folder", type=Path, default=Path("coco-registry"))
    options = parser.parse_args()

    build = publish(options.folder, options.raw)
    classes = build.manifest.labels[LABEL]
    sheet = contact_sheet(build.data_source(options.train, decode=True)[:12], classes)
    sheet.save(options.folder / "contact-sheet.png")
    print(f"contact-sheet.png: {sheet.width} x {sheet.height} pixels")

    train = load(build, options.train, shuffle=True, seed=1)
    test = load(build, options.test)
    for batch in train.take(1):
        print(f"a batch: images {batch['image/encoded'].shape}, boxes {batch[BOX[0]].shape}")
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((CROP, CROP, 3)), keras.layers.Rescaling(1 / 255)])
    for filters in (16, 32):
        model.add(keras.layers.Conv2D(filters, 3, activation="relu"))
        model.add(keras.layers.MaxPooling2D())
    model.add(keras.layers.Flatten())
    model.add(keras.layers.Dense(len(classes), activation="softmax"))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    data = train.map(crops).unbatch().batch(32)
    model.fit(data, epochs=options.epochs, shuffle=False, verbose=2)
    _, accuracy = model.evaluate(test.map(crops).unbatch().batch(32), verbose=0)
    print(f"test accuracy {accuracy:.3f}")


def publish(folder: Path, raw: Path | None) -> tr.Build:
    """Build the dataset with its polygons."""
    coco = tr.init(folder, with_dvc=False)["coco"]
    raw = raw or sample_data.write_coco(folder / "raw")
    # Labels from 0 without gaps, as a classifier needs them; COCO's own go from 1 to 90.
    source_options = {"masks": "polygons", "categories": "contiguous"}
    build = coco.build(source="coco", raw=raw, options=source_options)
    print({split.name: split.records for split in build.manifest.splits})
    return build


def load(build: tr.Build, split: str, **options: Any) -> tf.data.Dataset:
    """Batches of images of one size. The boxes, fractions of the sides, are padded with zeros."""
    return build.load(
        split,
        features=["image/encoded", *BOX, LABEL],
        decode=True,
        channels=3,
        image_size=(SIDE, SIDE),
        batch_size=16,
        pad_to="longest",
        **options,
    )


def crops(batch: Mapping[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
    """Every object of a batch as an image of its own, with its label."""
    boxes = tf.stack([batch[side] for side in BOX], axis=-1)  # (images, objects, 4)
    real = boxes[..., 2] > boxes[..., 0]  # padding has no height
    images = tf.cast(tf.where(real)[:, 0], tf.int32)
    cut = tf.image.crop_and_resize(batch["image/encoded"], boxes[real], images, (CROP, CROP))
    return cut, batch[LABEL][real]


def contact_sheet(source: tr.DataSource, classes: list[str]) -> Image.Image:
    """Images side by side, each with the masks, boxes and names of its objects."""
    sheet = Image.new("RGB", (4 * TILE, -(-len(source) // 4) * TILE), "white")
    for place, example in enumerate(source):
        image = Image.fromarray(example["image/encoded"].squeeze()).convert("RGB")
        image = image.resize((TILE, TILE))
        draw = ImageDraw.Draw(image, "RGBA")
        for corners in polygons(example):
            draw.polygon([(x * TILE, y * TILE) for x, y in corners], fill=(0, 160, 255, 130))
        boxes = np.stack([example[side] * TILE for side in BOX], axis=-1)
        for (top, left, bottom, right), label in zip(boxes, example[LABEL], strict=True):
            draw.rectangle((left, top, right, bottom), outline="red")
            draw.text((left + 2, top), classes[label], fill="white")
        sheet.paste(image, (place % 4 * TILE, place // 4 * TILE))
    return sheet


def polygons(example: Mapping[str, Any]) -> Iterator[list[tuple[float, float]]]:
    """The corners of each polygon: the record has those of all polygons, one after the other."""
    corners = zip(example["image/object/polygon/x"], example["image/object/polygon/y"], strict=True)
    for points in example["image/object/polygon/points"]:
        yield [next(corners) for _ in range(points)]


if __name__ == "__main__":
    try:
        main()
    except tr.TfrecregError as error:
        sys.exit(f"error: {error}")
