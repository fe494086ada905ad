"""Runs a build: plans it, makes the shards, reads them back and replaces the old folder."""

from __future__ import annotations

import pickle
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from tfrecreg._version import __version__
from tfrecreg.core.build.conclude import BuildResult, Growth, conclude, growth_of
from tfrecreg.core.build.plan import Base, Plan, PlannedShard, find_base, make_plan
from tfrecreg.core.build.request import (
    BuildRequest,
    ChangedSettings,
    Prepared,
    code_of_source,
    compare_settings,
    prepare,
    shard_policy,
)
from tfrecreg.core.build.shard import (
    BuildTask,
    MadeSegment,
    MadeShard,
    Stage,
    close_source,
    join_segments,
    keep_shard,
    make_part,
)
from tfrecreg.core.build.sources.interface import Item, Remark, Skipped
from tfrecreg.core.build.state import (
    expect_no_foreign_files,
    expect_no_loss,
    expect_raw_unchanged,
    raw_files,
    raw_state,
)
from tfrecreg.core.check.gate import expect_policy
from tfrecreg.core.registry.absence import expect_same_schema
from tfrecreg.core.registry.manifest import RawTotals
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.registry.transaction import Transaction, transaction
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.interface import Entry
from tfrecreg.core.storage.paths import is_url
from tfrecreg.core.values.errors import (
    ManifestError,
    NewerFormatError,
    PluginError,
    RefusedError,
    UsageError,
)
from tfrecreg.core.values.progress import SILENT, Progress, Ticker, counting, working
from tfrecreg.core.workers.interface import WORTH_SECONDS, Engine
from tfrecreg.core.workers.local import LocalEngine

ListedItem = TypeVar("ListedItem", bound=Item | Skipped | Remark)

_ITEM_SECONDS, _BYTE_SECONDS = 60e-6, 3e-9
"""Approximate times in seconds. The time per item is for a digit that is encoded as PNG. The time
per byte is for a JPEG that is stored unchanged."""


def choose_base(prepared: Prepared) -> Base | None:
    """The base; None if there is no release, if its compression differs, or if the request sets the
    size or number of shards."""
    request = prepared.request
    named = request.base not in (None, "none")
    if request.policy is not None:
        if named:
            raise UsageError(
                "`--base` excludes options for the number of shards, because the shards of the "
                "base are kept"
            )
        return None
    base = find_base(prepared.registry, request.name, request.base)
    if base is None or base.manifest.compression == prepared.settings.compression:
        return base
    if named:
        raise UsageError(
            f"the base `{base.name}` has compression {base.manifest.compression}, but the build "
            f"has {prepared.settings.compression}: `--base none` rewrites all shards"
        )
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildStart:
    """A build before its first shard."""

    prepared: Prepared
    plan: Plan
    raw: RawTotals
    files: dict[str, tuple[int, int]]
    """Size and modification time (in nanoseconds) of each raw file."""
    schema: str
    schema_is_new: bool
    settings: ChangedSettings


def begin(prepared: Prepared, engine: Engine) -> BuildStart:
    """Plan the build. Errors that would otherwise occur at its end are raised here."""
    progress, source = prepared.progress, prepared.source
    settings = compare_settings(prepared)
    for note in settings.notes():
        progress.note(note)
    dataset = prepared.registry.dataset(prepared.name)
    expect_no_foreign_files(dataset)
    before = None
    with suppress(ManifestError, NewerFormatError):  # building again replaces a damaged build
        before = dataset.build_manifest()
    expect_no_loss(dataset, before, "")
    base = choose_base(prepared)
    if prepared.data is not None:
        prepared.data.survey()
        engine = LocalEngine(1) if not prepared.data.travels else engine
    schema = dataset.schema_text()
    for note in source.notes():
        progress.note(note)
    text = source.schema() if schema is None else schema
    if schema is None and not prepared.request.default_schema:
        expect_same_schema(dataset, text, drafted=prepared.data is not None)
    parse_schema(text, dataset.schema_path)
    totals, files = raw_files(source, prepared.raw, progress)
    policy, salt = shard_policy(prepared.settings), _plan_salt(prepared, files)
    with counting(progress, f"planning {prepared.name}", "items") as ticker:
        entries = _counted(source.items(), ticker, engine)
        plan = make_plan(prepared.name, entries, policy, salt, base, source.plugin_id)
    return BuildStart(
        prepared=prepared,
        plan=plan,
        raw=totals,
        files=files,
        schema=text,
        schema_is_new=schema is None,
        settings=settings,
    )


def _plan_salt(prepared: Prepared, files: Mapping[str, tuple[int, int]]) -> dict[str, str]:
    """Everything that affects the bytes, except the items. A plan's digest includes it."""
    entry = prepared.entry
    salt = {f"option.{name}": value for name, value in entry.options.items()}
    salt["compression"] = prepared.settings.compression
    salt["source"] = f"{entry.distribution} {entry.version} {entry.name}"
    salt["tfrecreg"] = __version__
    code = code_of_source(entry.distribution, prepared.source)
    salt.update({f"code.{name}": digest for name, digest in code.items()})
    salt["raw"] = raw_state(files)
    if prepared.request.anew:  # then no earlier plan has this digest
        salt["anew"] = secrets.token_hex(16)
    return salt


