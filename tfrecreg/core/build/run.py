"""Runs a build: plans it, makes the shards, reads them back and replaces the old folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass

from tfrecreg.core.build.assemble import make_all, unchanged
from tfrecreg.core.build.begin import (
    BuildStart,
    Growth,
    begin,
    engine_for_build,
    growth_of,
    sizes_of,
)
from tfrecreg.core.build.conclude import BuildResult, conclude
from tfrecreg.core.build.request import BuildRequest, Prepared, prepare
from tfrecreg.core.build.shard import Stage
from tfrecreg.core.build.state import expect_raw_unchanged
from tfrecreg.core.check.gate import expect_policy
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.registry.transaction import Transaction, transaction
from tfrecreg.core.values.errors import PluginError, RefusedError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a build would do."""

    start: BuildStart
    found: Mapping[str, str]
    """The source's description of the raw data, such as ``{"layout": …}``. It may be empty."""
    growth: Growth | None
    """The shards that the build would keep or write; None without a base."""
    sizes: Mapping[str, int]
    """The size of each shard in bytes, by path. Sizes of new shards are estimates."""


def preview(
    registry: Registry,
    request: BuildRequest,
    *,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> Preview:
    """Plan without writing anything. If there is a base, compare new records with its records."""
    expect_policy(registry, request.name)
    start = begin(prepare(registry, request, progress), LocalEngine(1))
    plan = start.plan
    kept: set[str] = set()
    if plan.base is not None:
        kept = unchanged(start, engine_for_build(plan, engine or LocalEngine(1)))
    sizes = sizes_of(plan, kept)
    found = start.prepared.source.describe()
    return Preview(start=start, found=found, growth=growth_of(plan, kept, sizes), sizes=sizes)


def build_from_source(
    registry: Registry,
    request: BuildRequest,
    *,
    jobs: int = 1,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> BuildResult:
    """Make `data/<name>` from raw data that a source reads. For data in the memory of this program,
    use :func:`tfrecreg.builtin.python_data.build.build`.
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

    The new build is read back and checked before it replaces the old build. A killed run is
    resumed.
    """
    with ExitStack() as entered:
        if engine is None:
            engine = entered.enter_context(closing(LocalEngine(jobs)))
        change = entered.enter_context(transaction(registry.dataset(request.name), progress))
        expect_policy(registry, request.name)
        return _build(entered.enter_context(opened(change, engine)), change, engine)


def _build(prepared: Prepared, change: Transaction, engine: Engine) -> BuildResult:
    start = begin(prepared, engine)
    if prepared.request.anew:
        change.discard_plans()
    stage = Stage(change.plan_stage(start.plan.digest))
    making = checking = engine_for_build(start.plan, engine)
    if prepared.data is not None:
        making = prepared.data.engine_for(making, engine)
    try:
        made, resumed = make_all(start, stage, making)
    except PluginError:
        # If raw data change, a source may fail or give two results for one item.
        expect_raw_unchanged(prepared.raw, start.files, prepared.progress)
        raise
    try:
        return conclude(start, made, resumed, folder=stage.folder, change=change, engine=checking)
    except RefusedError as error:
        if error.findings:  # the user may fix code that is not part of a plan's digest
            change.discard_plans()
        raise
