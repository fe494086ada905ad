"""Writes the files that turn a folder of shards into a dataset of TensorFlow Datasets.

Records are rewritten if the files become ArrayRecord files, or if boxes become `BBoxFeature`.

TFDS stores a box as four numbers in one feature, in the order ymin, xmin, ymax, xmax. TF Object
Detection's keys have one feature per side. Joining the sides changes no number, and `read`
separates them again, so the content digest stays the same.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, ClassVar, Literal

import numpy as np

from tfrecreg.api import (
    Example,
    ExportedDataset,
    ExportedShard,
    Feature,
    Folder,
    Kind,
    MissingExtraError,
    RecordBatch,
    RecordExporter,
    RecordFormat,
    Schema,
    ShardRecord,
    ShardToExport,
    UsageError,
    canonical,
    decode,
    encode,
    export_plain,
    float_feature,
    safe,
    write_records,
    written_records,
)
from tfrecreg.builtin.export.connectors import (
    SIDES,
    Connectors,
    ImagesSeen,
    Json,
    make_connectors,
    require_expressible,
    version_notes,
)
from tfrecreg.builtin.export.records import ArrayRecordFormat

FileFormat = Literal["tfrecord", "array_record"]


def box_prefixes(schema: Schema) -> tuple[str, ...]:
    """The common prefix of each set of box sides, such as ``image/object/bbox``."""
    floats = {each.name for each in schema.features if each.kind == "FLOAT"}
    found = (name.removesuffix("/ymin") for name in sorted(floats) if name.endswith("/ymin"))
    return tuple(each for each in found if {f"{each}/{side}" for side in SIDES} <= floats)


@dataclass(slots=True)
class Seen:
    """What is known about the records of an exported shard. Picklable."""

    images: dict[str, ImagesSeen]
    """What the images of each feature have in common."""
    payload_bytes: int = 0


@dataclass(frozen=True, slots=True)
class TfdsRecords(RecordFormat):
    """Writes and reads shards. Picklable."""

    file_format: FileFormat
    boxes: tuple[str, ...]
    """Prefixes of the box sides that are joined into one feature."""
    images: tuple[str, ...]
    """Features with images whose headers are read."""

    def write(self, task: ShardToExport, records: Iterator[ShardRecord]) -> Seen:
        """Write all records."""
        seen = Seen({name: ImagesSeen() for name in self.images})
        made = self._made(task, records, seen)
        if self.file_format == "array_record":
            ArrayRecordFormat().write(task, made)
        else:
            write_records(task, (each.payload for each in made))
        return seen

    def read(self, task: ShardToExport) -> Iterator[bytes]:
        """The canonical payloads of the dataset, in order."""
        if self.file_format == "array_record":
            payloads = ArrayRecordFormat().read(task)
        else:
            payloads = map(canonical, written_records(task))
        for payload in payloads:
            if not self.boxes:
                yield payload
                continue
            features = dict(decode(payload))
            for prefix in self.boxes:
                if prefix in features:
                    features.update(_split(prefix, features.pop(prefix)))
            yield encode(features)

    def _made(
        self, task: ShardToExport, records: Iterator[ShardRecord], seen: Seen
    ) -> Iterator[ShardRecord]:
        for record in records:
            where = f"record {record.number} of `{safe(task.entry.path)}`"
            try:
                features = dict(decode(record.payload))
            except ValueError:
                raise UsageError(
                    f"{where} of `{task.reference}` is not a tf.train.Example",
                    hint="`--to arrayrecord` exports any payload",
                ) from None
            for name, images in seen.images.items():
                images.add_value(features.get(name), where)
            for prefix in self.boxes:
                _join(prefix, features, where)
            payload = encode(features) if self.boxes else record.payload
            seen.payload_bytes += len(payload)
            yield ShardRecord(record.number, payload)


def _join(prefix: str, features: dict[str, Feature], where: str) -> None:
    """Join the sides of a record's boxes into one feature. A record without boxes is unchanged."""
    names = [f"{prefix}/{side}" for side in SIDES]
    sides = [features[name] for name in names if name in features]
    if not sides and prefix not in features:
        return
    lengths = {each.count if each.kind is Kind.FLOAT else -1 for each in sides}
    if len(sides) < len(SIDES) or len(lengths) > 1 or lengths == {-1} or prefix in features:
        raise UsageError(
            f"the boxes `{prefix}` of {where} cannot become a `BBoxFeature`: expected four "
            "sides with the same number of floats"
        )
    columns = [np.frombuffer(features.pop(name).packed_floats, "<f4") for name in names]
    features[prefix] = float_feature(np.stack(columns, axis=1).tobytes())


