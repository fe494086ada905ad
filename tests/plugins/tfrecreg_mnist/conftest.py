"""Folders of IDX files, good and bad, made on the spot."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import RawDataError
from tfrecreg_mnist.source import MnistOptions, MnistSource


class Raw:
    """A raw folder, and what the source makes of it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @staticmethod
    def idx(shape: tuple[int, ...], data: bytes, kind: int = 0x08) -> bytes:
        """An IDX file; `shape` and `data` need not agree."""
        sizes = b"".join(size.to_bytes(4, "big") for size in shape)
        return bytes((0, 0, kind, len(shape))) + sizes + data

    @staticmethod
    def pixels(count: int, height: int = 4, width: int = 3) -> bytes:
        """Images of which no two are equal."""
        return bytes(number * 31 % 251 for number in range(count * height * width))

    def images(self, count: int = 5, height: int = 4, width: int = 3) -> bytes:
        return self.idx((count, height, width), self.pixels(count, height, width))

    def labels(self, count: int = 5) -> bytes:
        return self.idx((count,), bytes(number % 10 for number in range(count)))

    def put(self, name: str, data: bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data, 6) if name.endswith(".gz") else data)
        return path

    def put_pair(self, word: str = "train", count: int = 5, suffix: str = "") -> None:
        self.put(f"{word}-images-idx3-ubyte{suffix}", self.images(count))
        self.put(f"{word}-labels-idx1-ubyte{suffix}", self.labels(count))

    def source(self, **options: str) -> MnistSource:
        return MnistSource(LocalStorage(self.path), MnistOptions(**options))  # type: ignore[arg-type]

    def refusal(self, **options: str) -> str:
        """The message of the error that listing the items ends in."""
        with pytest.raises(RawDataError) as caught:
            list(self.source(**options).items())
        assert caught.value.exit_code == 2
        assert caught.value.message.isprintable()
        return caught.value.message


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    """An empty raw folder."""
    folder = tmp_path / "raw"
    folder.mkdir()
    return Raw(folder)
