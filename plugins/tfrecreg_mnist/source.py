"""The source `mnist`: IDX pictures and labels become one example a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from tfrecreg.api import (
    Example,
    Item,
    RawDataError,
    RawFile,
    Skipped,
    Source,
    Storage,
    UsageError,
    bundled_schema,
    bytes_feature,
    int64_feature,
    safe,
)
from tfrecreg_mnist import png
from tfrecreg_mnist.idx import Form, look, read
from tfrecreg_mnist.layout import LABELS, IdxFile, Pair, find, pair
from tfrecreg_mnist.table import Table

__all__ = ["MnistOptions", "MnistSource"]

_LABEL = "image/class/label"
_PNG = bytes_feature(b"png")
_OVERHEAD = {"png": 134, "raw": 99}
"""Bytes of an example of a small picture beside the picture: keys, numbers, lengths."""


@dataclass(frozen=True)
class MnistOptions:
    """What `--option` takes for the source `mnist`."""

    encoding: Literal["png", "raw"] = "png"
    """`png`: a PNG in `image/encoded`. `raw`: the pixels themselves in `image/raw`."""
    prefix: str = ""
    """Where a folder holds several sets: how the names of the wanted one start, as
    `emnist-letters`."""

    def __post_init__(self) -> None:
        if self.encoding not in ("png", "raw"):
            raise UsageError(
                f"option `encoding` is `{safe(str(self.encoding))}`, expected `png` or `raw`",
                hint="`--option encoding=png`, or leave it away",
            )


class _Split(NamedTuple):
    """One split, verified."""

    name: str
    images: tuple[IdxFile, Form]
    labels: tuple[IdxFile, Form]
    largest: int
    """The largest label."""


class MnistSource(Source):
    """Pictures of a folder of IDX files. An item's key is the picture's number in its file.

    The key has five digits or more (`00042`), counts from 0, and is all that an item carries.
    Every file of the folder that looks like a part of the dataset must be whole and have its
    partner: a split never vanishes silently.
    """

    Options: ClassVar[type[Any]] = MnistOptions

    def __init__(self, raw: Storage, options: MnistOptions) -> None:
        self._raw = raw
        self._options = options
        self._verified: dict[tuple[str, int, int, int], int] = {}
        self._tables: dict[str, tuple[Table, Table]] = {}

    def __reduce__(self) -> tuple[object, ...]:
        # Open files stay where they are: each process opens its own.
        return type(self), (self._raw, self._options)

    def raw_files(self) -> Iterator[RawFile]:
        for split in self._splits():
            for file, form in (split.images, split.labels):
                yield RawFile(file.path, form.stored, form.decoded)

    def labels(self) -> Mapping[str, Sequence[str]]:
        largest = max(split.largest for split in self._splits())
        return {_LABEL: [str(number) for number in range(largest + 1)]}

    def items(self) -> Iterator[Item | Skipped]:
        for split in self._splits():
            form = split.images[1]
            size = _estimate(form.entry, self._options.encoding)
            for index in range(form.shape[0]):
                yield Item(split.name, f"{index:05d}", size)

    def example(self, item: Item) -> Example | Skipped:
        images, labels = self._open(item.split)
        index = int(item.key)
        pixels = images.entry(index)
        _, height, width = images.form.shape
        example = {
            "image/height": int64_feature(height),
            "image/width": int64_feature(width),
            _LABEL: int64_feature(labels.entry(index)[0]),
        }
        if self._options.encoding == "raw":
            example["image/raw"] = bytes_feature(pixels)
        else:
            example["image/encoded"] = bytes_feature(png.encode(pixels, height, width))
            example["image/format"] = _PNG
        return example

    def schema(self) -> str:
        name = "mnist_raw" if self._options.encoding == "raw" else "mnist"
        return bundled_schema("tfrecreg_mnist", name)

    def _splits(self) -> list[_Split]:
        """All splits, every byte of every file verified since it last changed."""
        files = find(self._raw, self._options.prefix)
        forms = {file: look(self._raw, file.path, file.dimensions) for file in files}
        return [self._verify(each, forms) for each in pair(files)]

    def _verify(self, files: Pair, forms: Mapping[IdxFile, Form]) -> _Split:
        images, labels = forms[files.images], forms[files.labels]
        self._largest(files.images, images)
        largest = self._largest(files.labels, labels)
        if images.shape[0] != labels.shape[0]:
            raise RawDataError(
                f"`{safe(files.images.path)}` has {images.shape[0]} pictures, "
                f"`{safe(files.labels.path)}` has {labels.shape[0]} labels",
                hint="they are no pair: fetch both again, from one place",
            )
        return _Split(files.split, (files.images, images), (files.labels, labels), largest)

    def _largest(self, file: IdxFile, form: Form) -> int:
        """Read a file to its end once, which verifies it; the largest byte of labels, else 0."""
        known = self._verified.get(file.identity)
        if known is None:
            known = 0
            # The size of a plain file of pictures was compared with its header already.
            if form.gzip or file.role == LABELS:
                for block in read(self._raw, file.path, form):
                    known = max(known, max(block)) if file.role == LABELS else 0
            self._verified[file.identity] = known
        return known

    def _open(self, split: str) -> tuple[Table, Table]:
        tables = self._tables.get(split)
        if tables is None:
            for each in pair(find(self._raw, self._options.prefix)):
                if each.split == split:
                    break
            else:
                raise RawDataError(
                    f"split `{safe(split)}` is gone from `{safe(self._raw.root)}`",
                    hint="the raw files changed during the build: build again",
                )
            files = (each.images, each.labels)
            first, second = (Table(self._raw, file.path, file.dimensions) for file in files)
            tables = self._tables[split] = (first, second)
        return tables


def _estimate(pixels: int, encoding: str) -> int:
    """Bytes of one payload as the plan assumes them: the same for plain and gzip raw files.

    A PNG of this kind of picture takes about a third of its pixels (a quarter for MNIST, a half
    for notMNIST), and 57 bytes of chunks around that.
    """
    picture = pixels if encoding == "raw" else 57 + pixels // 3
    return _OVERHEAD[encoding] + picture
