"""The source `mnist`: each image of an IDX file, with its label, becomes one example.

An IDX file consists of two zero bytes, a type byte, a byte with the number of dimensions, each
dimension as big-endian u32, and the data. It may be compressed with gzip.
"""

from __future__ import annotations

import re
import weakref
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from gzip import GzipFile
from io import BufferedIOBase, BufferedReader
from math import prod
from struct import unpack
from tempfile import SpooledTemporaryFile
from typing import Any, ClassVar, Literal, NamedTuple

from tfrecreg.api import (
    Example,
    Item,
    RawDataError,
    RawFile,
    ReadingFile,
    Remark,
    Source,
    Storage,
    bundled_schema,
    bytes_feature,
    int64_feature,
    listed,
    paths_remark,
    png_of,
    safe,
)

DIMENSIONS = {"images": 3, "labels": 1}
SPLITS = {"train": "train"}
SPLITS |= dict.fromkeys(("validation", "valid", "val"), "validation")
SPLITS |= dict.fromkeys(("t10k", "test"), "test")
_NAME = re.compile(
    rf"(?P<set>(?:.*[-_.])?)(?P<split>{'|'.join(SPLITS)})[-_.]"
    r"(?P<role>images|labels)[-_.]idx[0-9]-[a-z0-9]+(?:\.gz)?",
    re.DOTALL,
)
_BLOCK = 1 << 20
_HELD = 64 << 20
"""Content of up to this many bytes is held in memory. All of MNIST is smaller."""
_MAX_PIXELS = 1 << 26
"""Maximum bytes of one entry, so that a header cannot fill the memory."""


class IdxName(NamedTuple):
    """A file with the usual name of an IDX file."""

    path: str
    set: str
    """The common beginning of the names in its set, such as ``emnist-letters-``; usually empty."""
    split: str
    role: str


def idx_name(path: str) -> IdxName | None:
    """The facts in a file's name; None for a file of another kind."""
    match = _NAME.fullmatch(path)
    return match and IdxName(path, match["set"], SPLITS[match["split"]], match["role"])


class IdxFolder:
    """The IDX files directly in a folder: pairs of images and labels, which form one set."""

    def __init__(self, raw: Storage, prefix: str) -> None:
        entries = list(raw.list(recursive=False))
        # Some publishers unpack each file into a folder of the same name.
        paths = [each.path for each in entries if each.kind != "dir"]
        self.stray = [path for path in paths if idx_name(path) is None]
        """Files with other names. Folders do not count: they may be anything, such as builds."""
        wanted = prefix.rstrip("-_.")
        every = [name for name in map(idx_name, paths) if name is not None]
        chosen = [name for name in every if not prefix or name.set.rstrip("-_.") == wanted]
        if len({name.set for name in chosen}) != 1:
            sets = {name.set: name.path for name in chosen or every}.values()
            found = listed(sets or [each.path for each in entries], most=3)
            raise RawDataError(
                f"`{raw.root}` should hold the IDX files of one dataset, such as "
                f"`{prefix}train-images-idx3-ubyte.gz`, found {found}",
                hint="--option prefix=emnist-letters- selects one of several datasets",
            )
        files = {name.path: name for name in chosen}
        self.twins = [
            (name, files[f"{path}.gz"]) for path, name in files.items() if f"{path}.gz" in files
        ]
        """Files that exist both plain and as ``.gz``, as torchvision leaves them."""
        compressed = {gz for _, gz in self.twins}
        self.pairs: dict[str, tuple[IdxName, IdxName]] = {}
        """The image file and the label file of each split. The split `train` comes first. If a file
        exists in both forms, the plain one is used.
        """
        for split in dict.fromkeys(SPLITS.values()):
            names = {each for each in chosen if each.split == split} - compressed
            pair = sorted(names, key=lambda each: each.role)
            if [each.role for each in pair] == list(DIMENSIONS):
                self.pairs[split] = pair[0], pair[1]
            elif pair:
                raise RawDataError(
                    f"`{raw.root}` needs one file of images and one of labels for `{split}`, found "
                    f"{listed(sorted(each.path for each in pair))}"
                )


