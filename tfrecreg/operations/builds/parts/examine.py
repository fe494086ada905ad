"""The claims of a receipt that need no byte of the shard: its index, the items and the ledger.

The index has to be the one of the receipt, and each item of the plan has to be a record or a
skipped item, in the order of the plan. Whether the index is that of the shard is for the pass that
reads the build back to say (`proof`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tfrecreg.errors import ManifestError, NewerFormatError, StorageError
from tfrecreg.index import Index, load_index
from tfrecreg.operations.builds.parts.receipts import Receipt, other_bytes
from tfrecreg.operations.builds.plan import PlannedShard
from tfrecreg.records.hashing import hash_both
from tfrecreg.storage import Storage
from tfrecreg.text import safe


class _Refused(Exception):
    """A claim that does not hold."""


def examine_index(shard: PlannedShard, receipt: Receipt, stage: Storage) -> str:
    """Compare a receipt with the index and the plan.

    Args:
        shard: as it was planned.
        receipt: of that shard.
        stage: rooted at a local folder with the index.

    Returns:
        The first claim that does not hold; empty if all do.
    """
    entry = receipt.index
    try:
        wrong = other_bytes(entry, hash_both(stage, entry.path))
        if wrong:
            raise _Refused(f"the bytes of its index are {wrong}")
        index = load_index(stage, entry.path)
        _expect_items(shard, receipt, index.keys())
        _expect_totals(shard, receipt, index)
    except _Refused as refusal:
        return str(refusal)
    except (StorageError, ManifestError, NewerFormatError) as error:
        return error.message
    return ""


def _expect_items(shard: PlannedShard, receipt: Receipt, keys: Sequence[str]) -> None:
    """Each item is the next record, or skipped; and nothing else is there."""
    planned = [item.key for item in shard.items]
    if not receipt.skipped and planned == keys:
        return
    skipped = Counter(each.key for each in receipt.skipped)
    if any(each.split != shard.split for each in receipt.skipped):
        raise _Refused("its receipt lists skipped items of another split")
    at = 0
    for key in planned:
        if at < len(keys) and keys[at] == key:
            at += 1
        elif skipped[key]:
            skipped[key] -= 1
        else:
            raise _Refused(
                f"the item `{safe(key)}` of the plan is neither its next record nor in the ledger "
                "of its receipt"
            )
    if at < len(keys):
        raise _Refused(f"its record `{safe(keys[at])}` is not an item of the plan at that place")
    more = next((key for key, count in skipped.items() if count), None)
    if more is not None:
        raise _Refused(f"its receipt lists the skipped item `{safe(more)}`, unknown to the plan")


def _expect_totals(shard: PlannedShard, receipt: Receipt, index: Index) -> None:
    entry = receipt.shard
    said = (entry.split, entry.records, entry.payload_bytes)
    found = (shard.split, len(index), int(index.lengths.sum()))
    if said != found:
        raise _Refused(
            f"its receipt says {entry.records:,} records of {entry.payload_bytes:,} bytes in "
            f"`{safe(entry.split)}`, found {found[1]:,} of {found[2]:,} in `{safe(shard.split)}`"
        )
