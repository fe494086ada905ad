"""The source `mnist`: each image of an IDX file, with its label, becomes one example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
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
    """Prefix of the file names of the wanted dataset, such as `emnist-letters`, if a folder holds
    several.
    """


class MnistSource(Source):
    """Images of a folder of IDX files. An item's key is the image's number in its file.

    The key has five digits or more (`00042`), counts from 0, and is all the data of an item.
    Every file of the folder that looks like a part of the dataset must be whole and have its
    partner: a split never vanishes silently.
    """

    Options: ClassVar[type[Any]] = MnistOptions

    def __init__(self, raw: Storage, options: MnistOptions) -> None:
        self._raw = raw
        self._options = options
        self._folder: IdxFolder | None = None
        self._opened: dict[str, tuple[IdxFile, IdxFile]] = {}

    def __reduce__(self) -> tuple[object, ...]:
        # Open files stay where they are: each process opens its own.
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
            # Keys, numbers and lengths take 99 bytes, and 35 more for a PNG. The PNG of such an
            # image takes about a third of its pixels, and 57 bytes of chunks.
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
        except RawDataError:  # of data that are not here, or bad: a build says which
            return text
        for side, sizes in zip(
            ("height", "width"), list(zip(*shapes, strict=True))[1:], strict=True
        ):
            if len({*sizes}) == 1:
                before, feature, after = text.partition(f'name: "image/{side}"')
                only = f"int_domain {{ min: {sizes[0]} max: {sizes[0]} }}"
                text = before + feature + after.replace("int_domain { min: 1 }", only, 1)
        return text

    def _remarks(self) -> Iterator[Remark]:
        folder = self._list()
        if stray := folder.stray:
            names = "name," if len(stray) == 1 else "names, the first of them"
            detail = f"{len(stray)} stray {names} `{safe(stray[0])}`"
            yield Remark(next(iter(folder.pairs)), stray[0], "SRC015", detail, len(stray))
        for plain, compressed in folder.twins:
            if IdxFile(self._raw, plain).content != IdxFile(self._raw, compressed).content:
                raise RawDataError(
                    f"`{safe(plain.path)}` and `{safe(compressed.path)}` hold different data",
                    hint="remove the one that is wrong",
                )
            detail = f"`{safe(plain.path)}` holds the same and is read"
            yield Remark(plain.split, compressed.path, "SRC036", detail)

    def _open_all(self) -> Mapping[str, tuple[IdxFile, IdxFile]]:
        """Images and labels by split, train first, all of them verified."""
        return {split: self._open(split) for split in self._list().pairs}

    def _open(self, split: str) -> tuple[IdxFile, IdxFile]:
        if split not in self._opened:
            pair = self._list().pairs.get(split)
            if pair is None:
                raise RawDataError(
                    f"split `{safe(split)}` is gone from `{safe(self._raw.root)}`",
                    hint="the raw files changed during the build: build again",
                )
            images, labels = (IdxFile(self._raw, name) for name in pair)
            if images.shape[0] != labels.shape[0]:
                raise RawDataError(
                    f"`{safe(images.path)}` has {images.shape[0]} images, "
                    f"`{safe(labels.path)}` has {labels.shape[0]} labels",
                    hint="they do not belong together: fetch both again from the same place",
                )
            self._opened[split] = images, labels
        return self._opened[split]

    def _list(self) -> IdxFolder:
        if self._folder is None:
            self._folder = IdxFolder(self._raw, self._options.prefix)
        return self._folder


def _encode_png(pixels: bytes, height: int, width: int) -> bytes:
    """The image as PNG: the same pixels and zlib give the same bytes.

    Every scanline has filter 0 (none), which on images of this kind beats the other four.
    """
    start, rows, window = _png_form(height, width)
    # 2^(memory level + 6) symbols go into a block: more than a small image has.
    deflate = compressobj(5, DEFLATED, window, window // 2, Z_DEFAULT_STRATEGY)
    lines = b"\0" + b"\0".join(rows.unpack(pixels))
    data = deflate.compress(lines) + deflate.flush()
    return b"".join((start, _chunk(b"IDAT", data), _END))


@lru_cache(maxsize=16)
def _png_form(height: int, width: int) -> tuple[bytes, Struct, int]:
    """What all images of one size share: signature and header, scanlines, window bits."""
    # 8 bits, color type 0 (gray), and the only compression, filter method and interlacing here.
    header = pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    # Allocating and clearing a window larger than a small image takes as long as compressing it.
    # zlib's windows of 8 and 9 bits do not have their declared size.
    window = min(max((height * (width + 1)).bit_length(), 10), 15)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header), Struct(f"{width}s" * height), window


def _chunk(kind: bytes, data: bytes) -> bytes:
    return b"".join((pack(">I", len(data)), kind, data, pack(">I", crc32(data, crc32(kind)))))


_END = _chunk(b"IEND", b"")
