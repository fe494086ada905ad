"""An ImageNet-style input pipeline, in tf.data, NumPy (for JAX), Grain or PyTorch.

Random crop, flip and resize; each epoch in another order, shared by several hosts.

python examples/imagenet_input.py [--framework tf|numpy|grain|torch] [--raw DIR] [--hosts N]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from math import exp, log, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

import sample_data
import tfrecreg as tr

SIDE, BATCH = 64, 32
AREA, ASPECT = (0.08, 1.0), (3 / 4, 4 / 3)
"""Of a random crop: its share of the image, and width / height."""
IMAGE, LABEL = "image/encoded", "image/class/label"

Batch = tuple[Any, Any, Iterable[Any]]
"""Images, float32 of shape (batch, 64, 64, 3) between 0 and 1; labels; keys."""


class Share(NamedTuple):
    """What one host reads in one epoch."""

    folder: Path
    host: int
    hosts: int
    epoch: int

    def source(self) -> tr.DataSource:
        """All records; elements are pairs of key and example."""
        return tr.data_source("imagenet", "train", registry=self.folder, decode=True, with_key=True)

    def order(self, source: tr.DataSource) -> tr.Order:
        """The numbers of this host's records, shuffled."""
        return source.order(seed=1, epoch=self.epoch, host=self.host, hosts=self.hosts)


def tf_batches(share: Share) -> Iterator[Batch]:
    """In a graph of TensorFlow: `load` shuffles, shares and decodes."""
    import tensorflow as tf

    def crop(example: dict[str, tf.Tensor]) -> tuple[tf.Tensor, ...]:
        image = example[IMAGE]
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.shape(image),
            tf.zeros((1, 0, 4)),
            area_range=AREA,
            aspect_ratio_range=ASPECT,
            use_image_if_no_bounding_boxes=True,
        )
        image = tf.image.resize(tf.slice(image, begin, size), (SIDE, SIDE))
        image = tf.image.random_flip_left_right(image)
        return image / 255, example[LABEL], example["record/key"]

    dataset = tr.load(
        "imagenet",
        "train",
        registry=share.folder,
        features=[IMAGE, LABEL],
        decode=True,
        channels=3,
        with_key=True,
        shuffle=True,
        seed=share.epoch,
        host=share.host,
        hosts=share.hosts,
    )
    dataset = dataset.map(crop, tf.data.AUTOTUNE).batch(BATCH).prefetch(tf.data.AUTOTUNE)
    yield from dataset.as_numpy_iterator()


def numpy_batches(share: Share) -> Iterator[Batch]:
    """Plain NumPy arrays, as JAX takes them, in one process."""
    source = share.source()
    random = np.random.default_rng([1, share.epoch, share.host])
    for batch in source.batches(BATCH, share.order(source)):
        images = [random_crop(image, random) for image in batch[IMAGE]]
        yield np.stack(images), batch[LABEL], batch["record/key"]


def grain_batches(share: Share) -> Iterator[Batch]:
    """Grain shuffles, shares, and gives each element random numbers of its own."""
    import grain.python as grain

    def crop(element: Any, random: np.random.Generator) -> Batch:
        key, example = element
        return random_crop(example[IMAGE], random), example[LABEL], key

    dataset = grain.MapDataset.source(share.source()).seed(share.epoch).shuffle()
    dataset = dataset[share.host :: share.hosts].random_map(crop).batch(BATCH)
    yield from dataset.to_iter_dataset(grain.ReadOptions(num_threads=2))


def torch_batches(share: Share) -> Iterator[Batch]:
    """Worker processes of PyTorch read and crop; the order is their sampler."""
    import torch
    from torch.utils.data import DataLoader

    torch.manual_seed(share.epoch)
    source = share.source()
    yield from DataLoader(
        source, BATCH, sampler=share.order(source), num_workers=2, collate_fn=torch_collate
    )


def torch_collate(elements: list[Any]) -> Batch:
    """A batch, in a worker process: so this is a function that can be pickled."""
    import torch

    random = np.random.default_rng(int(torch.randint(2**62, ())))
    images = np.stack([random_crop(example[IMAGE], random) for _, example in elements])
    labels = torch.tensor([example[LABEL] for _, example in elements])
    return torch.from_numpy(images), labels, [key for key, _ in elements]


FRAMEWORKS = {
    "tf": tf_batches,
    "numpy": numpy_batches,
    "grain": grain_batches,
    "torch": torch_batches,
}


def random_crop(image: npt.NDArray[np.uint8], random: np.random.Generator) -> npt.NDArray[Any]:
    """A random part of an image, resized, and flipped half of the time."""
    height, width = image.shape[:2]
    for _ in range(10):
        area = height * width * random.uniform(*AREA)
        aspect = exp(random.uniform(log(ASPECT[0]), log(ASPECT[1])))
        wide, high = round(sqrt(area * aspect)), round(sqrt(area / aspect))
        if 0 < wide <= width and 0 < high <= height:
            break
    else:
        wide, high = width, height
    left, top = random.integers(width - wide + 1), random.integers(height - high + 1)
    box = (left, top, left + wide, top + high)
    part = Image.fromarray(image.squeeze()).convert("RGB").resize((SIDE, SIDE), box=box)
    pixels = np.asarray(part, np.float32) / 255
    return pixels[:, ::-1] if random.random() < 0.5 else pixels


def main() -> None:
    parser = argparse.ArgumentParser(description="Feed a network as ImageNet is fed.")
    parser.add_argument("--framework", choices=FRAMEWORKS, default="numpy")
    parser.add_argument("--raw", type=Path, help="train/CLASS/*.JPEG; default: drawn shapes")
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("imagenet-registry"))
    options = parser.parse_args()

    registry = tr.init(options.folder, with_dvc=False)
    raw = options.raw or sample_data.write_image_folder(
        options.folder / "raw", images=200, splits=("train", "val")
    )
    registry["imagenet"].build(source="imagefolder", raw=raw, shards=2 * options.hosts)

    batches = FRAMEWORKS[options.framework]
    total = len(Share(options.folder, 0, 1, 0).source())
    for epoch in range(2):
        seen: list[Any] = []
        for host in range(options.hosts):  # in training, each on its own machine
            before = len(seen)
            for images, _, keys in batches(Share(options.folder, host, options.hosts, epoch)):
                seen.extend(keys)
                shape = f"the last of shape {tuple(images.shape)}"
            print(f"epoch {epoch}, host {host}: {len(seen) - before} images, {shape}")
        print(f"epoch {epoch}: {len(seen)} images, {len(set(seen))} different ones of {total}")


if __name__ == "__main__":
    try:
        main()
    except tr.TfrecregError as error:
        sys.exit(f"error: {error}")
