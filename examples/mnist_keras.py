"""MNIST: from IDX files to a release, and a Keras CNN trained on it.

python examples/mnist_keras.py [--raw DIR] [--epochs N] [--train SPLIT] [--test SPLIT]
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import keras

import sample_data
import tfrecreg as tr


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a Keras CNN on MNIST.")
    parser.add_argument("--raw", type=Path, help="MNIST's IDX files; default: drawn digits")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--train", default="train", help="split expression, as test[:80%%]")
    parser.add_argument("--test", default="test", help="split expression, as test[80%%:]")
    parser.add_argument("--folder", type=Path, default=Path("mnist-registry"))
    options = parser.parse_args()

    release = publish(options.folder, options.raw)
    keras.utils.set_random_seed(1)
    load = partial(release.load, decode=True, as_supervised=True, batch_size=64)
    train, test = load(options.train, shuffle=True, seed=1), load(options.test)
    classes = len(release.manifest.labels["image/class/label"])
    model = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            keras.layers.Rescaling(1 / 255),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(64, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dropout(0.4),
            keras.layers.Dense(classes, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(train, epochs=options.epochs, shuffle=False, verbose=2)
    _, accuracy = model.evaluate(test, verbose=0)

    # What a log of the run should hold: which data it was, whatever their place or shards.
    facts = release.describe()
    print(f"{facts['reference']}: {facts['splits']}, content {facts['content'][:12]}")
    print(f"test accuracy {accuracy:.3f}")


def publish(folder: Path, raw: Path | None) -> tr.Release:
    """Build the dataset, and release it as 1.0.0."""
    mnist = tr.init(folder, with_dvc=False)["mnist"]
    mnist.build(source="mnist", raw=raw or sample_data.write_digits(folder / "raw"), shards=4)
    # Releasing the same content again succeeds, and changes nothing.
    return mnist.release("1.0.0")


if __name__ == "__main__":
    try:
        main()
    except tr.TfrecregError as error:
        sys.exit(f"error: {error}")
