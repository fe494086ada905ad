"""The operation: plan, make the shards, read them back, swap the whole folder in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

from tfrecreg.engines import Engine, LocalEngine
from tfrecreg.errors import (
    FailureError,
    ManifestError,
    NewerFormatError,
    RefusedError,
)
from tfrecreg.findings import Location
from tfrecreg.gating import FailOn
from tfrecreg.manifest import MANIFEST_NAME, Manifest, RawTotals, render_manifest
from tfrecreg.operations.builds.assemble import assemble, ledgers
from tfrecreg.operations.builds.data import prepare_data, program_data
from tfrecreg.operations.builds.growth import (
    Growth,
    PushCost,
    choose_base,
    growth_of,
    push_cost,
    sizes_of,
)
from tfrecreg.operations.builds.make import engine_for_build, make_all, unchanged, warming
from tfrecreg.operations.builds.plan import Plan, make_plan
from tfrecreg.operations.builds.request import BuildRequest, Prepared, prepare
from tfrecreg.operations.builds.settings import BuildSettings, compare_settings
from tfrecreg.operations.builds.shard import MadeShard
from tfrecreg.operations.builds.state import (
    BuildRecord,
    expect_raw_unchanged,
    raw_files,
    raw_state,
    remember,
)
from tfrecreg.operations.check import CheckOptions, Report, check_target
from tfrecreg.operations.overwrite_guard import expect_no_loss, expect_no_strangers
from tfrecreg.operations.policy import expect_policy
from tfrecreg.operations.targets import build_target
from tfrecreg.progress import SILENT, Progress, Ticker, counting
from tfrecreg.registry import Dataset, Registry, layout
from tfrecreg.registry.absence import expect_same_schema
from tfrecreg.registry.transaction import Transaction, transaction
from tfrecreg.schema import parse_schema
from tfrecreg.sources import Item, Remark, Skipped
from tfrecreg.sources.python_data import SplitData
from tfrecreg.storage import Storage
from tfrecreg.text import safe
from tfrecreg.toml_files import update_toml

_READ_BACK = ("crc", "manifest", "schema")
"""Validators that a new build must pass before it replaces the old one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """A finished build."""

    manifest: Manifest = field(repr=False)
    folder: str
    """Folder of the build, relative to the registry."""
    report: Report
    """Report of the check after writing."""
    resumed: int
    """Shards that an earlier, killed run had finished."""
    growth: Growth | None
    """Reuse of the base's shards; None without a base."""
    unchanged: bool
    """Whether the build that was there is the same to the byte."""
    settings: BuildSettings
    """Differences of its settings from the dataset's file and from earlier builds."""


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
    push: PushCost
    """Cost of a push of its release."""
    settings: BuildSettings
    """Differences of its settings from the dataset's file and from earlier builds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    prepared: Prepared
    plan: Plan
    raw: RawTotals
    files: dict[str, tuple[int, int]]
    schema: str
    schema_is_new: bool
    settings: BuildSettings


def preview(
    registry: Registry,
    request: BuildRequest,
    *,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> Preview:
    """Plan, and write nothing. With a base, its records are made and compared.

    Raises:
        UsageError: as :func:`build` does before its work starts.
        FailureError: a plugin or a worker failed.
    """
    expect_policy(registry, request.name)
    prepared = prepare(registry, request, progress)
    begun = _begin(registry, request, prepared, LocalEngine(1), progress)
    plan = begun.plan
    kept: set[str] = set()
    if plan.base is not None:
        engine = engine_for_build(plan, engine or LocalEngine(1))
        kept = unchanged(plan, begun.prepared, registry.storage, engine, progress)
    sizes = sizes_of(plan, kept)
    return Preview(
        plan=plan,
        prepared=begun.prepared,
        raw=begun.raw,
        found=begun.prepared.source.describe(),
        growth=growth_of(plan, kept, sizes),
        sizes=sizes,
        push=push_cost(plan, kept, sizes, begun.prepared.source.labels(), begun.schema),
        settings=begun.settings,
    )


def build(
    registry: Registry,
    request: BuildRequest,
    *,
    data: Mapping[str, SplitData] | None = None,
    key: str | Callable[[Any], object] | None = None,
    labels: Mapping[str, Sequence[str]] | None = None,
    jobs: int = 1,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> BuildResult:
    """Make `data/<name>` from raw data that a source reads, or from the data of this program.

    The old build stays whole until the new one was read back and passed; then the folders are
    exchanged. A killed run is resumed.

    Args:
        registry: an open registry.
        request: settings of the build.
        data: the elements of each split: a sequence of dictionaries from feature name to value, a
            dictionary of columns of equal length, or an iterable of dictionaries. A sequence is
            read twice and has to give the same elements; an iterable is read once, to disk. None
            where the request names a source.
        key: of an element of `data`: the name of a feature, or a function of the element. By
            default the key is the number of the element in its split.
        labels: class names in order of their numbers, by feature of `data`.
        jobs: number of worker processes. With more than one, a script keeps its code under
            ``if __name__ == "__main__":``.
        engine: runs the work in place of an own engine with `jobs` processes.
        progress: updated during the work.

    Raises:
        UsageError: bad names, options, configuration, raw data or schema, or an element that has
            no lossless place in an example.
        RefusedError: too many items were skipped, or the check of the new build has findings.
        FailureError: a plugin, a worker or the disk failed.
    """
    given = program_data(data, key=key, labels=labels)
    with ExitStack() as opened:
        if engine is None:
            engine = opened.enter_context(closing(LocalEngine(jobs)))
        change = opened.enter_context(transaction(registry.dataset(request.name), progress))
        expect_policy(registry, request.name)
        if given is None:
            prepared = prepare(registry, request, progress)
        else:
            scratch = opened.enter_context(change.stage("data"))
            prepared = opened.enter_context(
                prepare_data(
                    registry, request, given, scratch=scratch, engine=engine, progress=progress
                )
            )
        return _build(registry, request, prepared, change, engine, progress)


def _build(
    registry: Registry,
    request: BuildRequest,
    prepared: Prepared,
    change: Transaction,
    engine: Engine,
    progress: Progress,
) -> BuildResult:
    begun = _begin(registry, request, prepared, engine, progress)
    name = request.name
    stage = change.plan_stage(begun.plan.digest)
    staged = stage.below("build")
    making = checking = engine_for_build(begun.plan, engine)
    if prepared.data is not None:
        making = prepared.data.engine_for(making, engine)
    made, resumed = make_all(begun.plan, begun.prepared, stage, staged, making, progress)
    _accept_skipped(begun, made)
    manifest = assemble(
        begun.prepared,
        begun.plan,
        made,
        build=staged,
        schema=begun.schema,
        raw=begun.raw,
        labels=begun.prepared.source.labels(),
    )
    with staged.create(MANIFEST_NAME) as writer:
        writer.write(render_manifest(manifest))
    report = _read_back(registry, begun, manifest, staged, checking, progress)
    expect_raw_unchanged(prepared.raw, begun.files, progress)
    unchanged = _is_there(registry, manifest)
    # What was read back just now is the manifest's, byte for byte.
    change.replace(layout.build_folder(name), staged, manifest, verified=True)
    _settle(registry, begun, manifest)
    return BuildResult(
        manifest=manifest,
        folder=layout.build_folder(name),
        report=report,
        resumed=resumed,
        growth=growth_of(
            begun.plan,
            {shard.entry.path for shard in made if shard.kept},
            {shard.entry.path: shard.entry.bytes for shard in made},
        ),
        unchanged=unchanged,
        settings=begun.settings,
    )


def _begin(
    registry: Registry,
    request: BuildRequest,
    prepared: Prepared,
    engine: Engine,
    progress: Progress,
) -> _Begun:
    settings = compare_settings(registry, request, prepared)
    for note in settings.notes():
        progress.note(note)
    dataset = registry.dataset(request.name)
    _expect_replaceable(dataset)
    base = choose_base(registry, request, prepared)
    if prepared.data is not None:
        prepared.data.survey()
        engine = LocalEngine(1) if not prepared.data.travels else engine
    schema = dataset.schema_text()
    text = prepared.source.schema() if schema is None else schema
    if schema is None and not request.default_schema:
        expect_same_schema(dataset, text, drafted=prepared.data is not None)
    parse_schema(text, dataset.schema_path)
    totals, files = raw_files(prepared.source, prepared.raw, progress)
    salt = {f"option.{name}": value for name, value in prepared.options.items()}
    salt["compression"] = prepared.compression
    salt["source"] = f"{prepared.distribution} {prepared.version} {prepared.source_name}"
    salt["raw"] = raw_state(files)
    with counting(progress, f"planning {request.name}", "items") as ticker:
        listed = warming(_counted(prepared.source.items(), ticker), engine)
        plan = make_plan(
            request.name, listed, prepared.policy, salt, base, brought=prepared.source.brought
        )
    return _Begun(
        prepared=prepared,
        plan=plan,
        raw=totals,
        files=files,
        schema=text,
        schema_is_new=schema is None,
        settings=settings,
    )


def _counted(
    listed: Iterable[Item | Skipped | Remark], ticker: Ticker
) -> Iterator[Item | Skipped | Remark]:
    for each in listed:
        ticker.add(1, 0)
        yield each


def _expect_replaceable(dataset: Dataset) -> None:
    """Refuse before any work what publishing the build would cost."""
    expect_no_strangers(dataset)
    try:
        before = dataset.build_manifest()
    except (ManifestError, NewerFormatError):
        return  # a build that is damaged is what building again is for
    expect_no_loss(dataset, before, "")


def _accept_skipped(begun: _Begun, made: Sequence[MadeShard]) -> None:
    """Refuse a build that lost more items than was agreed."""
    found = ledgers(begun.plan, made)
    counts: Counter[str] = Counter()
    for ledger in found.values():
        counts.update(ledger.skipped)
    items = sum(ledger.items for ledger in found.values())
    skipped = sum(counts.values())
    if begun.prepared.max_skipped.allows(skipped, items):
        return
    reasons = ", ".join(f"{code}: {count}" for code, count in sorted(counts.items()))
    first = next(iter([*begun.plan.skipped, *(each for shard in made for each in shard.skipped)]))
    raise RefusedError(
        f"{skipped} of {items} items were skipped ({reasons}), at most "
        f"{begun.prepared.max_skipped} may be; one is `{safe(first.key)}`: {safe(first.detail)}",
        hint=f"fix the raw data, or accept the skipped items: --max-skipped {skipped}",
    )


def _read_back(
    registry: Registry,
    begun: _Begun,
    manifest: Manifest,
    staged: Storage,
    engine: Engine,
    progress: Progress,
) -> Report:
    target = build_target(
        manifest,
        staged,
        name=manifest.dataset,
        kind="build",
        schema=begun.schema,
        schema_path=registry.dataset(manifest.dataset).schema_path,
    )
    options = CheckOptions(only=_READ_BACK, fail_on=FailOn.ERROR)
    report = check_target(target, registry.config, options, engine=engine, progress=progress)
    if report.status == "pass":
        return report
    if report.errors:
        raise FailureError(
            f"the new build could not be read back, and the old one stays: {report.errors[0]}",
            hint="fix this and run the build again; finished shards are reused",
        )
    first, hint = report.findings[0], "fix the schema or the raw data; the findings above say where"
    where = ""
    if begun.prepared.data is not None:
        hint = "fix the data, or the schema: `findings` of this error has all of them"
        places = (f" ({_place(each)})" for each in first.locations)
        where = next(places, "")
    raise RefusedError(
        f"the new build does not pass its own check, and the old one stays: {first.message}{where}",
        hint=hint,
        findings=report.findings,
    )


def _place(location: Location) -> str:
    return f"split `{safe(location.split or '')}`, key `{safe(location.key or '')}`"


def _is_there(registry: Registry, manifest: Manifest) -> bool:
    """Whether the build that is there says to the byte what the new one says."""
    path = f"{layout.build_folder(manifest.dataset)}/{MANIFEST_NAME}"
    storage = registry.storage
    return storage.stat(path) is not None and storage.read(path) == render_manifest(manifest)


def _settle(registry: Registry, begun: _Begun, manifest: Manifest) -> None:
    """Keep what the next build wants to know: the schema, the configuration, the raw state."""
    name = manifest.dataset
    storage = registry.storage
    schema = registry.dataset(name).schema_path
    if begun.schema_is_new:
        storage.put_if_absent(schema, begun.schema.encode("utf-8"))
    else:  # a run that was killed may have written it, and not made it durable
        storage.sync_dir(schema.rpartition("/")[0])
    path = layout.dataset_path(name)
    if begun.prepared.remember:
        before = b"" if storage.stat(path) is None else storage.read(path)
        text = update_toml(before.decode("utf-8"), path, begun.prepared.remember)
        with storage.create(path) as writer:
            writer.write(text.encode("utf-8"))
    elif storage.stat(path) is not None:  # as above
        storage.sync_dir(path.rpartition("/")[0])
    raw = begun.prepared.raw
    if raw is not None:
        record = BuildRecord(manifest=manifest.digest, raw=raw.root, files=begun.files)
        remember(registry, name, record)
