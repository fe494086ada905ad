"""Exports WebDataset's tar files, with a sample per record.

https://github.com/webdataset/webdataset

Images and labels become separate files, unless separate files would lose information. Loaders
decode them according to their suffixes. All other features become JSON.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote_from_bytes

from tfrecreg.api import (
    Example,
    Kind,
    Reader,
    ReadingFile,
    RecordExporter,
    RecordFormat,
    Schema,
    ShardRecord,
    ShardToExport,
    bytes_feature,
    encode,
    feature_from_json,
    feature_to_json,
    int64_feature,
    keyed_examples,
    sniff,
)

_BUFFER = 1 << 18


def buffered(reader: Reader) -> io.BufferedReader:
    """A :class:`ReadingFile` with a buffer for many small sequential reads."""
    return io.BufferedReader(ReadingFile(reader), _BUFFER)


_SUFFIXES = {"jpeg": "jpg", "png": "png", "gif": "gif", "webp": "webp", "bmp": "bmp"}
_OTHER_SUFFIX = "bin"
_LABEL_SUFFIX = "cls"
_JSON_SUFFIX = "json"


@dataclass(frozen=True, slots=True)
class SampleLayout:
    """The features that become separate files. Picklable."""

    images: tuple[tuple[str, str], ...]
    """Each image feature, with the prefix of its suffixes. A single feature has an empty prefix."""
    label: str | None
    """The feature with the label."""

    def members(self, key: str | None, features: Example) -> Iterator[tuple[str, bytes]]:
        """The suffix and the content of each file of a record; the JSON comes last."""
        files: dict[str, str] = {}
        for name, prefix in self.images:
            feature = features.get(name)
            if feature is not None and feature.kind is Kind.BYTES and feature.count == 1:
                data = feature.values[0]
                suffix = prefix + _SUFFIXES.get(sniff(data) or "", _OTHER_SUFFIX)
                files[suffix] = name
                yield suffix, data
        label = None if self.label is None else features.get(self.label)
        if label is not None and label.kind is Kind.INT64 and label.count == 1:
            files[_LABEL_SUFFIX] = str(self.label)
            yield _LABEL_SUFFIX, str(label.values[0]).encode()
        apart = set(files.values())
        document = {
            "key": key,
            "files": files,
            "features": {
                name: feature_to_json(feature)
                for name, feature in features.items()
                if name not in apart
            },
        }
        text = json.dumps(document, sort_keys=True, allow_nan=False, separators=(",", ":"))
        yield _JSON_SUFFIX, text.encode()


def sample_features(members: Mapping[str, bytes]) -> Example:
    """The features of a sample, read from its files. `members` has the files by suffix."""
    document = json.loads(members[_JSON_SUFFIX])
    features = {name: feature_from_json(value) for name, value in document["features"].items()}
    for suffix, name in document["files"].items():
        data = members[suffix]
        is_label = suffix == _LABEL_SUFFIX
        features[name] = int64_feature(int(data)) if is_label else bytes_feature(data)
    return features


_LABEL = "image/class/label"
_SINGLE = ((), (1,))
"""Shapes that mean a single value."""
_MAX_KEY = 100
"""Keys with more characters cannot become the names of samples."""
_MODE = 0o644
_IMAGE_NAME = re.compile(r"(.+)\.(?:bmp|gif|jpe?g|png|webp)", re.IGNORECASE | re.DOTALL)
_PLAIN = re.compile(r"(?!__)(?:[\w+=@,-][\w+=@,.-]*/)*[\w+=@,-]+", re.ASCII)
"""Keys that every reader returns unchanged. A key ends at the first dot of the file's name.
WebDataset treats names like `__this__` as metadata.
"""


class WebDatasetExporter(RecordExporter):
    """Exports a tar file for each shard."""

    reader = "WebDataset"

    def file_name(self, split: str, number: int, of: int) -> str:
        """The name of a tar file, numbered for brace expressions: ``mnist-train-000000.tar``."""
        head = super().file_name(split, number, of).rpartition(".tfrecord-")[0]
        return f"{head}-{number:06d}.tar"

    def format(self) -> WebDatasetFormat:
        """The format, which stores the schema's images and label as separate files."""
        return WebDatasetFormat(sample_layout(self.dataset.schema, self.dataset.manifest.labels))

    def how_to_read(self, folder: str) -> str:
        """The call that reads all shards of the largest split."""
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

    def write(self, task: ShardToExport, records: Iterator[ShardRecord]) -> None:
        """Write all records."""
        names = _Names()
        with task.folder.create(task.name) as file:
            # Without TarFile, which would keep the header of every member.
            for record in keyed_examples(task, records):
                name = names.name(record.number, record.key)
                for suffix, data in self.layout.members(record.key, record.features):
                    info = tarfile.TarInfo(f"{name}.{suffix}")  # without time and user
                    info.size, info.mode = len(data), _MODE
                    file.write(info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict"))
                    file.write(data)
                    file.write(bytes(-len(data) % tarfile.BLOCKSIZE))
            file.write(bytes(2 * tarfile.BLOCKSIZE))  # the end of an archive

    def read(self, task: ShardToExport) -> Iterator[bytes]:
        """The canonical payloads, in order."""
        with task.folder.open(task.name) as reader, buffered(reader) as file:
            try:
                with tarfile.open(fileobj=file, mode="r:") as tar:
                    for members in _samples(tar):
                        yield encode(sample_features(members))
            except (tarfile.TarError, EOFError) as error:
                raise ValueError(str(error)) from error


def sample_layout(schema: Schema, labels: Mapping[str, Sequence[str]]) -> SampleLayout:
    """Which features of a dataset become separate files in its samples."""
    images = _image_features(schema)
    integers = {each.name: each for each in schema.features if each.kind == "INT"}
    named = [
        name
        for name, rule in integers.items()
        if labels.get(name) and rule.is_required and rule.tensor_shape in _SINGLE
    ]
    label = named[0] if len(named) == 1 else _LABEL if _LABEL in integers else None
    if len(images) < 2:
        return SampleLayout(tuple((name, "") for name in images), label)
    prefixes: dict[str, str] = {}
    for number, name in enumerate(images):
        prefix = re.sub("[^a-z0-9]", "_", name.lower()) + "."  # loaders make suffixes lower case
        taken = prefix in prefixes.values()
        prefixes[name] = f"{number}_{prefix}" if taken else prefix
    return SampleLayout(tuple(prefixes.items()), label)


def _image_features(schema: Schema) -> tuple[str, ...]:
    """The features with one image per record. Lists of images stay in the JSON."""
    images = [each for each in schema.features if each.is_image]
    for shapes in (_SINGLE, (None,)):
        found = tuple(each.name for each in images if each.tensor_shape in shapes)
        if found:
            return found
    return ()


class _Names:
    """Unique names for the samples of one shard."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def name(self, number: int, key: str | None) -> str:
        """A name for a record: its key if possible, otherwise a name with the record's number."""
        for name in self._names(key or ""):
            if 0 < len(name) <= _MAX_KEY and name not in self._given:
                break
        else:
            name = f"record_{number:09d}"
            while name in self._given:  # a key may look like these names
                name += "_"
        self._given.add(name)
        return name

    def _names(self, key: str) -> Iterator[str]:
        """Names that identify the key. First comes the plain key, as in other tools."""
        image = _IMAGE_NAME.fullmatch(key)
        plain = image[1] if image else key
        if _PLAIN.fullmatch(plain):
            yield plain
        data = key.encode("utf-8", "surrogateescape")
        # `quote` never escapes these two characters, and dots end a key.
        yield quote_from_bytes(data, safe="").replace(".", "%2E").replace("~", "%7E")


def _samples(tar: tarfile.TarFile) -> Iterator[dict[str, bytes]]:
    """Yield each sample as a mapping from suffixes to files. Adjacent files with the same key form
    a sample.
    """
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
        # `tar` would keep the header of every member. The type stubs lack its list `members`.
        tar.members.clear()  # type: ignore[attr-defined]
    if members:
        yield members
