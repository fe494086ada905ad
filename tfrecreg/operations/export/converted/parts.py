"""What the formats of Examples share: decoded records and their keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tfrecreg.errors import ManifestError, MissingFileError, UsageError
from tfrecreg.example.decode import decode_fast, decode_fully
from tfrecreg.example.model import Example
from tfrecreg.example.wire import NotAnExampleError
from tfrecreg.index import Index, load_index
from tfrecreg.operations.export.shards import ExportTask, refused
from tfrecreg.operations.export.source_records import ShardRecord
from tfrecreg.text import safe


class KeyedExample(NamedTuple):
    """One record of a shard, decoded."""

    number: int
    """Its number in the shard, from 0."""
    key: str | None
    """Key of its item, with surrogate escapes if it is not UTF-8; None without an index."""
    size: int
    """Bytes of the payload."""
    features: Example


def keyed_examples(task: ExportTask, records: Iterator[ShardRecord]) -> Iterator[KeyedExample]:
    """The records as Examples, with their keys.

    Raises:
        UsageError: a record is not an Example, or has fields that no Example has.
        RefusedError: the index of the shard is missing.
        ManifestError: the index of the shard is damaged.
        StorageError: the index cannot be read.
    """
    index = _index(task)
    for record in records:
        features = _features(record.payload)
        if features is None:
            raise UsageError(
                f"record {record.number} of `{safe(task.entry.path)}` of `{task.reference}` is not "
                "a tf.train.Example, or has fields that it does not define",
                hint="`--to arrayrecord` exports any payload",
            )
        key = None if index is None else index.key(record.number)
        yield KeyedExample(record.number, key, len(record.payload), features)


def _index(task: ExportTask) -> Index | None:
    path = task.entry.index
    if not path:
        return None
    try:
        index = load_index(task.bytes, path)
    except MissingFileError:
        raise refused(task, f"its index `{safe(path)}` is missing") from None
    if len(index) != task.entry.records:
        raise ManifestError(
            f"`{safe(path)}` has {len(index)} records, and its shard {task.entry.records}",
            hint=f"tfrecreg check {task.reference}",
        )
    return index


def _features(payload: bytes) -> Example | None:
    found = decode_fast(payload)
    if found is not None:
        return found[0]
    try:
        features, unknown = decode_fully(payload)
    except NotAnExampleError:
        return None
    return None if unknown else features
