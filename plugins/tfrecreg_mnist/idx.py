"""Reads IDX files of u8, plain or gzip: parses their names, and verifies their content.

A file consists of two zero bytes, a type byte, a byte with the number of dimensions, each dimension
as big-endian u32, and the data.
"""

from __future__ import annotations

import re
import weakref
import zlib
from gzip import GzipFile
from io import BufferedIOBase, BufferedReader
from math import prod
from struct import unpack
from tempfile import SpooledTemporaryFile
from typing import NamedTuple

from tfrecreg.api import RawDataError, ReadingFile, Storage, listed, safe

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
        folder = raw.root
        entries = list(raw.list(recursive=False))
        # Some publishers unpack each file into a folder of the same name.
        named = {each.path: idx_name(each.path) for each in entries if each.kind != "dir"}
        self.stray = [path for path, name in named.items() if name is None]
        """Files with other names. Folders do not count: they may be anything, such as builds."""
        wanted = prefix.rstrip("-_.")
        files = {
            path: name
            for path, name in named.items()
            if name is not None and (not prefix or name.set.rstrip("-_.") == wanted)
        }
        if not files:
            raise RawDataError(
                f"`{folder}` holds no IDX file: expected names such as "
                f"`{prefix}train-images-idx3-ubyte.gz`, found "
                f"{listed([each.path for each in entries], most=3)}"
            )
        sets = {name.set: path for path, name in files.items()}
        if len(sets) > 1:
            raise RawDataError(
                f"`{folder}` holds several sets: {listed(sets.values(), most=3)}",
                hint=f"select one with `--option prefix={safe(max(sets))}`",
            )
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
            names = [each for each in files.values() if each.split == split]
            found = sorted({*names} - compressed, key=lambda each: (each.role, each.path))
            if [each.role for each in found] == list(DIMENSIONS):
                self.pairs[split] = found[0], found[1]
            elif found:
                raise RawDataError(
                    f"`{folder}` needs one file of images and one of labels for `{split}`, found "
                    f"{listed(each.path for each in found)}"
                )


class IdxFile:
    """The content of a file, read and verified once, with random access to its entries."""

    def __init__(self, raw: Storage, file: IdxName) -> None:
        self.path = file.path
        entry = raw.stat(file.path, follow="all")
        if entry is None or entry.kind != "file":
            raise RawDataError(
                f"`{file.path}` is neither a file nor a link to one",
                hint="`dvc checkout` or `dvc pull` restores the target of a link into DVC's cache",
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
