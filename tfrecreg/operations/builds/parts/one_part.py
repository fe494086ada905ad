"""Making the shards of one part, anywhere that the plan and the raw data can be read."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from tfrecreg.engines.interface import Engine
from tfrecreg.engines.local import LocalEngine
from tfrecreg.errors import UsageError
from tfrecreg.operations.builds.make import SEGMENTS, engine_for_build, make_all
from tfrecreg.operations.builds.parts.open_source import base_of_plan, open_planned, read_raw_state
from tfrecreg.operations.builds.parts.plan_files import PlanFolder
from tfrecreg.operations.builds.parts.plan_model import ShardOfPlan
from tfrecreg.operations.builds.parts.plan_store import NOTES, enter_bucket
from tfrecreg.operations.builds.parts.receipts import PlanSink
from tfrecreg.operations.builds.plan import Plan
from tfrecreg.operations.builds.request import Prepared
from tfrecreg.operations.builds.shard import MadeShard
from tfrecreg.progress import SILENT, Progress
from tfrecreg.registry.registry import Registry
from tfrecreg.storage.interface import Storage
from tfrecreg.storage.two_places import temporary_folder
from tfrecreg.text import safe

_PART = re.compile(r"([1-9][0-9]{0,8})/([1-9][0-9]{0,8})")
_NOTE = re.compile(r"([1-9][0-9]*)-of-([1-9][0-9]*)")


@dataclass(frozen=True, slots=True)
class PlanPart:
    """One share of a plan."""

    number: int
    """From 1."""
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def parse_part(text: str) -> PlanPart:
    """``17/64``: the seventeenth of 64 parts.

    Raises:
        UsageError: it is not a part.
    """
    found = _PART.fullmatch(text)
    if found is None or int(found[1]) > int(found[2]):
        raise UsageError(
            f"`--part {safe(text)}` is not a part: expected I/N with I from 1 to N",
            hint="the first of four parts is `--part 1/4`",
        )
    return PlanPart(int(found[1]), int(found[2]))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartResult:
    """A finished part."""

    dataset: str
    plan: str
    """Digest of the plan."""
    part: str
    """``17/64``"""
    shards: tuple[str, ...]
    """The shards of the part, in order."""
    made: int
    """Number of them that were made now."""
    finished_before: int
    """Number of the others."""
    records: int
    bytes: int
    """Size of its shards in bytes."""


def deal_shards(shards: Sequence[ShardOfPlan], part: PlanPart) -> list[ShardOfPlan]:
    """The shards of a part: every N-th, the largest first, so that parts have about equal work.

    It depends on the plan alone.
    """
    ordered = sorted(shards, key=lambda shard: (-shard.size, shard.path))
    mine = {shard.path for shard in ordered[part.number - 1 :: part.of]}
    return [shard for shard in shards if shard.path in mine]


def parts_of(folder: PlanFolder, missing: Sequence[str]) -> list[str]:
    """The parts that have these shards, as most parts that ran divided the plan; none if that is
    not known.
    """
    notes = (
        _NOTE.fullmatch(entry.path.rpartition("/")[2])
        for entry in folder.storage.list(NOTES, recursive=False)
    )
    divided = Counter(int(note[2]) for note in notes if note is not None).most_common(2)
    if not divided or (len(divided) == 2 and divided[0][1] == divided[1][1]):
        return []
    of = divided[0][0]
    wanted = set(missing)
    shards = folder.document.shards
    ordered = sorted(shards, key=lambda shard: (-shard.size, shard.path))
    return [
        str(PlanPart(number, of))
        for number in range(1, min(of, len(ordered)) + 1)
        if any(shard.path in wanted for shard in ordered[number - 1 :: of])
    ]


def run_part(
    plan: str,
    part: PlanPart,
    *,
    raw: str | None = None,
    registry: Callable[[], Registry] | None = None,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> PartResult:
    """Make the shards of a part where the plan wants them, and leave a receipt for each.

    A shard with a receipt that holds is not made again. The same part may run several times, also
    at the same time.

    Args:
        plan: the folder of the plan, or its URL.
        raw: the folder of the raw data; None for that of the plan.
        registry: opens the registry, which a plan that grows from a release needs.

    Raises:
        UsageError: the folder has no plan, or this machine has other versions or raw data.
        RawDataError: the raw data cannot be read.
        PluginError: the source failed.
    """
    folder = PlanFolder.open(plan)
    shards = deal_shards(folder.document.shards, part)
    folder.storage.expect_condition()
    enter_bucket(folder)
    _leave_note(folder, part)
    if not shards:
        return _part_result(folder, part, (), 0)
    prepared = open_planned(folder, raw, registry)
    opened = registry() if registry is not None and folder.document.base is not None else None
    base = base_of_plan(folder, opened)
    moved = raw is not None
    state = read_raw_state(folder, prepared, moved=moved, shards=shards, progress=progress)
    if state is None:
        assert prepared.raw is not None
        raise UsageError(
            f"the raw data `{safe(prepared.raw.root, limit=1000)}` are not on this machine",
            hint="name the folder where they are: --raw PATH",
        )
    planned = folder.plan([folder.planned(shard, base) for shard in shards], base)
    local = folder.local
    with nullcontext(local) if local is not None else temporary_folder("part") as stage:
        made, before = make_shards(
            folder,
            planned,
            prepared,
            part=str(part),
            stage=stage,
            engine=engine_for_build(planned, engine or LocalEngine(1)),
            progress=progress,
        )
    return _part_result(folder, part, made, before)


def make_shards(
    folder: PlanFolder,
    plan: Plan,
    prepared: Prepared,
    *,
    part: str,
    stage: Storage,
    engine: Engine,
    progress: Progress,
) -> tuple[list[MadeShard], int]:
    """Make shards of a plan where it wants them, and leave a receipt for each.

    Args:
        part: the part that works, ``17/64``; empty for the command that publishes.
        stage: rooted at a local folder. Shards are made there if they go to a store.

    Returns:
        The shards, and how many of them were finished before.

    Raises:
        FailureError: as :func:`tfrecreg.operations.builds.make.make_all`.
    """
    with folder.reading_items(plan.shards):
        return make_all(
            plan,
            prepared,
            PlanSink(folder, part, stage),
            stage=stage,
            segments=f"{SEGMENTS}/{secrets.token_hex(8)}",  # which no other process uses
            engine=engine,
            progress=progress,
        )


def _leave_note(folder: PlanFolder, part: PlanPart) -> None:
    """Note how the plan is divided, so that missing parts can be named."""
    folder.storage.put_if_absent(f"{NOTES}/{part.number}-of-{part.of}", b"")


def _part_result(
    folder: PlanFolder, part: PlanPart, shards: Sequence[MadeShard], before: int
) -> PartResult:
    return PartResult(
        dataset=folder.document.dataset,
        plan=folder.document.digest,
        part=str(part),
        shards=tuple(shard.entry.path for shard in shards),
        made=len(shards) - before,
        finished_before=before,
        records=sum(shard.entry.records for shard in shards),
        bytes=sum(shard.entry.bytes for shard in shards),
    )
