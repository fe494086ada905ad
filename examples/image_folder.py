"""A folder of images to train and test shards at raw size, and a classifier from them.

python examples/image_folder.py [--raw DIR] [--epochs N]
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import keras

import sample_data
import tfrecreg as tr

SIDE = 48
"""Height and width that images are resized to for training. Records keep the files as they are."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a classifier on a folder of images.")
    parser.add_argument("--raw", type=Path, help="a folder per class; default: drawn shapes")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--folder", type=Path, default=Path("images-registry"))
    options = parser.parse_args()

    build = publish(options.folder, options.raw)
    classes = build.manifest.labels["image/class/label"]
    print(f"classes: {', '.join(classes)}")
    keras.utils.set_random_seed(1)
    load = partial(
        build.load,
        decode=True,
        channels=3,
        image_size=(SIDE, SIDE),
        as_supervised=True,
        batch_size=32,
    )
    train = load("train", shuffle=True, seed=1, cache=True)
    test = load("test")
    model = keras.Sequential([keras.Input((SIDE, SIDE, 3)), keras.layers.Rescaling(1 / 255)])
    for filters in (16, 32, 64):
        model.add(keras.layers.Conv2D(filters, 3, activation="relu"))
        model.add(keras.layers.MaxPooling2D())
    model.add(keras.layers.Flatten())
    model.add(keras.layers.Dropout(0.3))
    model.add(keras.layers.Dense(len(classes), activation="softmax"))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(train, epochs=options.epochs, shuffle=False, verbose=2)
    _, accuracy = model.evaluate(test, verbose=0)
    print(f"test accuracy {accuracy:.3f}")


def publish(folder: Path, raw: Path | None) -> tr.Build:
    """Build train and test shards, and print their sizes."""
    images = tr.init(folder, with_dvc=False)["images"]
    raw = raw or sample_data.write_image_folder(folder / "raw")
    # By a hash of each file's path: more images later do not move these to another split.
    splits = {"split": "train=0.8,test=0.2"}
    build = images.build(source="imagefolder", raw=raw, options=splits, shards=2)
    manifest = build.manifest
    for split in manifest.splits:
        print(f"{split.name}: {split.records} images")
    shards = sum(shard.bytes for shard in manifest.shards)
    ratio = shards / manifest.raw.stored
    print(f"raw files {manifest.raw.stored} bytes, shards {shards}: {ratio:.3f} of the raw size")
    return build


if __name__ == "__main__":
    try:
        main()
    except tr.TfrecregError as error:
        sys.exit(f"error: {error}")
