"""The drawn digits are MNIST's format, look of MNIST's kind, and are the same everywhere."""

from __future__ import annotations

import gzip
import hashlib
import struct
from pathlib import Path

from tfrecreg.cli.digits import draw_digits, write_digits
from tfrecreg.core.storage.local import LocalStorage

NAMES = [
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
]


def test_writes_the_four_files_of_mnist(tmp_path: Path) -> None:
    write_digits(LocalStorage(tmp_path), train=20, test=7, seed=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == NAMES
    for word, count, stream in (("train", 20, 0), ("t10k", 7, 1)):
        pixels, labels = draw_digits(count, seed=3, stream=stream)
        images = gzip.decompress((tmp_path / f"{word}-images-idx3-ubyte.gz").read_bytes())
        assert images == struct.pack(">4I", 0x0803, count, 28, 28) + pixels.tobytes()
        classes = gzip.decompress((tmp_path / f"{word}-labels-idx1-ubyte.gz").read_bytes())
        assert classes == struct.pack(">2I", 0x0801, count) + labels.tobytes()


def test_golden_pixels() -> None:
    pixels, labels = draw_digits(50, seed=1, stream=1)
    digest = hashlib.sha256(pixels.tobytes() + labels.tobytes()).hexdigest()
    assert digest == "6baba81bc33f82f97c45a20a0691a97450e8b24c61203b8ac9e17979eec2365f"