def _split(prefix: str, boxes: Feature) -> Example:
    """Separate the sides of joined boxes, which is the inverse of :func:`_join`."""
    values = np.frombuffer(boxes.packed_floats, "<f4").reshape(-1, len(SIDES))
    return {
        f"{prefix}/{side}": float_feature(np.ascontiguousarray(values[:, number]).tobytes())
        for number, side in enumerate(SIDES)
    }


_TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"


@dataclass(frozen=True)
class TfdsExportOptions:
    """The options of the export."""

    file_format: FileFormat = "tfrecord"
    """`tfrecord`, or `array_record` for random access with `as_data_source`. The latter needs the
    extra `arrayrecord`.
    """
    boxes: bool = False
    """Whether the four sides of boxes become one `BBoxFeature`. The records are rewritten."""


class TfdsExporter(RecordExporter):
    """A folder for `tfds.builder_from_directory`."""

    Options: ClassVar[type[Any]] = TfdsExportOptions
    reader = "TFDS"
    takes_some_records = False

    def expect(self) -> None:
        """Raise unless TFDS can read the schema and the splits."""
        require_expressible(self.dataset.schema)
        if any(split.name == "all" for split in self.dataset.manifest.splits):
            raise UsageError(
                "TFDS cannot read a split named `all`, which is its name for all splits together"
            )
        if self.options.boxes and not box_prefixes(self.dataset.schema):
            raise UsageError(
                f"`{self.dataset.schema.where}` has no boxes: expected features `PREFIX/ymin`, "
                "`xmin`, `ymax` and `xmax` of the type FLOAT"
            )
        if self.options.file_format == "array_record" and find_spec("array_record") is None:
            raise MissingExtraError("writing ArrayRecord files", "arrayrecord")

    def file_name(self, split: str, number: int, of: int) -> str:
        """The name with TFDS's suffix for the file format."""
        head, _, tail = super().file_name(split, number, of).rpartition(".tfrecord-")
        return f"{head}.{self.options.file_format}-{tail}"

    def format(self) -> TfdsRecords:
        """The format in which records are rewritten."""
        schema = self.dataset.schema
        boxes = box_prefixes(schema) if self.options.boxes else ()
        return TfdsRecords(self.options.file_format, boxes, schema.images())

    def begin(self) -> Callable[[ShardToExport], ExportedShard]:
        """Write plain shards or rewritten records. In both cases, read all image headers."""
        if self._is_anew:
            return super().begin()
        return partial(export_seen, images=self.dataset.schema.images())

    def verify(self, shards: Sequence[ExportedShard]) -> str | None:
        """Verify that rewritten records equal the records of the dataset."""
        return super().verify(shards) if self._is_anew else None

    @property
    def _is_anew(self) -> bool:
        return bool(self.options.file_format != "tfrecord" or self.options.boxes)

    def finish(self, folder: Folder, shards: Sequence[ExportedShard]) -> Iterator[str]:
        """Write the metadata files for TFDS into the folder of the shards."""
        dataset, manifest = self.dataset, self.dataset.manifest
        seen = {name: ImagesSeen() for name in dataset.schema.images()}
        for each in shards:
            for name, images in each.seen.images.items():
                seen[name].merge(images)
        connectors = make_connectors(dataset.schema, manifest.labels, seen)
        if self.options.boxes:
            connectors.join_boxes(box_prefixes(dataset.schema))
        info = dataset_info(dataset, connectors.supervised, shards, self.options.file_format)
        metadata = {
            "tfrecreg": {
                "reference": dataset.reference,
                "content": manifest.content,
                "manifest": manifest.digest,
                "owner": dataset.config.owner,
            }
        }
        _write_files(folder, connectors, info, metadata, dataset.config.license)
        return iter((*_notes(dataset), *connectors.notes))

    def how_to_read(self, folder: str) -> str:
        """The code for TFDS."""
        return f"read it: tfds.builder_from_directory({folder!a})"


