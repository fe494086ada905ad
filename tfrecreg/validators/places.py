"""Where a record is, for findings about one record at a time."""

from __future__ import annotations

from tfrecreg.findings import Location
from tfrecreg.records.batch import RecordBatch
from tfrecreg.scan.interface import Shard

__all__ = ["place_of"]


def place_of(
    shard: Shard,
    batch: RecordBatch,
    position: int,
    *,
    feature: str | None = None,
    detail: str | None = None,
) -> Location:
    """The place of the record at a position of a batch.

    Args:
        shard: that is scanned.
        batch: of that shard.
        position: of the record in the batch.
        feature: the one that it is about.
        detail: expected against found; escaped.
    """
    return Location(
        split=shard.split or None,
        shard=shard.name,
        record=batch.first + position,
        offset=batch.offsets[position],
        length=batch.lengths[position],
        feature=feature,
        detail=detail,
    )
