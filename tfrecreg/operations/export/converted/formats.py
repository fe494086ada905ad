"""What a format of converted records is, and the formats that there are."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Protocol

from tfrecreg.errors import MissingExtraError
from tfrecreg.example.arrow import require_parquet
from tfrecreg.manifest.model import Manifest
from tfrecreg.operations.export.shards import ExportTask
from tfrecreg.operations.export.source_records import ShardRecord
from tfrecreg.schema.definition import Schema


class RecordFormat(Protocol):
    """Writes and reads the file of a shard. Picklable."""

    def file_name(self, dataset: str, split: str, number: int, of: int) -> str:
        """Path of a shard's file in the folder.

        Args:
            dataset: name of the dataset.
            split: name of the split.
            number: of the shard in its split, from 0.
            of: number of shards of the split.
        """

    def write(self, task: ExportTask, records: Iterator[ShardRecord]) -> int:
        """Write all records to the file ``task.name`` of the stage, in order.

        Returns:
            Number of records that the format holds only in part in its own types.

        Raises:
            UsageError: the format cannot hold a record.
            StorageError: the file system refused.
        """

    def read(self, task: ExportTask) -> Iterator[bytes]:
        """The payloads in that file, in order, each in canonical form.

        Raises:
            FailureError: the file does not hold what the format demands.
            StorageError: the file system refused.
        """

    def notes(self, beside: int) -> Iterator[str]:
        """Notes for the user, one line each.

        Args:
            beside: the sum of the results of :meth:`write`.
        """


CONVERTED = ("arrayrecord", "parquet", "webdataset")
"""Values of `--to` for these formats."""


def require_library(to: str) -> None:
    """Make sure that the library of a format is installed. Nothing is imported.

    Raises:
        MissingExtraError: it is not.
    """
    if to == "parquet":
        require_parquet()
    if to == "arrayrecord" and find_spec("array_record") is None:
        raise MissingExtraError("writing ArrayRecord files", "arrayrecord")


def make_format(to: str, reference: str, manifest: Manifest, schema: Schema | None) -> RecordFormat:
    """The format for one dataset.

    Args:
        to: one of :data:`CONVERTED`.
        reference: ``mnist@1.0.0``.
        manifest: of the build or release.
        schema: of the records; None only for a format of payloads of any kind.
    """
    if to == "arrayrecord" or schema is None:
        from tfrecreg.operations.export.converted.arrayrecord import ArrayRecordFormat

        return ArrayRecordFormat()
    if to == "parquet":
        from tfrecreg.operations.export.converted.parquet import make_parquet

        return make_parquet(reference, manifest, schema)
    from tfrecreg.operations.export.converted.webdataset import make_webdataset

    return make_webdataset(schema, manifest.labels)
