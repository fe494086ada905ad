"""A build by TensorFlow Datasets from the same raw data, as a program for an environment of its own
(``pip install tensorflow tensorflow-datasets``). Imports are not counted in the seconds it prints.

usage: tfds_build.py imagefolder RAW OUT    RAW holds class/file
       tfds_build.py mnist RAW OUT          RAW holds plain IDX files of the split train
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

KIND, RAW, OUT = sys.argv[1], Path(sys.argv[2]), sys.argv[3]


class Images(tfds.core.GeneratorBasedBuilder):
    """A folder of images, one folder per class. The bytes of the files are kept."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self) -> Any:
        names = sorted(path.name for path in RAW.iterdir())
        features = {
            "image": tfds.features.Image(),
            "label": tfds.features.ClassLabel(names=names),
            "file_name": tfds.features.Text(),
        }
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(features))

    def _split_generators(self, dl_manager: Any) -> Any:
        return {"train": self._generate_examples()}

    def _generate_examples(self) -> Any:
        for path in sorted(RAW.glob("*/*")):
            yield (
                str(path),
                {
                    "image": str(path),
                    "label": path.parent.name,
                    "file_name": path.name,
                },
            )


class Digits(tfds.core.GeneratorBasedBuilder):
    """MNIST, as in TFDS's own builder: from pixels to PNG."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self) -> Any:
        features = {
            "image": tfds.features.Image(shape=(28, 28, 1)),
            "label": tfds.features.ClassLabel(num_classes=10),
        }
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(features))

    def _split_generators(self, dl_manager: Any) -> Any:
        return {"train": self._generate_examples()}

    def _generate_examples(self) -> Any:
        pixels = np.fromfile(RAW / "train-images-idx3-ubyte", np.uint8, offset=16)
        labels = np.fromfile(RAW / "train-labels-idx1-ubyte", np.uint8, offset=8)
        for number, image in enumerate(pixels.reshape(-1, 28, 28, 1)):
            yield number, {"image": image, "label": int(labels[number])}


tf.constant(0)  # TensorFlow initializes before the clock starts
shutil.rmtree(OUT, ignore_errors=True)
builder = (Images if KIND == "imagefolder" else Digits)(data_dir=OUT)
start = time.perf_counter()
builder.download_and_prepare()
took = time.perf_counter() - start
size = sum(path.stat().st_size for path in Path(OUT).rglob("*.tfrecord*"))
count = builder.info.splits["train"].num_examples
print(f"tfds {KIND} seconds={took:.3f} bytes={size} examples={count}")
