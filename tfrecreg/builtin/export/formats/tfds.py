"""The files that make a folder of shards a dataset of TensorFlow Datasets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar

from tfrecreg.api import (
    ExportedDataset,
    ExportedShard,
    Exporter,
    Folder,
    Kind,
    Manifest,
    ManifestError,
    MissingExtraError,
    RecordBatch,
    RecordExporter,
    ShardToExport,
    UsageError,
    export_plain,
    safe,
)
from tfrecreg.builtin.export.formats.connectors import (
    Connectors,
    Json,
    make_connectors,
    relied_on,
    require_expressible,
)
from tfrecreg.builtin.export.formats.images import ImagesSeen
from tfrecreg.builtin.export.formats.tfds_records import (
    SIDES,
    FileFormat,
    Seen,
    TfdsRecords,
    box_prefixes,
)

_TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"


@dataclass(frozen=True)
class TfdsExportOptions:
    """What can be set with `--option`."""

    file_format: FileFormat = "tfrecord"
    """`tfrecord`, or `array_record` for random access by `as_data_source`, which needs the extra
    `arrayrecord`.
    """
    boxes: bool = False
    """Whether the four sides of boxes become one `BBoxFeature`. The records are written anew."""


class TfdsExporter(RecordExporter):
    """A folder for `tfds.builder_from_directory`."""

    Options: ClassVar[type[Any]] = TfdsExportOptions
    reader = "TFDS"
    takes_some_records = False

    def expect(self) -> None:
        """TFDS can read the schema and the splits."""
        require_expressible(self.dataset.schema)
        require_split_names(self.dataset.manifest)
        require_shards_of_splits(self.dataset.manifest, self.dataset.reference)
        self._expect_boxes()
        if self.options.file_format == "array_record" and find_spec("array_record") is None:
            raise MissingExtraError("writing ArrayRecord files", "arrayrecord")

    def file_name(self, split: str, number: int, of: int) -> str:
        """With the suffix that TFDS has for the format of the files."""
        name = Exporter.file_name(self, split, number, of)
        head, _, tail = name.rpartition(".tfrecord-")
        return f"{head}.{self.options.file_format}-{tail}"

    def format(self) -> TfdsRecords:
        """Records that are written anew."""
        schema = self.dataset.schema
        boxes = box_prefixes(schema) if self.options.boxes else ()
        is_array = self.options.file_format == "array_record"
        expected = tuple(each.name for each in relied_on(schema)) if is_array else ()
        return TfdsRecords(self.options.file_format, boxes, schema.images(), expected)

    def begin(self) -> Callable[[ShardToExport], ExportedShard]:
        """Write plain shards or records anew, and read the headers of their images."""
        return super().begin() if self._is_anew else PlainShards(self.dataset.schema.images())

    def verify(self, shards: Sequence[ExportedShard]) -> str | None:
        """Records that are written anew are those of the dataset."""
        return super().verify(shards) if self._is_anew else None

    @property
    def _is_anew(self) -> bool:
        return bool(self.options.file_format != "tfrecord" or self.options.boxes)

    def finish(self, folder: Folder, shards: Sequence[ExportedShard]) -> Iterator[str]:
        """Write the files that TFDS reads beside the shards."""
        dataset, manifest = self.dataset, self.dataset.manifest
        seen = {name: ImagesSeen() for name in dataset.schema.images()}
        lacking: Counter[str] = Counter()
        for each in shards:
            for name, images in each.seen.images.items():
                seen[name].merge(images)
            lacking.update(each.seen.lacking)
        connectors = make_connectors(dataset.schema, manifest.labels, seen)
        if self.options.boxes:
            connectors.join_boxes(box_prefixes(dataset.schema), SIDES)
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
        return iter((*_notes(dataset), *connectors.notes, *_notes_on_lacking(lacking)))

    def _expect_boxes(self) -> None:
        schema = self.dataset.schema
        if self.options.boxes and not box_prefixes(schema):
            raise UsageError(
                f"`{safe(schema.where)}` has no boxes: features `PREFIX/ymin`, `xmin`, `ymax` and "
                "`xmax` of floats",
                hint="leave out `--option boxes=yes`",
            )

    def how_to_read(self, folder: str) -> str:
        """For TFDS."""
        return f"read it: tfds.builder_from_directory({folder!a})"


@dataclass(frozen=True, slots=True)
class PlainShards:
    """The task of a shard. Picklable."""

    images: tuple[str, ...]
    """Features whose values are encoded images."""

    def __call__(self, task: ShardToExport) -> ExportedShard:
        """Bring the shard, and see its images while it is read back."""
        seen = {name: ImagesSeen() for name in self.images}

        def see(batch: RecordBatch) -> None:
            for number, example in enumerate(batch.examples, batch.first):
                where = f"record {number} of `{safe(task.entry.path)}`"
                for name, images in seen.items():
                    if example is None:
                        images.add_strange(where)
                    elif (feature := example.get(name)) is not None and feature.kind is Kind.BYTES:
                        for value in feature.values:
                            images.add(value, where)

        return export_plain(task, see if seen else None, Seen(seen, {}))


def require_split_names(manifest: Manifest) -> None:
    """Make sure that TFDS can read every split by its name."""
    if any(split.name == "all" for split in manifest.splits):
        raise UsageError(
            "TFDS cannot read a split named `all`: that is its name for all splits together",
            hint="rename the split in the raw data, then build again",
        )


def require_shards_of_splits(manifest: Manifest, name: str) -> None:
    """Make sure that splits and shards name each other, as in every manifest that tfrecreg
    writes.
    """
    listed = {split.name for split in manifest.splits}
    used = {shard.split for shard in manifest.shards}
    empty = [each.name for each in manifest.splits if each.records and each.name not in used]
    for split, problem in (
        *(
            (split, "has shards of the split `{}`, which it does not list")
            for split in used - listed
        ),
        *((split, "lists the split `{}`, but has no shard of it") for split in empty),
    ):
        raise ManifestError(
            f"the manifest of `{name}` {problem.format(safe(split))}",
            hint=f"`tfrecreg check {name}` has the details; restore the manifest, or build again",
        )


def dataset_info(
    dataset: ExportedDataset,
    supervised: tuple[str, str] | None,
    shards: Sequence[ExportedShard],
    file_format: FileFormat = "tfrecord",
) -> Json:
    """What `dataset_info.json` holds."""
    manifest, config, version = dataset.manifest, dataset.config, dataset.version
    lengths: dict[str, list[str]] = {split.name: [] for split in manifest.splits}
    for each in shards:
        lengths[each.entry.split].append(str(each.entry.records))
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
                # As TFDS counts: the payloads, without framing.
                "numBytes": str(split.payload_bytes),
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
    # In TFDS's own layout, so that a diff against what it writes itself shows what differs.
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


def _notes_on_lacking(lacking: Counter[str]) -> Iterator[str]:
    for name, count in sorted(lacking.items()):
        some = "1 record lacks" if count == 1 else f"{count:,} records lack"
        yield (
            f"{some} `{safe(name)}`: `as_data_source` of TFDS fails for those, and `as_dataset` "
            "gives an empty value"
        )


def _notes(dataset: ExportedDataset) -> Iterator[str]:
    if dataset.manifest.release is None:
        yield f"a build has no number: it is exported as version {dataset.version}"
    if dataset.manifest.compression == "gzip":
        yield "TFDS does not read gzip: the shards were decompressed, with identical records"
