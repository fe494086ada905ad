"""One shard in a worker: its records are written in a format, read again, and compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tfrecreg.digests import DIGEST_BYTES, record_digest
from tfrecreg.errors import FailureError
from tfrecreg.example.decode import canonical
from tfrecreg.operations.export.converted.formats import RecordFormat
from tfrecreg.operations.export.shards import BroughtShard, ExportTask
from tfrecreg.operations.export.source_records import ShardRecord, verified_records
from tfrecreg.text import safe


@dataclass(frozen=True, slots=True)
class ShardConversion:
    """The task of converting a shard. Picklable."""

    format: RecordFormat

    def __call__(self, task: ExportTask) -> BroughtShard:
        """Write the records of the shard, then read them again.

        Raises:
            RefusedError: the shard is missing, damaged or another one.
            UsageError: the format cannot hold a record.
            FailureError: what was read again differs from what was written.
            StorageError: the file system refused.
        """
        expected = bytearray()
        records = _digested(verified_records(task), expected)
        beside = self.format.write(task, records)
        for _ in records:  # the shard is verified only at its end
            raise RuntimeError(f"the format of `{task.name}` did not take all records")
        return BroughtShard(
            how="converted",
            entry=task.entry,
            name=task.name,
            digests=self._read_again(task, expected),
            beside=beside,
        )

    def _read_again(self, task: ExportTask, expected: bytearray) -> bytes:
        """The record digests of what was written, concatenated."""
        found = bytearray()
        for number, payload in enumerate(self.format.read(task)):
            digest = record_digest(payload)
            if digest != expected[len(found) : len(found) + DIGEST_BYTES]:
                if len(found) == len(expected):
                    raise _differs(task, f"`{safe(task.name)}` has more than {number} records")
                raise _differs(task, f"{_record(task, number)} has other content")
            found += digest
        if len(found) < len(expected):
            raise _differs(task, f"{_record(task, len(found) // DIGEST_BYTES)} is missing")
        return bytes(found)


def _record(task: ExportTask, number: int) -> str:
    return f"record {number} of `{safe(task.entry.path)}` of `{task.reference}`"


def _differs(task: ExportTask, what: str) -> FailureError:
    return FailureError(
        f"{what} in what was written: read again from `{safe(task.name)}`",
        hint="the disk or a library is faulty: export again; if it persists, report it",
    )


def _digested(records: Iterator[ShardRecord], digests: bytearray) -> Iterator[ShardRecord]:
    for record in records:
        digests += record_digest(canonical(record.payload))
        yield record
