"""IDX files, plain or in gzip: what their names say, and their content, verified.

Format (Yann LeCun's MNIST page): two zero bytes, a type byte, the number of dimensions, then each
dimension as u32 big-endian, then the data, row-major. Only type 0x08 (u8) is read. The first bytes
of a file tell whether it is gzip, its name does not.
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
SPLITS = {
    "train": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "t10k": "test",
    "test": "test",
}
_NAME = re.compile(
    rf"(?P<set>(?:.*[-_.])?)(?P<split>{'|'.join(SPLITS)})[-_.]"
    r"(?P<role>images|labels)[-_.]idx[0-9]-[a-z0-9]+(?:\.gz)?",
    re.DOTALL,
)
_BLOCK = 1 << 20
_HELD = 64 << 20
"""Content of at most this many bytes is held in memory: all of MNIST."""
_MAX_PIXELS = 1 << 26
"""Maximum bytes of one entry, so that a header cannot fill the memory."""


class IdxName(NamedTuple):
    """A file with the usual name of an IDX file."""

    path: str
    set: str
    """The start of the names of its set, as ``emnist-letters-``; mostly empty."""
    split: str
    """``train``, ``validation`` or ``test``."""
    role: str
    """``images`` or ``labels``."""


def idx_name(path: str) -> IdxName | None:
    """What a name says; None for a file of another kind."""
    match = _NAME.fullmatch(path)
    return match and IdxName(path, match["set"], SPLITS[match["split"]], match["role"])


class IdxFolder:
    """The IDX files right in a folder, all of one set, in pairs."""

    def __init__(self, raw: Storage, prefix: str) -> None:
        folder = safe(raw.root, limit=4096)
        entries = list(raw.list(recursive=False))
        # Some publishers unpack each file into a folder of the same name.
        named = {each.path: idx_name(each.path) for each in entries if each.kind != "dir"}
        self.stray = [path for path, name in named.items() if name is None]
        """Files with other names. Folders beside may be anything, such as builds."""
        wanted = prefix.rstrip("-_.")
        files = {
            path: name
            for path, name in named.items()
            if name is not None and (not prefix or name.set.rstrip("-_.") == wanted)
        }
        if not files:
            found = listed([each.path for each in entries], most=3)
            raise RawDataError(
                f"`{folder}` holds no IDX file: expected names such as "
                f"`{safe(prefix)}train-images-idx3-ubyte.gz`, found {found}",
                hint="name the folder of the IDX files with `--raw`, under their usual names",
            )
        sets = {name.set: path for path, name in files.items()}
        if len(sets) > 1:
            raise RawDataError(
                f"`{folder}` holds several sets: {listed(sets.values(), most=3)}",
                hint=f"select one with `--option prefix={safe(max(sets))}`, or keep one in the "
                "folder",
            )
        self.twins = [
            (name, files[f"{path}.gz"]) for path, name in files.items() if f"{path}.gz" in files
        ]
        """Files that are there plain and as ``.gz``, as torchvision leaves them."""
        compressed = {gz for _, gz in self.twins}
        self.pairs: dict[str, tuple[IdxName, IdxName]] = {}
        """Images and labels by split, train first; of twins, the plain files."""
        for split in dict.fromkeys(SPLITS.values()):
            roles: dict[str, list[IdxName]] = {role: [] for role in DIMENSIONS}
            for name in files.values():
                if name.split == split and name not in compressed:
                    roles[name.role].append(name)
            images, labels = roles.values()
            if len(images) == len(labels) == 1:
                self.pairs[split] = images[0], labels[0]
            elif images or labels:
                raise RawDataError(
                    f"`{folder}` needs one file of images and one of labels for `{split}`, found "
                    f"{listed(name.path for name in (*images, *labels))}",
                    hint="add the missing file, or remove what does not belong there",
                )


class IdxFile:
    """The content of a file, read and verified once, with random access to its entries.

    Not picklable: each process opens its own.
    """

    def __init__(self, raw: Storage, file: IdxName) -> None:
        self.path = file.path
        entry = raw.stat(file.path, follow="all")
        if entry is None or entry.kind != "file":
            is_link = entry is not None and entry.kind == "link"
            raise RawDataError(
                f"`{safe(file.path)}` is not a regular file"
                + (" but a link that leads nowhere" if is_link else ""),
                hint="`dvc checkout` or `dvc pull` restores the target of a link into DVC's cache"
                if is_link
                else "",
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
                raise RawDataError(
                    f"cannot read `{safe(file.path)}` as IDX: {safe(str(error))}",
                    hint="fetch it again, and compare its checksum with the publisher's",
                ) from error

    def _read(self, stream: BufferedIOBase, dimensions: int) -> None:
        start = stream.read(4 + 4 * dimensions)
        expected = bytes((0, 0, 0x08, dimensions))
        if len(start) < 4 + 4 * dimensions or start[:4] != expected:
            raise ValueError(
                f"expected {expected.hex(' ')} (u8, dimensions: {dimensions}) and the sizes at its "
                f"start, found {start[:4].hex(' ') or 'nothing'}"
            )
        self.shape: tuple[int, ...] = unpack(f">{dimensions}I", start[4:])
        self.entry_size = prod(self.shape[1:])
        said = " × ".join(map(str, self.shape))
        if 0 in self.shape or self.entry_size > _MAX_PIXELS:
            raise ValueError(f"its header says {said}")
        crc = 0
        self.largest = 0
        """The largest byte: in labels the largest label."""
        size = 0
        # One byte more than the data shows whether they end here, and makes gzip check its CRC.
        while block := stream.read(min(_BLOCK, prod(self.shape) - size + 1)):
            size += len(block)
            crc = zlib.crc32(block, crc)
            if dimensions == 1:
                self.largest = max(self.largest, max(block))
            self._data.write(block)
            if size > prod(self.shape):
                break
        if size != prod(self.shape):
            found = "more" if size > prod(self.shape) else str(size)
            raise ValueError(
                f"its header says {said}, {prod(self.shape)} bytes of data, found {found}"
            )
        self.decoded = len(start) + size
        self.content = self.shape, crc
        """The same for the same content."""

    def entry(self, index: int) -> bytes:
        """The bytes of the entry number `index`, from 0."""
        self._data.seek(index * self.entry_size)
        data = self._data.read(self.entry_size)
        if len(data) != self.entry_size:
            raise RawDataError(
                f"`{safe(self.path)}` has no entry {index}: it changed during the build",
                hint="build again",
            )
        return data
