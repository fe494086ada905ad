"""The operation: plan, make the shards, read them back, swap the whole folder in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass

from tfrecreg.core.build.assemble import clear_killed, engine_for_build, make_all, unchanged
from tfrecreg.core.build.begin import Growth, begin, growth_of, sizes_of
from tfrecreg.core.build.conclude import BuildResult, conclude
from tfrecreg.core.build.plan import Plan
from tfrecreg.core.build.request import BuildRequest, ChangedSettings, Prepared, prepare
from tfrecreg.core.build.shard import BUILD, StageSink
from tfrecreg.core.build.state import expect_raw_unchanged
from tfrecreg.core.check.gate import expect_policy
from tfrecreg.core.registry.manifest import RawTotals
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.registry.transaction import Transaction, transaction
from tfrecreg.core.values.errors import PluginError, RefusedError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a build would do."""

    plan: Plan
    prepared: Prepared
    raw: RawTotals
    found: Mapping[str, str]
    """Description of the raw data by the source, such as ``{"layout": …}``; may be empty."""
    growth: Growth | None
    """Shards that it would keep and write; None without a base."""
    sizes: Mapping[str, int]
    """Estimated size in bytes by shard path."""
    settings: ChangedSettings
    """Differences of its settings from the dataset's file and from earlier builds."""


def preview(
    registry: Registry,
    request: BuildRequest,
    *,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> Preview:
    """Plan, and write nothing. With a base, its records are made and compared."""
    expect_policy(registry, request.name)
    prepared = prepare(registry, request, progress)
    started = begin(registry, prepared, LocalEngine(1), progress)
    plan = started.plan
    kept: set[str] = set()
    if plan.base is not None:
        engine = engine_for_build(plan, engine or LocalEngine(1))
        kept = unchanged(plan, started.prepared, registry.storage, engine, progress)
    sizes = sizes_of(plan, kept)
    return Preview(
        plan=plan,
        prepared=started.prepared,
        raw=started.raw,
        found=started.prepared.source.describe(),
        growth=growth_of(plan, kept, sizes),
        sizes=sizes,
        settings=started.settings,
    )


def build_from_source(
    registry: Registry,
    request: BuildRequest,
    *,
    jobs: int = 1,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> BuildResult:
    """Make `data/<name>` from raw data that a source reads: as
    :func:`tfrecreg.builtin.python_data.build.build`, without data of this program.
    """

    def opened(_: Transaction, __: Engine) -> AbstractContextManager[Prepared]:
        return nullcontext(prepare(registry, request, progress))

    return build_prepared(registry, request, opened, jobs=jobs, engine=engine, progress=progress)


def build_prepared(
    registry: Registry,
    request: BuildRequest,
    opened: Callable[[Transaction, Engine], AbstractContextManager[Prepared]],
    *,
    jobs: int,
    engine: Engine | None,
    progress: Progress,
) -> BuildResult:
    """Make `data/<name>` from an opened source.

    The old build stays whole until the new one was read back and passed; then the folders are
    exchanged. A killed run is resumed.
    """
    with ExitStack() as entered:
        if engine is None:
            engine = entered.enter_context(closing(LocalEngine(jobs)))
        change = entered.enter_context(transaction(registry.dataset(request.name), progress))
        expect_policy(registry, request.name)
        prepared = entered.enter_context(opened(change, engine))
        return _build(registry, prepared, change, engine, progress)


def _build(
    registry: Registry,
    prepared: Prepared,
    change: Transaction,
    engine: Engine,
    progress: Progress,
) -> BuildResult:
    started = begin(registry, prepared, engine, progress)
    if prepared.request.anew:
        change.discard_plans()
    stage = change.plan_stage(started.plan.digest)
    sink = StageSink(stage, stage.below(BUILD))
    making = checking = engine_for_build(started.plan, engine)
    if prepared.data is not None:
        making = prepared.data.engine_for(making, engine)
    clear_killed(stage)
    try:
        made, resumed = make_all(
            started.plan, started.prepared, sink, stage=stage, engine=making, progress=progress
        )
    except PluginError:
        # Raw data that change make a source fail, or give two results for one item.
        expect_raw_unchanged(started.prepared.raw, started.files, progress)
        raise
    clear_killed(stage)
    try:
        return conclude(
            registry,
            started,
            made,
            labels=started.prepared.source.labels(),
            resumed=resumed,
            sink=sink,
            change=change,
            engine=checking,
            progress=progress,
        )
    except RefusedError as error:
        if error.findings:  # their code may be corrected in a place that no plan names
            change.discard_plans()
        raise
