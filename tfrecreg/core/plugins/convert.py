"""Exporters that write the records to files of another format, one file per shard.

A worker writes the records of a shard, reads the new file, and compares the records. The content
digest of all these records is then compared with the manifest.

The JSON form of a feature loses nothing:

12               INT64         a JSON integer
0.5              FLOAT         a JSON number with a decimal point or an exponent
"text"           BYTES         valid UTF-8
{"base64": …}    BYTES         any other bytes
[ … ]            several values of one of these kinds
{"kind": …}      no values, but a kind: ``bytes``, ``float``, ``int64`` or ``unset``
{"float32": …}   FLOAT         base64 of the little-endian bits, if a value is not finite
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tfrecreg.core.example.decode import canonical
from tfrecreg.core.example.model import Feature, Kind
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.plugins.exporters import (
    ExportedDataset,
    ExportedShard,
    Exporter,
    ShardRecord,
    ShardToExport,
    verified_records,
)
from tfrecreg.core.records.hashing import DIGEST_BYTES, content_digest, record_digest
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.errors import FailureError
from tfrecreg.core.values.text import ExtensionPoint

DESCRIPTION_NAME = "tfrecreg.json"
_FORMAT_VERSION = 1


class RecordFormat(ExtensionPoint, ABC):
    """Writes and reads the file of a shard, in workers. Picklable."""

    @abstractmethod
    def write(self, task: ShardToExport, records: Iterator[ShardRecord]) -> Any:
        """Write all records to the file ``task.name`` of ``task.folder``, in order.

        Returns:
            The value for :attr:`ExportedShard.seen`, which must be small and picklable.

        Raises:
            UsageError: the format cannot hold a record.
        """

    @abstractmethod
    def read(self, task: ShardToExport) -> Iterator[bytes]:
        """The payloads in the file ``task.name``, in order and in canonical form.

        Raises:
            FailureError, ValueError, LookupError, OSError, RuntimeError: the file violates the
                format.
        """


class RecordExporter(Exporter):
    """An exporter of records. A subclass defines :meth:`format` and :meth:`file_name`."""

    takes_some_records = True

    def __init__(self, dataset: ExportedDataset, options: Any) -> None:
        super().__init__(dataset, options)
        if dataset.has_schema:
            _ = dataset.schema  # raises here if it changed

    @abstractmethod
    def format(self) -> RecordFormat:
        """The object that writes and reads the files of this format."""

    def begin(self) -> Callable[[ShardToExport], ExportedShard]:
        """Write the records of a shard, read them again, and compare them."""
        return ShardConversion(self.format())

    def verify(self, shards: Sequence[ExportedShard]) -> str | None:
        """Compare the written records with the manifest."""
        dataset = self.dataset
        found, expected = _content(dataset, shards), dataset.manifest.content
        if found != expected and dataset.where is None:
            raise FailureError(
                "the content digest of the written records differs from that of "
                f"`{dataset.reference}`: expected {expected[:16]}…, found {found[:16]}…"
            )
        return found

    def finish(self, folder: Storage, shards: Sequence[ExportedShard]) -> Iterator[str]:
        """Write ``tfrecreg.json`` and the schema."""
        _write_description(folder, self.dataset, shards)
        if self.dataset.has_schema:
            self.dataset.write_schema(folder)
        return iter(())


@dataclass(frozen=True, slots=True)
class ShardConversion:
    """The task of converting a shard. Picklable."""

    format: RecordFormat

    def __call__(self, task: ShardToExport) -> ExportedShard:
        """Write the records of the shard, then read them again."""
        expected = bytearray()

        def digested() -> Iterator[ShardRecord]:
            for record in _chosen(task):
                expected.extend(record_digest(canonical(record.payload)))
                yield record

        records = digested()
        seen = self.format.write(task, records)
        for _ in records:  # only the end of the iterator proves that the shard is intact
            raise RuntimeError(f"the exporter left out records of `{task.name}`")
        written = len(expected) // DIGEST_BYTES
        return ExportedShard(
            how="converted",
            entry=replace(task.entry, records=written),
            name=task.name,
            digests=self._read_again(task, expected),
            seen=seen,
        )

    def _read_again(self, task: ShardToExport, expected: bytearray) -> bytes:
        """The record digests of the written file, concatenated."""
        found, what = bytearray(), ""
        try:
            for number, payload in enumerate(self.format.read(task)):
                digest = record_digest(payload)
                if digest != expected[len(found) : len(found) + DIGEST_BYTES]:
                    what = f"record {number} has different content"
                    if len(found) == len(expected):
                        what = f"it has more than {number} records"
                    break
                found += digest
        except (ValueError, LookupError, OSError, RuntimeError) as error:
            raise FailureError(
                f"`{task.name}` was written, but cannot be read back: {error}"
            ) from error
        if not what and len(found) < len(expected):
            what = f"record {len(found) // DIGEST_BYTES} is missing"
        if what:
            raise FailureError(
                f"`{task.name}` differs from the records of the shard `{task.entry.path}` in "
                f"`{task.reference}`: {what}",
                hint="the disk or a library is faulty: export again",
            )
        return bytes(found)


def _chosen(task: ShardToExport) -> Iterator[ShardRecord]:
    """The records to write. A shard that has one of them is read and verified completely."""
    if task.numbers is None:
        return verified_records(task)
    chosen = frozenset(task.numbers.tolist())
    if not chosen:
        return iter(())
    return (each for each in verified_records(task) if each.number in chosen)


def _content(dataset: ExportedDataset, shards: Sequence[ExportedShard]) -> str:
    parts = [(split, b"") for split in _splits(dataset, shards)]  # without records it also counts
    for each in shards:
        if each.digests or dataset.where is None:
            parts.append((each.entry.split, each.digests))
    return content_digest(parts)


def _write_description(
    folder: Storage, dataset: ExportedDataset, shards: Sequence[ExportedShard]
) -> None:
    """Write a file with the origin and the content digest of the records."""
    manifest = dataset.manifest
    document: dict[str, Any] = {
        "format_version": _FORMAT_VERSION,
        "to": dataset.to,
        "reference": dataset.reference,
        "dataset": manifest.dataset,
        "version": dataset.version,
        "content": manifest.content,
        "manifest": manifest.digest,
        "splits": [
            {"name": each.name, "records": each.records, "content": each.content}
            for each in manifest.splits
        ],
        "files": [
            {"path": each.name, "split": each.entry.split, "records": each.entry.records}
            for each in shards
        ],
        "labels": manifest.labels,
    }
    if dataset.where is not None:
        document |= {
            "where": dataset.where,
            "content": _content(dataset, shards),
            "splits": [_split(each, shards) for each in _splits(dataset, shards)],
        }
    with folder.create(DESCRIPTION_NAME) as writer:
        writer.write((json.dumps(document, indent=2, sort_keys=True) + "\n").encode())


def _splits(dataset: ExportedDataset, shards: Sequence[ExportedShard]) -> list[str]:
    """All splits. If a condition chose records, splits without chosen records are left out."""
    chosen = {each.entry.split for each in shards if each.digests}
    names = [each.name for each in dataset.manifest.splits]
    return names if dataset.where is None else [each for each in names if each in chosen]


def _split(name: str, shards: Sequence[ExportedShard]) -> dict[str, Any]:
    """The entry of a split. It has the number of written records, and their content digest."""
    digests = b"".join(each.digests for each in shards if each.entry.split == name)
    return {
        "name": name,
        "records": len(digests) // DIGEST_BYTES,
        "content": content_digest([(name, digests)]),
    }


_EMPTY: Mapping[str, Callable[[], Feature]] = {
    "bytes": lambda: bytes_feature([]),
    "float": lambda: float_feature([]),
    "int64": lambda: int64_feature([]),
    "unset": unset_feature,
}


def feature_to_json(feature: Feature) -> Any:
    """A feature as JSON, without loss; the module's docstring has the table."""
    if not feature.count:
        return {"kind": feature.kind.name.lower()}
    if feature.kind is Kind.FLOAT and not all(map(math.isfinite, feature.values)):
        return {"float32": b64encode(feature.packed_floats).decode()}
    values = list(feature.values)
    for at, value in enumerate(values if feature.kind is Kind.BYTES else ()):
        try:
            values[at] = value.decode()
        except UnicodeDecodeError:
            values[at] = {"base64": b64encode(value).decode()}
    return values[0] if len(values) == 1 else values


def feature_from_json(value: Any) -> Feature:
    """The inverse of :func:`feature_to_json`.

    Raises:
        ValueError: `value` does not have that form.
        KeyError: `value` does not have that form.
    """
    if isinstance(value, dict) and "kind" in value:
        return _EMPTY[value["kind"]]()
    if isinstance(value, dict) and "float32" in value:
        return float_feature(b64decode(value["float32"], validate=True))
    values = value if isinstance(value, list) else [value]
    first = values[0]
    if isinstance(first, int):
        return int64_feature(values)
    if isinstance(first, float):
        return float_feature(values)
    return bytes_feature(
        [
            each.encode() if isinstance(each, str) else b64decode(each["base64"], validate=True)
            for each in values
        ]
    )