def export_seen(task: ShardToExport, *, images: Sequence[str]) -> ExportedShard:
    """Export a shard, and examine the values of `images` at the same time."""
    seen = {name: ImagesSeen() for name in images}

    def see(batch: RecordBatch) -> None:
        for number, example in enumerate(batch.examples, batch.first):
            where = f"record {number} of `{safe(task.entry.path)}`"
            for name, found in seen.items():
                if example is None:
                    found.add_strange(where)
                else:
                    found.add_value(example.get(name), where)

    return export_plain(task, see if seen else None, Seen(seen, task.entry.payload_bytes))


def dataset_info(
    dataset: ExportedDataset,
    supervised: tuple[str, str] | None,
    shards: Sequence[ExportedShard],
    file_format: FileFormat,
) -> Json:
    """The content of `dataset_info.json`."""
    manifest, config, version = dataset.manifest, dataset.config, dataset.version
    lengths: dict[str, list[str]] = {split.name: [] for split in manifest.splits}
    sizes = Counter[str]()
    for each in shards:
        lengths[each.entry.split].append(str(each.entry.records))
        sizes[each.entry.split] += each.seen.payload_bytes
    info: Json = {
        "name": manifest.dataset,
        "version": version,
        "fileFormat": file_format,
        "description": config.description,
        "citation": config.citation,
        "splits": [
            {
                "name": split.name,
                "filepathTemplate": _TEMPLATE,
                "shardLengths": lengths[split.name],
                # TFDS counts the payloads without framing.
                "numBytes": str(sizes[split.name]),
            }
            for split in manifest.splits
        ],
    }
    if config.license:
        info["redistributionInfo"] = {"license": config.license}
    if manifest.raw.stored:
        info["downloadSize"] = str(manifest.raw.stored)
    if manifest.provenance is not None and manifest.provenance.note:
        info["releaseNotes"] = {version: manifest.provenance.note}
    if supervised is not None:
        info["supervisedKeys"] = {"tuple": {"items": [{"featureKey": key} for key in supervised]}}
    return info


def _write_files(
    folder: Folder, connectors: Connectors, info: Json, metadata: Json, license_text: str
) -> None:
    # In TFDS's own layout, so that a diff against its own output shows the differences.
    _write(folder, "features.json", json.dumps(connectors.to_json(), indent=4, sort_keys=True))
    _write(folder, "dataset_info.json", json.dumps(info, indent=2, sort_keys=True))
    _write(folder, "metadata.json", json.dumps(metadata, indent=2, sort_keys=True))
    for name, names in connectors.label_files.items():
        _write(folder, name, "".join(f"{each}\n" for each in names))
    if license_text:
        _write(folder, "LICENSE", license_text)


def _write(folder: Folder, path: str, text: str) -> None:
    with folder.create(path) as writer:
        writer.write(text.encode("utf-8"))


def _notes(dataset: ExportedDataset) -> Iterator[str]:
    yield from version_notes(dataset)
    if dataset.manifest.compression == "gzip":
        yield "TFDS cannot read gzip, so the shards were decompressed: the records are unchanged"
