"""The source `mnist`: each image of an IDX file, with its label, becomes one example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from struct import Struct, pack
from typing import Any, ClassVar, Literal
from zlib import DEFLATED, Z_DEFAULT_STRATEGY, compressobj, crc32

from tfrecreg.api import (
    Example,
    Item,
    RawDataError,
    RawFile,
    Remark,
    Source,
    Storage,
    bundled_schema,
    bytes_feature,
    int64_feature,
    safe,
)
from tfrecreg_mnist.idx import IdxFile, IdxFolder

_LABEL = "image/class/label"
_PNG = bytes_feature(b"png")


@dataclass(frozen=True)
class MnistOptions:
    """Options of the source `mnist`."""

    encoding: Literal["png", "raw"] = "png"
    """`png`: a PNG in `image/encoded`. `raw`: the pixels themselves in `image/raw`."""
    prefix: str = ""
    """Prefix of the file names of the wanted dataset, such as `emnist-letters`, if the folder holds
    several datasets.
    """


class MnistSource(Source):
    """Images of a folder of IDX files. An item's key is the image's number in its file.

    Every file that looks like a part of the dataset must be whole and have its partner, so that no
    split vanishes silently.
    """

    Options: ClassVar[type[Any]] = MnistOptions

    def __init__(self, raw: Storage, options: MnistOptions) -> None:
        self._raw = raw
        self._options = options
        self._opened: dict[str, tuple[IdxFile, IdxFile]] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._raw, self._options)

    def raw_files(self) -> Iterator[RawFile]:
        for files in self._open_all().values():
            for file in files:
                yield RawFile(file.path, file.stored, file.decoded)

    def labels(self) -> Mapping[str, Sequence[str]]:
        largest = max(labels.largest for _, labels in self._open_all().values())
        return {_LABEL: [str(number) for number in range(largest + 1)]}

    def items(self) -> Iterator[Item | Remark]:
        splits = self._open_all()
        yield from self._remarks()
        for split, (images, _) in splits.items():
            # Estimated: a PNG takes about a third of the pixels, and 57 bytes of chunks.
            pixels = images.entry_size
            size = 99 + pixels if self._options.encoding == "raw" else 134 + 57 + pixels // 3
            for index in range(images.shape[0]):
                yield Item(split, f"{index:05d}", size)

    def example(self, item: Item) -> Example:
        images, labels = self._open(item.split)
        index = int(item.key)
        pixels = images.entry(index)
        _, height, width = images.shape
        example = {
            "image/height": int64_feature(height),
            "image/width": int64_feature(width),
            _LABEL: int64_feature(labels.entry(index)[0]),
        }
        if self._options.encoding == "raw":
            example["image/raw"] = bytes_feature(pixels)
        else:
            example["image/encoded"] = bytes_feature(_encode_png(pixels, height, width))
            example["image/format"] = _PNG
        return example

    def schema(self) -> str:
        name = "mnist_raw" if self._options.encoding == "raw" else "mnist"
        text = bundled_schema("tfrecreg_mnist", name)
        try:
            shapes = [images.shape for images, _ in self._open_all().values()]
        except RawDataError:  # missing or bad data: a build reports the reason
            return text
        for number, side in enumerate(("height", "width"), start=1):
            if len(sizes := {shape[number] for shape in shapes}) == 1:
                size = sizes.pop()
                before, feature, after = text.partition(f'name: "image/{side}"')
                only = f"int_domain {{ min: {size} max: {size} }}"
                text = before + feature + after.replace("int_domain { min: 1 }", only, 1)
        return text

    def _remarks(self) -> Iterator[Remark]:
        folder = self._folder
        if stray := folder.stray:
            names = "name," if len(stray) == 1 else "names, the first of them"
            detail = f"{len(stray)} stray {names} `{safe(stray[0])}`"
            yield Remark(next(iter(folder.pairs)), stray[0], "SRC015", detail, len(stray))
        for plain, compressed in folder.twins:
            if IdxFile(self._raw, plain).content != IdxFile(self._raw, compressed).content:
                raise RawDataError(f"`{plain.path}` and `{compressed.path}` hold different data")
            detail = f"`{safe(plain.path)}` holds the same data and is read instead"
            yield Remark(plain.split, compressed.path, "SRC116", detail)

    def _open_all(self) -> Mapping[str, tuple[IdxFile, IdxFile]]:
        """The verified images and labels of each split. The split `train` comes first."""
        return {split: self._open(split) for split in self._folder.pairs}

    def _open(self, split: str) -> tuple[IdxFile, IdxFile]:
        if split not in self._opened:
            pair = self._folder.pairs.get(split)
            if pair is None:
                raise RawDataError(f"split `{split}` is gone from `{self._raw.root}`")
            images, labels = (IdxFile(self._raw, name) for name in pair)
            if images.shape[0] != labels.shape[0]:
                raise RawDataError(
                    f"`{images.path}` has {images.shape[0]} images, but `{labels.path}` has "
                    f"{labels.shape[0]} labels: they do not belong together"
                )
            self._opened[split] = images, labels
        return self._opened[split]

    @cached_property
    def _folder(self) -> IdxFolder:
        return IdxFolder(self._raw, self._options.prefix)


def _encode_png(pixels: bytes, height: int, width: int) -> bytes:
    """The image as PNG. With the same zlib, the same pixels give the same bytes.

    Every scanline has filter 0 (none), which compresses such images better than the other four.
    """
    start, rows, window = _png_form(height, width)
    # A block takes 2^(memory level + 6) symbols: more than a small image has.
    deflate = compressobj(5, DEFLATED, window, window // 2, Z_DEFAULT_STRATEGY)
    lines = b"\0" + b"\0".join(rows.unpack(pixels))
    data = deflate.compress(lines) + deflate.flush()
    return b"".join((start, _chunk(b"IDAT", data), _END))


@lru_cache(maxsize=16)
def _png_form(height: int, width: int) -> tuple[bytes, Struct, int]:
    """The common parts of PNGs of one size: signature and header, scanline layout, window bits."""
    # 8 bits, color type 0 (gray), and the only compression, filter method and interlacing here.
    header = pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    # Allocating and clearing a window larger than a small image takes as long as compressing it.
    # zlib's windows of 8 and 9 bits do not have their declared size.
    window = min(max((height * (width + 1)).bit_length(), 10), 15)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header), Struct(f"{width}s" * height), window


def _chunk(kind: bytes, data: bytes) -> bytes:
    return b"".join((pack(">I", len(data)), kind, data, pack(">I", crc32(data, crc32(kind)))))


_END = _chunk(b"IEND", b"")
