"""One shard in a worker: its records are written in a format, read again, and compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from tfrecreg.digests import record_digest
from tfrecreg.errors import FailureError
from tfrecreg.example import canonical
from tfrecreg.operations.export.converted.formats import RecordFormat
from tfrecreg.operations.export.shards import BroughtShard, ExportTask
from tfrecreg.operations.export.source_records import SourceRecord, read_records
from tfrecreg.text import safe


@dataclass(frozen=True, slots=True)
class Conversion:
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
        expected: list[bytes] = []
        records = _digested(read_records(task), expected)
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

    def _read_again(self, task: ExportTask, expected: list[bytes]) -> bytes:
        """The record digests of what was written, concatenated."""
        found = bytearray()
        written = (record_digest(canonical(each)) for each in self.format.read(task))
        for number, (before, after) in enumerate(zip_longest(expected, written)):
            if before != after:
                where = f"record {number} of `{safe(task.entry.path)}` of `{task.reference}`"
                what = "is missing" if after is None else "has other content"
                if before is None:
                    where, what = f"`{safe(task.name)}`", f"has more than {number} records"
                raise FailureError(
                    f"{where} {what} in what was written: read again from `{safe(task.name)}`",
                    hint="the disk or a library is faulty: export again; if it persists, report it",
                )
            found += after
        return bytes(found)


def _digested(records: Iterator[SourceRecord], digests: list[bytes]) -> Iterator[SourceRecord]:
    for record in records:
        digests.append(record_digest(canonical(record.payload)))
        yield record
