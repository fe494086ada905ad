"""The operation: find the targets, and check each, so that none hides another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from tfrecreg.core.check.choose import asked_for, validators_with
from tfrecreg.core.check.gate import expect_policy
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report, error_report
from tfrecreg.core.check.scan.cache import ScanCache
from tfrecreg.core.check.scan.interface import Baseline, Expected, RawItems, Target, Validator
from tfrecreg.core.check.target import check_target
from tfrecreg.core.plugins.bundled import CHANGES
from tfrecreg.core.plugins.guard import PluginId
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.absence import has_shards, missing_build, strays
from tfrecreg.core.registry.lookup import Resolved, open_release, resolve
from tfrecreg.core.registry.registry import (
    Dataset,
    Registry,
    RegistryLike,
    find_registry,
    not_yanked,
    open_registry,
)
from tfrecreg.core.registry.shardset.find import Built, TargetLike, TargetsLike, find, named_targets
from tfrecreg.core.registry.shardset.target import (
    display_name,
    files_targets,
    find_target,
    target_of,
)
from tfrecreg.core.storage.local import user_cache
from tfrecreg.core.storage.raw import is_absolute
from tfrecreg.core.values.config import Config
from tfrecreg.core.values.errors import (
    DatasetConfigError,
    ManifestError,
    NewerFormatError,
    NotHereError,
    SchemaError,
    StorageError,
    TfrecregError,
    UsageError,
)
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.text import listed, safe
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

_BROKEN = (DatasetConfigError, ManifestError, NewerFormatError, SchemaError, StorageError)
"""Errors of one target that do not affect the others."""
_UNFIT = (*_BROKEN, NotHereError)

Beside: TypeAlias = Callable[[Target], Sequence[tuple[PluginId, Validator]]]
"""Gives validators that look at the records of a target beside those that judge them, and whose
they are."""

_Judged: TypeAlias = tuple[Target, "Registry | None", str]
"""A target, the registry whose gate judges it, and the build that is not here where a release is
judged in its place, else an empty text."""


def check(
    targets: TargetsLike = (),
    *,
    registry: RegistryLike | None = None,
    options: CheckOptions | None = None,
    engine: Engine | None = None,
    progress: Progress = SILENT,
    beside: Beside | None = None,
) -> list[Report]:
    """Check references and files."""
    options = options or CheckOptions()
    engine = engine or LocalEngine(1)
    named = named_targets(targets)
    if not named and (options.same_as is not None or options.expect):
        raise UsageError(
            "`--same-as` and `--expect` need a TARGET",
            hint="tfrecreg check TARGET --same-as REF",
        )
    if not named and options.source is not None:
        raise UsageError(
            "`--source` is for a target", hint="tfrecreg check TARGET --source S --raw DIR"
        )
    if not named:
        return _check_all(open_registry(registry), options, engine, progress, beside)
    if options.ignore_missing:
        raise UsageError(
            "`--ignore-missing` cannot be used with targets", hint="leave it out, or name no target"
        )
    todo = _find_all(named, registry, options, progress)
    return _judge_all(todo, registry, options, engine, progress, beside)


def check_one(
    target: TargetLike,
    *,
    registry: RegistryLike | None = None,
    options: CheckOptions,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> Report:
    """Check a single target."""
    todo = _find_all(named_targets(target), registry, options, progress)
    if len(todo) != 1:
        raise UsageError(
            f"`{safe(str(target))}` names shards of several builds, and each gets its own report",
            hint=f"`tfrecreg.check([{safe(str(target))!r}])` returns a list of reports",
        )
    return _judge_all(todo, registry, options, engine or LocalEngine(1), progress, None)[0]


def _find_all(
    named: Sequence[str | Resolved],
    registry: RegistryLike | None,
    options: CheckOptions,
    progress: Progress,
) -> list[_Judged | Report]:
    """The targets of these names, or reports about those that cannot be checked."""
    expected, items = _expected(options, registry), _items(options)
    todo: list[_Judged | Report] = []
    files: list[str] = []
    for name in named:
        try:
            found = find(name, registry)
            if isinstance(found, str):
                files.append(found)
            else:
                target = _target(found, options, progress)
                home = found.registry or _registry_here(registry)
                target = replace(target, expected=expected, raw_items=items)
                todo.append((target, home, _unread_build(found, name)))
        except _UNFIT as error:
            if len(named) == 1 or _is_the_users(error, options):
                raise
            todo.append(_unjudged(str(name), error))
    if files:
        try:
            for target in files_targets(
                files, schema=options.schema, raw=options.raw, progress=progress
            ):
                home = _registry_here(registry if target.home is None else Registry(target.home))
                todo.append((replace(target, expected=expected, raw_items=items), home, ""))
        except _UNFIT as error:
            if not todo or _is_the_users(error, options):
                raise
            todo.append(_unjudged(display_name(files), error))
    return todo


def _judge_all(
    todo: Sequence[_Judged | Report],
    registry: RegistryLike | None,
    options: CheckOptions,
    engine: Engine,
    progress: Progress,
    beside: Beside | None,
) -> list[Report]:
    homes = {id(each[1]): each[1] for each in todo if not isinstance(each, Report)}
    for home in filter(None, homes.values()):
        expect_policy(home, options.gate)
    alone = len(todo) == 1
    return [
        _judged(each, registry, options, engine, progress, beside, alone=alone) for each in todo
    ]


def _target(found: Built, options: CheckOptions, progress: Progress) -> Target:
    raw = _raw(found, options, progress) if isinstance(found, Resolved) else options.raw
    return target_of(found, schema=options.schema, raw=raw, progress=progress)


def _expected(options: CheckOptions, registry: RegistryLike | None) -> Expected | None:
    if options.same_as is None and not options.expect:
        return None
    comparing = validators_with("expected", plugins())
    if comparing and not asked_for(comparing, (), options.skip):
        names = " ".join(f"--skip {each.name}" for each in comparing)
        raise UsageError(
            f"`{names}` excludes the validators of `--same-as` and `--expect`",
            hint=f"leave out `{names}`",
        )
    from tfrecreg.core.check.content import expected_of

    return expected_of(options.same_as, options.expect, registry)


def _items(options: CheckOptions) -> RawItems | None:
    if options.source is None and not options.source_options:
        return None
    from tfrecreg.core.check.content import raw_items

    return raw_items(options)


def _raw(resolved: Resolved, options: CheckOptions, progress: Progress) -> str | None:
    """The raw data to measure: those that were named, or the configured ones of a build whose
    manifest knows none.
    """
    if options.raw is not None or resolved.kind != "build" or resolved.manifest.raw.files:
        return options.raw
    folder = resolved.dataset.raw_folder
    if folder is not None and not Path(folder).is_dir():
        progress.note(
            f"`{safe(folder, limit=1000)}`, the `raw` of `{resolved.dataset}`, is not here: "
            "inflation is not judged"
        )
        return None
    return folder


def _judged(
    found: _Judged | Report,
    registry: RegistryLike | None,
    options: CheckOptions,
    engine: Engine,
    progress: Progress,
    beside: Beside | None,
    *,
    alone: bool,
) -> Report:
    """Check one target; one of several that cannot be judged hides no other."""
    if isinstance(found, Report):
        return found
    target, home, unread = found
    try:
        if options.against is not None:
            other = find_target(options.against, registry=registry)
            target = replace(target, baseline=Baseline(other, engine, progress))
        report = check_target(
            target,
            home.config if home is not None else Config(),
            options,
            engine=engine,
            progress=progress,
            cache=scan_cache(home, reuse=options.cached),
            beside=beside(target) if beside is not None else [],
        )
        report = replace(report, changes=tuple(_changes(target, progress, beside)))
        if unread:
            unread = f"`{report.target}` was checked in place of {unread}"
            report = replace(report, status="error", errors=(*report.errors, unread))
        return _placed(report, target, registry)
    except _BROKEN as error:
        if alone or _is_the_users(error, options):
            raise
        return _unjudged(target.name, error)


def _unread_build(found: Built, name: str | Resolved) -> str:
    """The build that is not here, if a name such as `mnist@latest` means a release in its place.

    `mnist@1.0.0` means that release and nothing else.
    """
    if not isinstance(found, Resolved) or name == found.name:
        return ""
    return missing_build(found.dataset) if str(name).startswith(f"{found.dataset}@") else ""


def _changes(target: Target, progress: Progress, beside: Beside | None) -> Iterator[str]:
    """The build that is not here, and where a reader is to see it, what a build or release of a
    registry changed since the one before.
    """
    if target.home is None or target.manifest is None:
        return
    registry = Registry(target.home)
    if missing := missing_build(registry.dataset(target.dataset)):
        yield missing
    if beside is None:
        return
    changes = import_module(CHANGES)  # a room: few checks compare versions
    with suppress(TfrecregError):  # findings say why
        yield changes.changes_of(resolve(registry, target.reference), progress)


def _placed(report: Report, target: Target, registry: RegistryLike | None) -> Report:
    """The report, with a full path to the folder of a target in another registry."""
    if target.home is None or report.folder is None or is_absolute(report.folder):
        return report
    here = _registry_here(registry)
    if here is not None and here.storage.root == target.home.root:
        return report
    return replace(report, folder=str(Path(target.home.root, report.folder)))


def _is_the_users(error: TfrecregError, options: CheckOptions) -> bool:
    """Whether the user's own schema is wrong, independent of the target."""
    return isinstance(error, SchemaError) and options.schema is not None