class IdxFile:
    """The content of a file, read and verified once, with random access to its entries."""

    def __init__(self, raw: Storage, file: IdxName) -> None:
        self.path = file.path
        entry = raw.stat(file.path, follow="all")
        if entry is None or entry.kind != "file":
            raise RawDataError(
                f"`{file.path}` is neither a file nor a link to one",
                hint="if DVC's cache lacks the link's target, run `dvc pull`",
            )
        self._data = SpooledTemporaryFile(_HELD)  # noqa: SIM115  it lives as long as this object
        weakref.finalize(self, self._data.close)
        with raw.open(file.path) as reader:
            self.stored = reader.size
            plain = BufferedReader(ReadingFile(reader))
            zipped = plain.peek(2)[:2] == b"\x1f\x8b"
            try:
                self._read(GzipFile(fileobj=plain) if zipped else plain, DIMENSIONS[file.role])
            except (OSError, EOFError, ValueError, zlib.error) as error:
                raise RawDataError(f"cannot read `{file.path}` as IDX: {error}") from error

    def _read(self, stream: BufferedIOBase, dimensions: int) -> None:
        start = stream.read(4 + 4 * dimensions)
        if len(start) < 4 + 4 * dimensions or start[:4] != bytes((0, 0, 0x08, dimensions)):
            raise ValueError(f"it has no header for u8 data with {dimensions} dimensions")
        self.shape: tuple[int, ...] = unpack(f">{dimensions}I", start[4:])
        self.entry_size, expected = prod(self.shape[1:]), prod(self.shape)
        said = f"its header says {' × '.join(map(str, self.shape))}"
        if 0 in self.shape or self.entry_size > _MAX_PIXELS:
            raise ValueError(f"{said}, which is empty or too large")
        self.largest = crc = size = 0
        # One byte more shows whether the data end here, and makes gzip check its CRC.
        while block := stream.read(min(_BLOCK, expected - size + 1)):
            size += len(block)
            crc = zlib.crc32(block, crc)
            if dimensions == 1:
                self.largest = max(self.largest, max(block))
            self._data.write(block)
            if size > expected:
                raise ValueError(f"{said}: expected {expected} bytes of data, found more")
        if size != expected:
            raise ValueError(f"{said}: expected {expected} bytes of data, found {size}")
        self.decoded = len(start) + size
        self.content = self.shape, crc

    def entry(self, index: int) -> bytes:
        """The bytes of one entry. Entries are numbered from 0."""
        self._data.seek(index * self.entry_size)
        data = self._data.read(self.entry_size)
        if len(data) != self.entry_size:
            raise RawDataError(f"`{self.path}` changed during the build: it has no entry {index}")
        return data


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

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.raw, self.options)

    def raw_files(self) -> Iterator[RawFile]:
        for files in self._splits.values():
            for file in files:
                yield RawFile(file.path, file.stored, file.decoded)

    def labels(self) -> Mapping[str, Sequence[str]]:
        largest = max(labels.largest for _, labels in self._splits.values())
        return {_LABEL: [str(number) for number in range(largest + 1)]}

    def items(self) -> Iterator[Item | Remark]:
        yield from self._remarks()
        for split, (images, _) in self._splits.items():
            # Estimated: a PNG takes about a third of the pixels, and 57 bytes of chunks.
            pixels = images.entry_size
            size = 99 + pixels if self.options.encoding == "raw" else 134 + 57 + pixels // 3
            for index in range(images.shape[0]):
                yield Item(split, f"{index:05d}", size)

    def example(self, item: Item) -> Example:
        images, labels = self._splits[item.split]
        index = int(item.key)
        pixels = images.entry(index)
        _, height, width = images.shape
        example = {
            "image/height": int64_feature(height),
            "image/width": int64_feature(width),
            _LABEL: int64_feature(labels.entry(index)[0]),
        }
        if self.options.encoding == "raw":
            example["image/raw"] = bytes_feature(pixels)
        else:
            example["image/encoded"] = bytes_feature(_encode_png(pixels, height, width))
            example["image/format"] = _PNG
        return example

    def schema(self) -> str:
        name = "mnist_raw" if self.options.encoding == "raw" else "mnist"
        text = bundled_schema("tfrecreg_mnist", name)
        try:
            shapes = [images.shape for images, _ in self._splits.values()]
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
        if folder.stray:
            yield paths_remark(next(iter(folder.pairs)), "SRC015", folder.stray, "stray files")
        for plain, compressed in folder.twins:
            if IdxFile(self.raw, plain).content != IdxFile(self.raw, compressed).content:
                raise RawDataError(f"`{plain.path}` and `{compressed.path}` hold different data")
            detail = f"`{safe(plain.path)}` holds the same data and is read instead"
            yield Remark(plain.split, compressed.path, "SRC116", detail)

    @cached_property
    def _folder(self) -> IdxFolder:
        return IdxFolder(self.raw, self.options.prefix)

    @cached_property
    def _splits(self) -> Mapping[str, tuple[IdxFile, IdxFile]]:
        """The verified images and labels of each split. The split `train` comes first."""
        found: dict[str, tuple[IdxFile, IdxFile]] = {}
        for split, pair in self._folder.pairs.items():
            images, labels = (IdxFile(self.raw, name) for name in pair)
            if images.shape[0] != labels.shape[0]:
                raise RawDataError(
                    f"`{images.path}` has {images.shape[0]} images, but `{labels.path}` has "
                    f"{labels.shape[0]} labels: they do not belong together"
                )
            found[split] = images, labels
        return found


def _encode_png(pixels: bytes, height: int, width: int) -> bytes:
    """The image as PNG. With the same zlib, the same pixels give the same bytes.

    Every scanline has filter 0 (none), which compresses such images better than the other four.
    """
    # Allocating and clearing a window larger than a small image takes as long as compressing it.
    # zlib's windows of 8 and 9 bits do not have their declared size.
    window = min(max((height * (width + 1)).bit_length(), 10), 15)
    # A block takes 2^(memory level + 6) symbols: more than a small image has.
    deflate = zlib.compressobj(5, zlib.DEFLATED, window, window // 2)
    lines = b"\0" + b"\0".join(unpack(f"{width}s" * height, pixels))
    return png_of(deflate.compress(lines) + deflate.flush(), width, height)
