"""Shards of parts made again, here, and compared: the proof that a receipt cannot give."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from math import ceil

from tfrecreg.amounts import SkipLimit
from tfrecreg.digests import record_digest
from tfrecreg.engines.interface import Engine
from tfrecreg.errors import RefusedError, UsageError
from tfrecreg.operations.builds.make import make_all
from tfrecreg.operations.builds.parts.plan_files import PlanFolder
from tfrecreg.operations.builds.parts.receipt_model import Receipt
from tfrecreg.operations.builds.parts.receipts import FalseClaimError, made_again, record_keys
from tfrecreg.operations.builds.plan import Plan, PlannedShard
from tfrecreg.operations.builds.request import Prepared
from tfrecreg.operations.builds.shard import MadeShard
from tfrecreg.operations.builds.sink import BUILD, StageSink
from tfrecreg.progress import Progress
from tfrecreg.records.batch import RecordBatch
from tfrecreg.records.framing import MAX_LENGTH
from tfrecreg.records.reader import scan
from tfrecreg.storage.interface import Readable, Storage
from tfrecreg.text import safe

_PER_JOB = 2
"""Shards that are made again at a time, for each job: the disk never holds more of them."""


def parse_sample(text: str) -> SkipLimit:
    """``3`` shards, or ``1%`` of them.

    Raises:
        UsageError: it is neither.
    """
    try:
        return SkipLimit.parse(text)
    except ValueError:
        raise UsageError(
            f"`--verify {safe(text)}`: expected a number of shards, or a share of them",
            hint="--verify 3, --verify 1%",
        ) from None


def choose_sample(shards: Sequence[PlannedShard], amount: SkipLimit) -> list[PlannedShard]:
    """Shards chosen at random, in their order; unpredictable.

    A share is rounded up.
    """
    count = amount.count if amount.share is None else ceil(amount.share * len(shards))
    chosen = secrets.SystemRandom().sample(range(len(shards)), min(count, len(shards)))
    return [shards[number] for number in sorted(chosen)]


def expect_same(
    plan: Plan,
    chosen: Sequence[PlannedShard],
    receipts: Mapping[str, Receipt],
    prepared: Prepared,
    *,
    folder: PlanFolder,
    stage: Storage,
    engine: Engine,
    progress: Progress,
) -> None:
    """Make shards again and compare them with those of the parts.

    Args:
        receipts: receipt by path of the shard.
        folder: of the plan, with the shards of the parts.
        stage: rooted at an empty folder.

    Raises:
        RefusedError: a shard differs: it was made by other code, or from other data.
    """
    at_once = _PER_JOB * engine.jobs
    here = stage.below(BUILD)
    for start in range(0, len(chosen), at_once):
        some = tuple(chosen[start : start + at_once])
        made, _ = make_all(
            replace(plan, shards=some),
            prepared,
            StageSink(stage, here, indexed=False),
            stage=stage,
            engine=engine,
            progress=progress,
        )
        for shard, again in zip(some, made, strict=True):
            receipt = receipts[shard.path]
            difference = _difference(shard, again, receipt, here, folder.shards)
            if difference:
                raise RefusedError(
                    f"nothing was published: `{shard.path}` differs from what the raw data "
                    f"produce here: {difference}",
                    hint="it was made with other code or raw data: do not trust other shards of "
                    f"that part; {made_again(shard.path, folder)}",
                )
        stage.remove(BUILD)


def _difference(
    shard: PlannedShard, made: MadeShard, receipt: Receipt, here: Readable, parts: Readable
) -> str:
    """The most informative difference; empty without one."""
    if made.entry != receipt.shard:
        try:
            keys, their_keys = (record_keys(shard, each.skipped) for each in (made, receipt))
        except FalseClaimError as error:
            return str(error)
        digests, their_digests = (_digests(storage, shard.path) for storage in (here, parts))
        for number, (key, theirs) in enumerate(zip_longest(keys, their_keys, fillvalue="")):
            if key != theirs:
                return f"record {number} is `{safe(key)}`, the part has `{safe(theirs)}`"
            if next(digests, None) != next(their_digests, None):
                return f"record {number}, `{safe(key)}`, differs"
        return "its records are the same, and their encoding differs"
    if made.skipped != receipt.skipped or made.remarks != receipt.remarks:
        return "its ledger differs: other skipped items or remarks"
    if made.features != receipt.features:
        return "the sizes of its features differ"
    return ""


def _digests(storage: Readable, path: str) -> Iterator[bytes]:
    """The digest of each record of a shard, up to the first damage."""
    for event in scan(storage, path, hold_limit=MAX_LENGTH):
        if not isinstance(event, RecordBatch):
            return
        yield from map(record_digest, event.payloads())
