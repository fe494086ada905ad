"""The source `mnist`: each image of an IDX file, with its label, becomes one example."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

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
from tfrecreg_mnist import grey_png
from tfrecreg_mnist.idx import IdxEntries, IdxHeader, read_data, read_idx_header
from tfrecreg_mnist.idx_files import IdxFile, find_idx_files, find_twins, pair_files, stray_names

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


class _Split(NamedTuple):
    """One split, verified."""

    name: str
    raw_files: tuple[RawFile, RawFile]
    images: IdxHeader
    largest: int
    """The largest label."""


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
        self._verified: dict[IdxFile, int] = {}  # for labels with the largest, else 0
        self._opened: dict[str, tuple[IdxEntries, IdxEntries]] = {}

    def __reduce__(self) -> tuple[object, ...]:
        # Open files stay where they are: each process opens its own.
        return type(self), (self._raw, self._options)

    def raw_files(self) -> Iterator[RawFile]:
        for split in self._splits():
            yield from split.raw_files

    def labels(self) -> Mapping[str, Sequence[str]]:
        largest = max(split.largest for split in self._splits())
        return {_LABEL: [str(number) for number in range(largest + 1)]}

    def items(self) -> Iterator[Item | Remark]:
        splits = self._splits()
        stray = stray_names(self._raw)
        if stray:
            names = "name," if len(stray) == 1 else "names, the first of them"
            detail = f"{len(stray)} stray {names} `{safe(stray[0])}`"
            yield Remark(splits[0].name, stray[0], "SRC015", detail, len(stray))
        for plain, compressed in find_twins(find_idx_files(self._raw, self._options.prefix)):
            detail = f"`{safe(plain.path)}` holds the same and is read"
            yield Remark(plain.split, compressed.path, "SRC036", detail)
        for split in splits:
            size = _estimate(split.images.entry_size, self._options.encoding)
            for index in range(split.images.shape[0]):
                yield Item(split.name, f"{index:05d}", size)

    def example(self, item: Item) -> Example:
        images, labels = self._open(item.split)
        index = int(item.key)
        pixels = images.entry(index)
        _, height, width = images.header.shape
        example = {
            "image/height": int64_feature(height),
            "image/width": int64_feature(width),
            _LABEL: int64_feature(labels.entry(index)[0]),
        }
        if self._options.encoding == "raw":
            example["image/raw"] = bytes_feature(pixels)
        else:
            example["image/encoded"] = bytes_feature(grey_png.encode_png(pixels, height, width))
            example["image/format"] = _PNG
        return example

    def schema(self) -> str:
        name = "mnist_raw" if self._options.encoding == "raw" else "mnist"
        text = bundled_schema("tfrecreg_mnist", name)
        for side, sizes in self._sides().items():
            if len(sizes) == 1:
                (size,) = sizes
                before, feature, after = text.partition(f'name: "image/{side}"')
                only = f"int_domain {{ min: {size} max: {size} }}"
                text = before + feature + after.replace("int_domain { min: 1 }", only, 1)
        return text

    def _sides(self) -> Mapping[str, set[int]]:
        """Heights and widths of all splits; none if a file is bad, which the build reports."""
        try:
            shapes = [
                read_idx_header(self._raw, file.path, file.dimensions).shape
                for file in find_idx_files(self._raw, self._options.prefix)
                if file.role == "images"
            ]
        except RawDataError:
            return {}
        return {
            "height": {height for _, height, _ in shapes},
            "width": {width for _, _, width in shapes},
        }

    def _splits(self) -> list[_Split]:
        """All splits; every byte of every file is verified once after each change of the file."""
        files = find_idx_files(self._raw, self._options.prefix)
        headers = {file: read_idx_header(self._raw, file.path, file.dimensions) for file in files}
        for plain, compressed in find_twins(files):
            self._expect_same(headers, plain, compressed)
        splits = []
        for name, (images, labels) in pair_files(files).items():
            image_header, label_header = headers[images], headers[labels]
            # A plain file needs no pass for this: its size was compared with the header.
            if image_header.gzip and images not in self._verified:
                for _ in read_data(self._raw, images.path, image_header):
                    pass
                self._verified[images] = 0
            if labels not in self._verified:
                blocks = read_data(self._raw, labels.path, label_header)
                self._verified[labels] = max(map(max, blocks))
            if image_header.shape[0] != label_header.shape[0]:
                raise RawDataError(
                    f"`{safe(images.path)}` has {image_header.shape[0]} images, "
                    f"`{safe(labels.path)}` has {label_header.shape[0]} labels",
                    hint="they do not belong together: fetch both again from the same place",
                )
            raw_files = (
                RawFile(images.path, image_header.stored, image_header.decoded),
                RawFile(labels.path, label_header.stored, label_header.decoded),
            )
            splits.append(_Split(name, raw_files, image_header, self._verified[labels]))
        return splits

    def _expect_same(
        self, headers: Mapping[IdxFile, IdxHeader], plain: IdxFile, compressed: IdxFile
    ) -> None:
        """Compare a file with its compressed twin, once."""
        if compressed in self._verified:
            return
        digests = set()
        for file in (plain, compressed):
            digest = hashlib.sha256(repr(headers[file].shape).encode())
            for block in read_data(self._raw, file.path, headers[file]):
                digest.update(block)
            digests.add(digest.digest())
        if len(digests) > 1:
            raise RawDataError(
                f"`{safe(plain.path)}` and `{safe(compressed.path)}` hold different data",
                hint="remove the one that is wrong",
            )
        self._verified[compressed] = 0

    def _open(self, split: str) -> tuple[IdxEntries, IdxEntries]:
        """The images and the labels of a split."""
        if split not in self._opened:
            files = pair_files(find_idx_files(self._raw, self._options.prefix)).get(split)
            if files is None:
                raise RawDataError(
                    f"split `{safe(split)}` is gone from `{safe(self._raw.root)}`",
                    hint="the raw files changed during the build: build again",
                )
            images, labels = (IdxEntries(self._raw, each.path, each.dimensions) for each in files)
            self._opened[split] = images, labels
        return self._opened[split]


def _estimate(pixels: int, encoding: str) -> int:
    """Bytes of one payload as the plan assumes them: the same for plain and gzip raw files.

    Keys, numbers and lengths take 99 bytes, and 35 more for a PNG. The PNG of such an image takes
    about a third of its pixels (a quarter for MNIST, a half for notMNIST), and 57 bytes of chunks.
    """
    return 99 + pixels if encoding == "raw" else 134 + 57 + pixels // 3