def _counted(listed: Iterable[ListedItem], ticker: Ticker, engine: Engine) -> Iterator[ListedItem]:
    """Yield the listed entries and count them. Workers start as soon as enough items are listed,
    because their imports take about as long as planning.
    """
    work = 0.0
    for entry in listed:
        ticker.add(1, 0)
        yield entry
        if work <= WORTH_SECONDS and isinstance(entry, Item):
            work += _seconds(entry)
            if work > WORTH_SECONDS:
                engine.warm(make_part)


def engine_for_build(plan: Plan, engine: Engine) -> Engine:
    """Return `engine`, or an engine in this process if the build is too small to need workers."""
    work = (_seconds(item) for shard in plan.shards for item in shard.items)
    return engine.for_work(work)


def _seconds(item: Item) -> float:
    return _ITEM_SECONDS + max(item.size, 0) * _BYTE_SECONDS


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
    sizes = {
        shard.path: shard.base.entry.bytes
        if shard.path in kept and shard.base is not None
        else sum(item.size for item in shard.items)
        for shard in plan.shards
    }
    found = start.prepared.source.describe()
    return Preview(start=start, found=found, growth=growth_of(plan, kept, sizes), sizes=sizes)


def build_from_source(
    registry: Registry,
    request: BuildRequest,
    *,
    jobs: int = 1,
    engine: Engine | None = None,
    progress: Progress = SILENT,
    opened: Callable[[Transaction, Engine], AbstractContextManager[Prepared]] | None = None,
) -> BuildResult:
    """Make `data/<name>` from raw data that a source reads, or with the source that `opened` opens.
    A killed run is resumed.
    """
    with ExitStack() as entered:
        if engine is None:
            engine = entered.enter_context(closing(LocalEngine(jobs)))
        change = entered.enter_context(transaction(registry.dataset(request.name), progress))
        expect_policy(registry, request.name)
        if opened is None:
            return _build(prepare(registry, request, progress), change, engine)
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


_SHARDS_PER_JOB = 2
"""With this many shards per worker, all workers stay busy to the end. A build with fewer shards
makes new shards in segments, although every byte is then written twice.
"""


def make_all(start: BuildStart, stage: Stage, engine: Engine) -> tuple[list[MadeShard], int]:
    """Make every shard of the plan, in order. Also returns how many shards an earlier run made."""
    plan, progress = start.plan, start.prepared.progress
    stage.clear()
    finished = {each.path: stage.finished(each) for each in plan.shards}
    todo = [shard for shard in plan.shards if finished[shard.path] is None]
    whole = engine.jobs == 1 or len(todo) >= _SHARDS_PER_JOB * engine.jobs
    cuts = {each.path: len(each.cuts()) for each in todo if not whole and each.base is None}
    task = _tasks(start, stage)

    def tasks() -> Iterator[BuildTask]:
        for shard in todo:
            if shard.path not in cuts:
                yield task(shard)
                continue
            for number, items in enumerate(shard.segments()):
                yield replace(task(replace(shard, items=items)), segment=number)

    def segments(parts: Iterator[MadeShard | MadeSegment], count: int) -> Iterator[MadeSegment]:
        for part in islice(parts, count):
            assert isinstance(part, MadeSegment)
            progress.advance(len(part.segment.index), part.segment.bytes)
            yield part

    made: list[MadeShard] = []
    try:
        # Close the results, so that no worker goes on writing after an interrupt.
        with (
            working(progress, f"building {plan.dataset}", plan.items),
            closing(engine.run(make_part, tasks())) as parts,
        ):
            for shard in plan.shards:
                done = finished[shard.path]
                if shard.path in cuts:
                    joining = task(replace(shard, items=()))  # the segments have the items
                    done = join_segments(joining, segments(parts, cuts[shard.path]))
                else:
                    part = done or next(parts)
                    assert isinstance(part, MadeShard)
                    progress.advance(part.entry.records, part.entry.bytes)
                    done = part
                if finished[shard.path] is None:
                    stage.finish(done)
                made.append(done)
    finally:
        close_source()
    stage.clear()
    return made, len(plan.shards) - len(todo)


def _tasks(start: BuildStart, stage: Stage) -> Callable[[PlannedShard], BuildTask]:
    prepared, packed = start.prepared, pickle.dumps(start.prepared.source)

    def task(shard: PlannedShard) -> BuildTask:
        raw, source = prepared.raw, prepared.source
        objects: tuple[Entry, ...] = ()
        if raw is not None and source.locates and is_url(raw.root):
            paths = (source.raw_path(item.split, item.key) for item in shard.items)
            entries = (raw.stat(path) for path in paths if path is not None)
            objects = tuple(each for each in entries if each is not None and each.kind == "file")
        return BuildTask(
            stage=stage,
            source=packed,
            plan=start.plan.digest,
            compression=prepared.settings.compression,
            raw=raw,
            shard=shard,
            objects=objects,
        )

    return task


def unchanged(start: BuildStart, engine: Engine) -> set[str]:
    """Make the base's records again, and return the paths of unchanged shards. Writes nothing."""
    plan, stage = start.plan, Stage(start.prepared.registry.storage)
    candidates = [shard for shard in plan.shards if shard.base is not None]
    try:
        kept = engine.map(
            keep_shard,
            map(_tasks(start, stage), candidates),
            cost=lambda task, _: (len(task.shard.items), 0),
            label=f"comparing {plan.dataset}",
            total=sum(len(shard.items) for shard in candidates),
            progress=start.prepared.progress,
        )
    finally:
        close_source()
    return {shard.path for shard, made in zip(candidates, kept, strict=True) if made is not None}
