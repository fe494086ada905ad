"""Receipts: the proof that a part leaves beside each shard.

A receipt says which plan, which bytes, which records and which skipped items, and which versions
made them. It is written after the shard is durable, so a shard with a receipt is finished. Equal
work leaves equal receipts but for `made`, so any number of parts may write the same one. In a store
the first one stays, and the others have to be equal.

It has neither the shard's SHA-256 nor its index: publishing would have to compute both again to
believe them.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from tfrecreg.errors import MissingFileError, RefusedError, StorageError
from tfrecreg.operations.builds.bucket import BucketSink
from tfrecreg.operations.builds.parts.plan_files import PlanFolder
from tfrecreg.operations.builds.parts.receipt_model import (
    RECEIPT_FORMAT,
    RECEIPTS,
    MadeWhere,
    Receipt,
    parse_receipt,
    receipt_path,
    render_receipt,
)
from tfrecreg.operations.builds.plan import PlannedShard
from tfrecreg.operations.builds.shard import MadeShard, StageFolder, WorkFolder
from tfrecreg.operations.builds.sink import BUILD, is_intact
from tfrecreg.operations.provenance import now, user
from tfrecreg.progress import Progress
from tfrecreg.sources.interface import Skipped
from tfrecreg.storage.interface import Storage
from tfrecreg.storage.local import LocalStorage
from tfrecreg.text import safe

_RECEIPT_LIMIT = 1 << 30
"""Largest receipt that is read, in bytes: millions of skipped items."""


class FalseClaimError(Exception):
    """A claim of a receipt is false. The message names the claim, not the shard."""


@dataclass(frozen=True, slots=True)
class PlanSink:
    """The sink of a plan, with a receipt for each finished shard.

    See :class:`tfrecreg.operations.builds.sink.ShardSink` for the methods.
    """

    folder: PlanFolder
    part: str
    """The part that works, ``17/64``; empty for the command that publishes."""
    stage: Storage
    """Rooted at a folder of this machine, where shards are made that go to a store."""
    indexed: ClassVar[bool] = False

    @property
    def work(self) -> WorkFolder:
        local, store = self.stage.below(BUILD), self.folder.store
        if store is None:  # then the stage is the folder of the plan
            return StageFolder(local)
        return BucketSink(LocalStorage(local.root), store, indexed=False).work

    def finished(self, shards: Sequence[PlannedShard]) -> dict[str, MadeShard]:
        """The finished ones of these shards, by path, hashed again.

        A receipt that does not hold costs a part only the work of making the shard again. Of files
        in a store only the sizes are compared: all of them are read when they are published.
        """
        is_whole = self._intact()
        found: dict[str, MadeShard] = {}
        with reading_receipts(self.folder, shards) as noted:
            for shard in noted:
                with suppress(RefusedError, StorageError):
                    made = read_receipt(self.folder, shard).made_shard()
                    if is_whole(made):
                        found[shard.path] = made
        return found

    def _intact(self) -> Callable[[MadeShard], bool]:
        build = self.folder.shards
        if self.folder.store is None:
            return partial(is_intact, build)
        sizes = {entry.path: entry.size for entry in build.list()}
        return lambda made: sizes.get(made.entry.path) == made.entry.bytes

    def finish(self, shard: PlannedShard, made: MadeShard) -> None:
        """Write the receipt of a shard; its bytes are durable by now.

        Raises:
            StorageError: the file system or the store refused, or has another receipt.
        """
        document = self.folder.document
        receipt = Receipt(
            format_version=RECEIPT_FORMAT,
            plan=document.digest,
            items=len(shard.items),
            shard=made.entry,
            features=made.features,
            source=document.source,
            versions=document.versions,
            skipped=made.skipped,
            remarks=made.remarks,
            objects=made.objects,
            kept=made.kept,
            made=MadeWhere(
                part=self.part,
                created=now(),
                by=user(),
                host=platform.node(),
                python=platform.python_version(),
            ),
        )
        self._put(receipt_path(shard.path), render_receipt(receipt))

    def _put(self, path: str, data: bytes) -> None:
        storage = self.folder.storage
        while not storage.put_if_absent(path, data):
            try:
                same = parse_receipt(storage.read(path, limit=_RECEIPT_LIMIT)).digest
            except MissingFileError:  # the same part, run elsewhere, just removed it
                continue
            except ValueError:
                same = ""
            if same == parse_receipt(data).digest:
                return
            if not storage.is_local:
                raise StorageError(
                    f"`{safe(storage.root, limit=1000)}/{safe(path)}` is not the receipt of the "
                    "shard that was made here",
                    hint="find out how it was made; remove it, and run the part again",
                )
            storage.remove(path)


@contextmanager
def reading_receipts(
    folder: PlanFolder, shards: Sequence[PlannedShard]
) -> Iterator[list[PlannedShard]]:
    """Those of these shards that have a receipt, for :func:`read_receipt` in this order."""
    listed = list(folder.storage.list(RECEIPTS))
    there = {entry.path for entry in listed}
    found = [shard for shard in shards if receipt_path(shard.path) in there]
    with folder.storage.reading_ahead((receipt_path(shard.path) for shard in found), listed):
        yield found


def read_receipt(folder: PlanFolder, shard: PlannedShard) -> Receipt:
    """The receipt of a shard, which fits the plan.

    Raises:
        RefusedError: it is damaged, or of another plan, shard or version.
    """
    data = folder.storage.read(receipt_path(shard.path), limit=_RECEIPT_LIMIT)
    try:
        receipt = parse_receipt(data)
    except ValueError as error:
        problem = f"its receipt cannot be used: {safe(str(error))}"
        raise refused_shard(shard.path, problem, plan=folder) from None
    problem = _problem(receipt, folder, shard)
    if problem:
        raise refused_shard(shard.path, problem, plan=folder)
    return receipt


def _problem(receipt: Receipt, folder: PlanFolder, shard: PlannedShard) -> str:
    """Why a receipt does not belong to the plan; empty if it does."""
    document = folder.document
    if receipt.plan != document.digest:
        return (
            f"its receipt is of the plan `{safe(receipt.plan[:16])}…`, this is "
            f"`{document.digest[:16]}…`"
        )
    if (receipt.shard.path, receipt.shard.index) != (shard.path, shard.index):
        return f"its receipt is that of `{safe(receipt.shard.path)}`"
    if {receipt.shard.split, *(each.split for each in receipt.skipped)} != {shard.split}:
        return f"its receipt names another split than `{shard.split}`"
    if receipt.versions != document.versions or receipt.source != document.source:
        return "its receipt names other versions or options than the plan"
    if receipt.shard.sha256:
        return "its receipt has a `sha256` of the shard, which only publishing computes"
    if receipt.items != len(shard.items):
        return f"its receipt says {receipt.items:,} items, the plan has {len(shard.items):,}"
    records, skipped = receipt.shard.records, len(receipt.skipped)
    if records + skipped != receipt.items:
        return (
            f"its receipt says {records:,} items written and {skipped:,} skipped, the plan has "
            f"{receipt.items:,}"
        )
    return ""


def record_keys(shard: PlannedShard, skipped: Sequence[Skipped]) -> list[str]:
    """The keys of the records of a shard: of all its items but the skipped ones.

    Raises:
        FalseClaimError: an item is skipped that the shard does not have.
        UsageError: the list of the items was changed.
    """
    left = Counter(each.key for each in skipped)
    keys = []
    for item in shard.items:
        if left[item.key]:
            left[item.key] -= 1
        else:
            keys.append(item.key)
    more = next((key for key, times in left.items() if times), None)
    if more is not None:
        raise FalseClaimError(
            f"its receipt lists the skipped item `{safe(more)}`, which is unknown to the plan or "
            "listed twice"
        )
    return keys


def refused_shard(
    shard: str, problem: str, *, plan: PlanFolder, receipt: Receipt | None = None
) -> RefusedError:
    """The error for a shard that must not be published.

    Args:
        problem: the claim that does not hold.
    """
    hint = f"find out how it was made; {made_again(shard, plan)}"
    part = receipt.made.part if receipt is not None and receipt.made is not None else ""
    if part:
        hint += f": `tfrecreg parts build {plan.name} --part {safe(part)}`"
    return RefusedError(f"nothing was published: `{safe(shard)}`: {problem}", hint=hint)


def made_again(shard: str, plan: PlanFolder) -> str:
    """What makes a part make a finished shard again, for hints."""
    receipt = safe(receipt_path(shard))
    if plan.store is None:
        return f"without `{receipt}` it is made again"
    there = safe(plan.store.root, limit=1000)  # files in a store are not replaced
    return f"remove `{plan.name}/{receipt}` and `{there}/{safe(shard)}`, and it is made again"


def refuse_all(problems: Sequence[RefusedError], progress: Progress) -> None:
    """Raise the first problem; the others are notes.

    Raises:
        RefusedError: there is a problem.
    """
    if problems:
        for other in problems[1:]:
            progress.note(other.message)
        raise problems[0]
