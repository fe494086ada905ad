"""The end of a build in parts: make missing shards, examine all, and publish.

Nothing is published before every receipt was held against the plan, and every shard against its
receipt, in the pass that reads any new build back (`proof`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace

from tfrecreg.amounts import SkipLimit
from tfrecreg.engines.interface import Engine
from tfrecreg.engines.local import LocalEngine
from tfrecreg.errors import RefusedError, UsageError
from tfrecreg.operations.builds.begin import BuildStart, expect_buildable
from tfrecreg.operations.builds.changed_settings import compare_settings
from tfrecreg.operations.builds.conclude import BuildResult, conclude
from tfrecreg.operations.builds.make import engine_for_build
from tfrecreg.operations.builds.parts.one_part import make_shards, parts_of
from tfrecreg.operations.builds.parts.open_source import (
    RawState,
    base_of_plan,
    open_planned,
    read_raw_state,
)
from tfrecreg.operations.builds.parts.plan_files import PlanFolder
from tfrecreg.operations.builds.parts.plan_store import (
    enter_bucket,
    expect_same_place,
    stage_shards,
)
from tfrecreg.operations.builds.parts.proof import ReceiptProof
from tfrecreg.operations.builds.parts.provenance import keep_receipts
from tfrecreg.operations.builds.parts.receipt_model import Receipt
from tfrecreg.operations.builds.parts.receipts import read_receipt, reading_receipts, refuse_all
from tfrecreg.operations.builds.parts.remake import choose_sample, expect_same
from tfrecreg.operations.builds.plan import Plan, PlannedShard
from tfrecreg.operations.builds.request import Prepared
from tfrecreg.operations.policy import expect_policy
from tfrecreg.progress import SILENT, Progress
from tfrecreg.registry.registry import Dataset, Registry
from tfrecreg.registry.transaction import Transaction, transaction
from tfrecreg.schema.proto import parse_schema
from tfrecreg.storage.interface import Storage
from tfrecreg.text import safe

_SHOWN = 5
"""Number of missing shards and parts that a message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectRequest:
    """What to publish."""

    plan: str
    """The folder of the plan, or its URL."""
    name: str | None = None
    """The dataset, to compare with the plan."""
    raw: str | None = None
    """Folder of the raw data; None for that of the plan."""
    parts_only: bool = False
    """Refuse if a shard is missing, even if it could be made here."""
    verify: SkipLimit | None = None
    """How many shards of parts are made again and compared; None for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """A build in parts that was published."""

    built: BuildResult = field(repr=False)
    plan: str
    """Digest of the plan."""
    from_parts: int
    """Number of shards that parts had made."""
    made_here: tuple[str, ...]
    """Shards that were missing."""
    verified: tuple[str, ...]
    """Shards that were made again and compared."""


def collect_parts(
    registry: Registry,
    request: CollectRequest,
    *,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> Collected:
    """Publish the build of a plan from the shards of its parts.

    Missing shards are made here. The folder of the plan stays as it is, with them.

    Raises:
        UsageError: the plan was changed, does not fit the registry, or shards are missing that
            cannot be made here.
        RefusedError: a shard differs from its receipt, the plan or the raw data; too many items
            were skipped; or the check has findings. Nothing was published.
        FailureError: a plugin, a worker or the disk failed.
    """
    folder = PlanFolder.open(request.plan)
    folder.expect_dataset(request.name)
    name = folder.document.dataset
    with ExitStack() as opened:
        if engine is None:
            engine = opened.enter_context(closing(LocalEngine(1)))
        change = opened.enter_context(transaction(registry.dataset(name), progress))
        expect_policy(registry, name)
        expect_same_place(registry.dataset(name), folder)
        enter_bucket(folder)
        stage = opened.enter_context(change.stage("parts"))
        return _collect(registry, request, folder, stage, change, engine, progress)


def _collect(
    registry: Registry,
    request: CollectRequest,
    folder: PlanFolder,
    stage: Storage,
    change: Transaction,
    engine: Engine,
    progress: Progress,
) -> Collected:
    prepared = open_planned(folder, request.raw, lambda: registry)
    moved = request.raw is not None
    base, shards = base_of_plan(folder, registry), folder.document.shards
    plan = folder.plan([folder.planned(shard, base) for shard in shards], base)
    receipts = _receipts(folder, plan, progress)
    # After the receipts, to see changes while a part was making its last shard.
    raw = read_raw_state(folder, prepared, moved=moved, shards=shards, progress=progress)
    started = _build_start(registry, folder, plan, prepared, raw)
    engine = engine_for_build(plan, engine)
    missing = [shard for shard in plan.shards if shard.path not in receipts]
    if missing and (request.parts_only or raw is None):
        raise _incomplete(folder, missing, raw)
    verified = _verify(request, folder, started, receipts, change, engine, progress)
    if missing:
        folder.storage.expect_condition()
        to_make = replace(plan, shards=tuple(missing))
        with change.stage("missing") as making:
            make_shards(
                folder,
                to_make,
                prepared,
                part="",
                stage=folder.local or making,
                engine=engine,
                progress=progress,
            )
        made_here = _receipts(folder, to_make, progress)
        gone = [shard for shard in missing if shard.path not in made_here]
        if gone:  # it was removed meanwhile
            raise _incomplete(folder, gone, raw)
        receipts.update(made_here)
    if raw is None:
        progress.note(
            "the raw data are not on this machine: whether they changed since the plan is not known"
        )
    made = [receipts[shard.path].made_shard() for shard in plan.shards]
    built = conclude(
        registry,
        started,
        made,
        labels=folder.document.labels,
        resumed=0,
        sink=stage_shards(folder, receipts, stage, progress),
        change=change,
        engine=engine,
        progress=progress,
        raw_compared=not missing,
        proof=ReceiptProof(plan.shards, receipts, folder),
    )
    names = tuple(shard.path for shard in verified)
    every = [receipts[shard.path] for shard in plan.shards]
    keep_receipts(registry, built.manifest, folder.document, every, verified=names)
    return Collected(
        built=built,
        plan=folder.document.digest,
        from_parts=len(plan.shards) - len(missing),
        made_here=tuple(shard.path for shard in missing),
        verified=names,
    )


def _build_start(
    registry: Registry, folder: PlanFolder, plan: Plan, prepared: Prepared, raw: RawState | None
) -> BuildStart:
    """The start of a build in one process, from the plan."""
    name = folder.document.dataset
    dataset = registry.dataset(name)
    expect_buildable(dataset)
    schema = folder.schema()
    is_new = _expect_schema(dataset, schema)
    parse_schema(schema, dataset.schema_path)
    here = replace(prepared, raw=raw.storage if raw is not None else None)
    return BuildStart(
        prepared=here,
        plan=plan,
        raw=folder.document.raw,
        files=raw.files if raw is not None else {},
        schema=schema,
        schema_is_new=is_new,
        settings=compare_settings(registry, here),
    )


def _expect_schema(dataset: Dataset, planned: str) -> bool:
    """Whether the registry has no schema yet; refuses if it has another one than the plan."""
    text = dataset.schema_text()
    if text is not None and text != planned:
        raise UsageError(
            f"`{dataset.schema_path}` is not the schema of the plan any more",
            hint="restore it, or write the plan again, into a new folder",
        )
    return text is None


def _receipts(folder: PlanFolder, plan: Plan, progress: Progress) -> dict[str, Receipt]:
    """Receipts of the shards that are there, by path of the shard."""
    found: dict[str, Receipt] = {}
    problems: list[RefusedError] = []
    with reading_receipts(folder, plan.shards) as noted:
        for shard in noted:
            try:
                found[shard.path] = read_receipt(folder, shard)
            except RefusedError as error:
                problems.append(error)
    refuse_all(problems, progress)
    there = {entry.path for entry in folder.shards.list()}
    return {path: receipt for path, receipt in found.items() if path in there}


def _incomplete(
    folder: PlanFolder, missing: Sequence[PlannedShard], raw: RawState | None
) -> UsageError:
    total = len(folder.document.shards)
    named = _listed([shard.path for shard in missing])
    parts = parts_of(folder, [shard.path for shard in missing])
    noun, one = ("part", parts[0]) if len(parts) == 1 else ("parts", "I/N")
    of_parts = f", of the {noun} {_listed(parts)}" if parts else ""
    here = "" if raw is not None else ", and the raw data are not on this machine"
    hint = f"run the missing {noun}: `tfrecreg parts build {folder.name} --part {safe(one)}`"
    if raw is not None:
        hint += "; without `--parts-only` the missing shards are made here"
    return UsageError(
        f"nothing was published: {len(missing)} of {total} shards are missing{of_parts}{here}: "
        f"{named}",
        hint=hint,
    )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{safe(name)}`" for name in names[:_SHOWN])
    more = len(names) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _verify(
    request: CollectRequest,
    folder: PlanFolder,
    started: BuildStart,
    receipts: dict[str, Receipt],
    change: Transaction,
    engine: Engine,
    progress: Progress,
) -> list[PlannedShard]:
    """Make a sample of the parts' shards again, and compare."""
    if request.verify is None:
        return []
    if started.prepared.raw is None:
        raise UsageError(
            "`--verify` makes shards again, and the raw data are not on this machine",
            hint="name the folder where they are: --raw PATH",
        )
    there = [shard for shard in started.plan.shards if shard.path in receipts]
    chosen = choose_sample(there, request.verify)
    for shard in chosen:
        progress.note(f"rebuilding {shard.path}, to compare it")
    with change.stage("verify") as stage:
        expect_same(
            started.plan,
            chosen,
            receipts,
            started.prepared,
            folder=folder,
            stage=stage,
            engine=engine,
            progress=progress,
        )
    return chosen
