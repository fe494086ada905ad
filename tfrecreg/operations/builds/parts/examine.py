"""The claims of a receipt that need no byte of the shard: its index, the items and the ledger.

The index has to be the one of the receipt, and each item of the plan has to be a record or a
skipped item, in the order of the plan. Whether the index is that of the shard is for the pass that
reads the build back to say (`proof`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tfrecreg.errors import ManifestError, NewerFormatError, StorageError
from tfrecreg.index import Index, load_index
from tfrecreg.operations.builds.parts.receipts import Receipt, other_bytes
from tfrecreg.records.hashing import hash_both
from tfrecreg.storage import Storage
from tfrecreg.storage.remote import RemoteStorage
from tfrecreg.text import safe


@dataclass(frozen=True, slots=True)
class ExamineTask:
    """All that a worker needs to examine the index of one shard. Picklable."""

    build: Storage
    """Rooted at the folder of the shards."""
    receipt: Receipt
    keys: tuple[str, ...]
    """Keys of the items of the plan, in order."""
    split: str


@dataclass(frozen=True, slots=True)
class ExaminedShard:
    """The result for one shard."""

    shard: str
    problem: str
    """The first claim that does not hold; empty if all do."""


class _Refused(Exception):
    """A claim that does not hold."""


def examine_index(task: ExamineTask) -> ExaminedShard:
    """Compare a receipt with the index and the plan."""
    problem = ""
    entry = task.receipt.index
    try:
        wrong = other_bytes(entry, hash_both(task.build, entry.path))
        if wrong and isinstance(task.build, RemoteStorage):  # or altered on their way
            wrong = other_bytes(entry, hash_both(task.build, entry.path))
        if wrong:
            raise _Refused(f"the bytes of its index are {wrong}")
        index = load_index(task.build, entry.path)
        _expect_items(task, index.keys())
        _expect_totals(task, index)
    except _Refused as refusal:
        problem = str(refusal)
    except (StorageError, ManifestError, NewerFormatError) as error:
        problem = error.message
    return ExaminedShard(task.receipt.shard.path, problem)


def _expect_items(task: ExamineTask, keys: Sequence[str]) -> None:
    """Each item is the next record, or skipped; and nothing else is there."""
    if not task.receipt.skipped and list(task.keys) == keys:
        return
    skipped = Counter(each.key for each in task.receipt.skipped)
    if any(each.split != task.split for each in task.receipt.skipped):
        raise _Refused("its receipt lists skipped items of another split")
    at = 0
    for key in task.keys:
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


def _expect_totals(task: ExamineTask, index: Index) -> None:
    entry = task.receipt.shard
    said = (entry.split, entry.records, entry.payload_bytes)
    found = (task.split, len(index), int(index.lengths.sum()))
    if said != found:
        raise _Refused(
            f"its receipt says {entry.records:,} records of {entry.payload_bytes:,} bytes in "
            f"`{safe(entry.split)}`, found {found[1]:,} of {found[2]:,} in `{safe(task.split)}`"
        )
