"""Raw data for the source `mnist`, drawn."""

from __future__ import annotations

import os

from tfrecreg.cli.demo import digits
from tfrecreg.core.storage.local import LocalStorage


def write_digits(
    folder: str | os.PathLike[str], *, train: int = 600, test: int = 100, seed: int = 1
) -> None:
    """Draw handwritten-looking digits, and write them as the four gzip files of MNIST.

    The same arguments give the same images on every machine.

    Args:
        folder: where to write, made if it is missing; files of the same names are replaced.
        train: number of images in the split `train`, at least 1.
        test: number of images in the split `test`, at least 1.
        seed: another seed gives other images.

    Raises:
        ValueError: a split without images.
        StorageError: a file cannot be written.
    """
    digits.write_digits(LocalStorage(os.fspath(folder)), train=train, test=test, seed=seed)
