"""Records that are written anew for TFDS: in ArrayRecord files, or with boxes as `BBoxFeature`.

TFDS has a box as four numbers in one feature, in the order ymin, xmin, ymax, xmax. The keys of TF
Object Detection have a feature for each side. Joined, no number changes, and reading splits them
again: so the content digest is still that of the dataset.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from tfrecreg.api import (
    Example,
    Feature,
    Kind,
    RecordFormat,
    Schema,
    ShardRecord,
    ShardToExport,
    UsageError,
    canonical,
    decode,
    encode,
    float_feature,
    safe,
    write_records,
    written_records,
)
from tfrecreg.builtin.export.formats.images import ImagesSeen

FileFormat = Literal["tfrecord", "array_record"]
SIDES = ("ymin", "xmin", "ymax", "xmax")
"""The order of TFDS."""


class Seen(NamedTuple):
    """What is known of the records of a shard."""

    images: dict[str, ImagesSeen]
    """By feature."""
    lacking: dict[str, int]
    """Number of records without a feature, by feature; only where that matters."""


def box_prefixes(schema: Schema) -> tuple[str, ...]:
    """What the names of the sides of boxes begin with: ``image/object/bbox``."""
    floats = {each.name for each in schema.features if each.kind == "FLOAT"}
    found = (name.removesuffix("/ymin") for name in sorted(floats) if name.endswith("/ymin"))
    return tuple(each for each in found if {f"{each}/{side}" for side in SIDES} <= floats)


@dataclass(frozen=True, slots=True)
class TfdsRecords(RecordFormat):
    """Writes and reads the files. Picklable."""

    file_format: FileFormat
    boxes: tuple[str, ...]
    """Prefixes of the boxes that are joined."""
    images: tuple[str, ...]
    """Features whose headers are looked at."""
    expected: tuple[str, ...] = ()
    """Features that each record should have, for readers that need them all."""

    def write(self, task: ShardToExport, records: Iterator[ShardRecord]) -> Seen:
        """Write all records; what their images have in common, and which features they lack."""
        seen = Seen({name: ImagesSeen() for name in self.images}, {})
        made = self._made(task, records, seen)
        if self.file_format == "array_record":
            self._arrays().write(task, made)
        else:
            write_records(task, (each.payload for each in made))
        return seen

    def read(self, task: ShardToExport) -> Iterator[bytes]:
        """The canonical payloads of the dataset, in order."""
        if self.file_format == "array_record":
            payloads = self._arrays().read(task)
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
            for name in self.expected:
                if name not in features:
                    seen.lacking[name] = seen.lacking.get(name, 0) + 1
            for name, images in seen.images.items():
                feature = features.get(name)
                if feature is not None and feature.kind is Kind.BYTES:
                    for value in feature.values:
                        images.add(value, where)
            if not self.boxes:
                yield record
                continue
            for prefix in self.boxes:
                _join(prefix, features, where)
            yield ShardRecord(record.number, encode(features))

    def _arrays(self) -> Any:
        # The library is of an extra, and the other format does without it.
        from tfrecreg.builtin.export.formats.arrayrecord import ArrayRecordFormat

        return ArrayRecordFormat()


def _join(prefix: str, features: dict[str, Feature], where: str) -> None:
    """Put the boxes of a record into one feature; a record without any of the sides has none."""
    names = [f"{prefix}/{side}" for side in SIDES]
    sides = [features[name] for name in names if name in features]
    if not sides:
        return
    lengths = {each.count if each.kind is Kind.FLOAT else -1 for each in sides}
    if len(sides) < len(SIDES) or len(lengths) > 1 or lengths == {-1} or prefix in features:
        raise UsageError(
            f"the boxes `{safe(prefix)}` of {where} cannot become a `BBoxFeature`: expected four "
            "sides of the same number of floats",
            hint="export without them: leave out `--option boxes=yes`",
        )
    columns = [np.frombuffer(features.pop(name).packed_floats, "<f4") for name in names]
    features[prefix] = float_feature(np.stack(columns, axis=1).tobytes())


def _split(prefix: str, boxes: Feature) -> Example:
    """The sides of joined boxes: the inverse of :func:`_join`."""
    values = np.frombuffer(boxes.packed_floats, "<f4").reshape(-1, len(SIDES))
    return {
        f"{prefix}/{side}": float_feature(np.ascontiguousarray(values[:, number]).tobytes())
        for number, side in enumerate(SIDES)
    }
