"""WebDataset's tar files: a sample for each record.

https://github.com/webdataset/webdataset
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal
from urllib.parse import quote_from_bytes

from tfrecreg.api import (
    FailureError,
    RecordExporter,
    RecordFormat,
    Schema,
    ShardRecord,
    ShardToExport,
    encode,
    keyed_examples,
    safe,
)
from tfrecreg.builtin.export.formats.file_objects import buffered
from tfrecreg.builtin.export.formats.samples import SampleLayout, sample_features

_LABEL = "image/class/label"
_SINGLE = ((), (1,))
"""Shapes of a single value."""
_MAX_KEY = 100
"""Characters of a key in a member's name."""
_MODE = 0o644
_IMAGE_NAME = re.compile(r"(.+)\.(?:bmp|gif|jpe?g|png|webp)", re.IGNORECASE | re.DOTALL)
_PLAIN = re.compile(r"(?!__)(?:[\w+=@,-][\w+=@,.-]*/)*[\w+=@,-]+", re.ASCII)
"""Keys that any reader takes as they are: the key ends at the first dot of the file's name, and
names like `__this__` are metadata to WebDataset."""


@dataclass(frozen=True)
class WebDatasetExportOptions:
    """What can be set with `--option`."""

    names: Literal["keys", "escaped"] = "keys"
    """Names of samples: the keys of the records where they are safe, so that samples of other sets
    can be joined with them; or always percent-escaped.
    """


class WebDatasetExporter(RecordExporter):
    """A tar file for each shard."""

    Options: ClassVar[type[Any]] = WebDatasetExportOptions
    reader = "WebDataset"

    def file_name(self, split: str, number: int, of: int) -> str:
        """As brace expressions count them: ``mnist-train-000000.tar``."""
        head = super().file_name(split, number, of).rpartition(".tfrecord-")[0]
        return f"{head}-{number:06d}.tar"

    def format(self) -> WebDatasetFormat:
        """With files for the images and the label of the schema."""
        layout = sample_layout(self.dataset.schema, self.dataset.manifest.labels)
        return WebDatasetFormat(layout, plain_names=self.options.names == "keys")

    def how_to_read(self, folder: str) -> str:
        """The largest split, and its shards as the library counts them."""
        manifest = self.dataset.manifest
        largest = max(manifest.splits, key=lambda each: each.records, default=None)
        split = largest.name if largest is not None else ""
        last = sum(each.split == split for each in manifest.shards) - 1
        pattern = f"{folder}/{manifest.dataset}-{split}-{{000000..{max(last, 0):06d}}}.tar"
        return f"read it: webdataset.WebDataset({pattern!a})"


@dataclass(frozen=True, slots=True)
class WebDatasetFormat(RecordFormat):
    """Writes and reads tar files."""

    layout: SampleLayout
    plain_names: bool = True
    """Whether samples are called as their keys where these are safe."""

    def write(self, task: ShardToExport, records: Iterator[ShardRecord]) -> None:
        """Write all records."""
        names = _Names(self.plain_names)
        with task.folder.create(task.name) as file:
            # Not by a TarFile: it would keep the header of every member.
            for record in keyed_examples(task, records):
                name = names.name(record.number, record.key)
                for member in self.layout.members(record.key, record.features):
                    header = _header(f"{name}.{member.suffix}", len(member.data))
                    file.write(header)
                    file.write(member.data)
                    file.write(bytes(-len(member.data) % tarfile.BLOCKSIZE))
            file.write(bytes(2 * tarfile.BLOCKSIZE))  # the end of an archive

    def read(self, task: ShardToExport) -> Iterator[bytes]:
        """The canonical payloads, in order."""
        with task.folder.open(task.name) as reader, buffered(reader) as file:
            try:
                with tarfile.open(fileobj=file, mode="r:") as tar:
                    for members in _samples(tar):
                        yield encode(sample_features(members))
            except (tarfile.TarError, EOFError, ValueError, KeyError) as error:
                raise FailureError(
                    f"`{safe(task.name)}` cannot be read again: {safe(str(error), limit=300)}",
                    hint="the disk may be faulty: export to another one",
                ) from error


def sample_layout(schema: Schema, labels: Mapping[str, Sequence[str]]) -> SampleLayout:
    """The files of the samples of one dataset."""
    images = _image_features(schema)
    integers = {each.name: each for each in schema.features if each.kind == "INT"}
    named = [
        name
        for name, rule in integers.items()
        if labels.get(name) and rule.is_required and rule.tensor_shape in _SINGLE
    ]
    label = named[0] if len(named) == 1 else _LABEL if _LABEL in integers else None
    prefixes = _prefixes(images) if len(images) > 1 else [""] * len(images)
    return SampleLayout(tuple(zip(images, prefixes, strict=True)), label)


def _image_features(schema: Schema) -> tuple[str, ...]:
    """The features with one image a record: a list of images stays a list, in the JSON."""
    images = [each for each in schema.features if each.is_image]
    for shapes in (_SINGLE, (None,)):
        found = tuple(each.name for each in images if each.tensor_shape in shapes)
        if found:
            return found
    return ()


def _prefixes(images: Sequence[str]) -> list[str]:
    """What the suffix of each feature begins with. Loaders convert suffixes to lower case."""
    prefixes: list[str] = []
    for number, name in enumerate(images):
        prefix = re.sub("[^a-z0-9]", "_", name.lower()) + "."
        prefixes.append(prefix if prefix not in prefixes else f"{number}_{prefix}")
    return prefixes


class _Names:
    """Names of the samples of one shard, each different."""

    def __init__(self, plain: bool) -> None:
        self._plain = plain
        self._given: set[str] = set()

    def name(self, number: int, key: str | None) -> str:
        """The name for a record: its key if possible, otherwise a name with its number."""
        name = next(filter(self._is_free, self._names(key or "")), "")
        if not name:
            name = f"record_{number:09d}"
            while name in self._given:  # a key that has the form of these names
                name += "_"
        self._given.add(name)
        return name

    def _names(self, key: str) -> Iterator[str]:
        """Names that tell the key, the best first."""
        if self._plain:
            image = _IMAGE_NAME.fullmatch(key)
            plain = image[1] if image else key
            if _PLAIN.fullmatch(plain):
                yield plain
        yield _safe(key)

    def _is_free(self, name: str) -> bool:
        return 0 < len(name) <= _MAX_KEY and name not in self._given


def _safe(text: str) -> str:
    """Text without dots, slashes and anything else that a path or a loader could misread."""
    data = text.encode("utf-8", "surrogateescape")
    # `quote` never escapes these two, and dots end a key.
    return quote_from_bytes(data, safe="").replace(".", "%2E").replace("~", "%7E")


def _header(name: str, size: int) -> bytes:
    """The header of a file; time, user and group are 0 and empty."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, _MODE
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")


def _samples(tar: tarfile.TarFile) -> Iterator[dict[str, bytes]]:
    """The files of each sample by suffix: neighbors with the same key."""
    current, members = None, dict[str, bytes]()
    while (header := tar.next()) is not None:
        folder, slash, base = header.name.rpartition("/")
        stem, _, suffix = base.partition(".")
        key = f"{folder}{slash}{stem}"
        file = tar.extractfile(header)
        if key != current and members:
            yield members
            members = {}
        current = key
        members[suffix] = file.read() if file is not None else b""
        # It keeps the header of every member, and the stubs do not name the list.
        tar.members.clear()  # type: ignore[attr-defined]
    if members:
        yield members