def _unjudged(name: str, error: TfrecregError) -> Report:
    """The report about a target that could not be read."""
    hint = f"; hint: {error.hint}" if error.hint else ""
    return error_report(name, f"{error.message}{hint}")


def _registry_here(registry: RegistryLike | None) -> Registry | None:
    """The registry that was named or is found: bare files need none."""
    root = registry if registry is not None else find_registry()
    return open_registry(root) if root is not None else None


def _check_all(
    opened: Registry,
    options: CheckOptions,
    engine: Engine,
    progress: Progress,
    beside: Beside | None,
) -> list[Report]:
    expect_policy(opened, options.gate)
    reports: list[Report] = []
    known = (each.name for each in opened.datasets() if not _is_history(each))
    names = sorted({*known, *strays(opened)})
    for name in names:
        found: _Judged | Report
        dataset = opened.dataset(name)
        try:
            target = _target(_local(dataset), options, progress)
            missing = missing_build(dataset)
            found = target, opened, "" if options.ignore_missing else missing
            if missing and options.ignore_missing:
                progress.note(f"not checked: {missing}")
        except _UNFIT as error:
            if _is_the_users(error, options):
                raise
            if options.ignore_missing and isinstance(error, NotHereError):
                progress.note(f"not checked: {error.message}")
                continue
            found = _unjudged(name, error)
        root = opened.storage.root
        reports.append(_judged(found, root, options, engine, progress, beside, alone=False))
    if not names:
        raise UsageError(
            "the registry has no dataset yet", hint="tfrecreg build NAME, or name files"
        )
    if not reports:
        raise NotHereError(
            f"none of {listed(names)} is here",
            hint="without `--ignore-missing`, the report names the command for each of them",
        )
    return reports


def _is_history(dataset: Dataset) -> bool:
    """Whether a dataset is known only by yanked releases, which should not be used."""
    config = dataset.registry.config
    if dataset.name in config.datasets or dataset.name in config.broken or dataset.is_built():
        return False
    try:
        return not not_yanked(dataset)
    except (ManifestError, NewerFormatError):
        return False


def _local(dataset: Dataset) -> Resolved:
    """The build of a dataset, else its newest release if its bytes are here."""
    versions = not_yanked(dataset)
    if versions and not dataset.is_built() and not has_shards(dataset):
        newest = open_release(dataset, versions[-1])
        if newest.folder is not None:
            return newest
    return resolve(dataset.registry, dataset.name)


def scan_cache(registry: Registry | None, *, reuse: bool) -> ScanCache | None:
    """The cache of a registry, else of this user; None without a folder for it."""
    if registry is not None:
        return ScanCache(registry.storage, layout.CHECKS, reuse=reuse)
    storage = user_cache()
    return None if storage is None else ScanCache(storage, "tfrecreg/checks", reuse=reuse)
