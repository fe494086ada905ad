"""The operation `check`: finds the targets, and checks each independently of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tfrecreg.core.check.choose import asked_for, validators_with
from tfrecreg.core.check.gate import expect_policy
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report, error_report
from tfrecreg.core.check.scan.cache import ScanCache
from tfrecreg.core.check.scan.interface import Baseline, Expected, Target, Validator
from tfrecreg.core.check.target import check_target
from tfrecreg.core.plugins.bundled import CHANGES
from tfrecreg.core.plugins.guard import PluginId
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.absence import has_shards, missing_build, strays
from tfrecreg.core.registry.data import (
    Built,
    Resolved,
    TargetsLike,
    open_release,
    resolve,
)
from tfrecreg.core.registry.find import (
    display_name,
    files_by_build,
    find_built,
    find_target,
    named_targets,
    target_of,
)
from tfrecreg.core.registry.registry import (
    Dataset,
    Registry,
    RegistryLike,
    find_registry,
    not_yanked,
    open_registry,
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
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.text import listed, safe
from tfrecreg.core.workers.context import Context, Travelling
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

if TYPE_CHECKING:
    from typing_extensions import Unpack

_BROKEN = (DatasetConfigError, ManifestError, NewerFormatError, SchemaError, StorageError)
"""Errors of one target that do not affect the others."""
_UNFIT = (*_BROKEN, NotHereError)

Beside: TypeAlias = Callable[[Target], Sequence[tuple[PluginId, Validator]]]
"""Returns validators that look at a target's records but make no findings, each with its plugin."""


class _Todo(NamedTuple):
    """A target to check."""

    target: Target
    home: Registry | None
    """The registry whose gate applies."""
    unread: str = ""
    """A line about the missing build, if a release is checked instead of the build."""


def check(
    targets: TargetsLike = (),
    *,
    options: CheckOptions | None = None,
    beside: Beside | None = None,
    one: bool = False,
    **context: Unpack[Context],
) -> list[Report]:
    """Check references and files. With `one`, refuse a target that needs several reports."""
    registry, engine, progress = Travelling(**context)
    options = options or CheckOptions()
    call = _Check(registry, options, engine or LocalEngine(1), progress, beside)
    named = named_targets(targets)
    if named:
        todo = call.find(named)
        if one and len(todo) != 1:
            raise UsageError(
                f"`{targets}` names shards of several builds: `tfrecreg.check([{str(targets)!r}])` "
                "returns a report for each"
            )
        return call.judge(todo)
    needing = {
        "--same-as": options.same_as,
        "--expect": options.expect,
        "--source": options.source,
    }
    if given := [name for name, value in needing.items() if value]:
        raise UsageError(f"{listed(given)} cannot be used without a TARGET")
    return call.all()


@dataclass(frozen=True, slots=True)
class _Check:
    """A call of :func:`check`."""

    registry: RegistryLike | None
    options: CheckOptions
    engine: Engine
    progress: Progress
    beside: Beside | None = None

    def find(self, named: Sequence[str | Built]) -> list[_Todo | Report]:
        """Find these targets. If a target cannot be checked, the result has a report instead."""
        if self.options.ignore_missing:
            raise UsageError("`--ignore-missing` cannot be used with targets")
        expected, items = self._expected(), None
        if self.options.source is not None or self.options.source_options:
            from tfrecreg.core.check.content import raw_items

            items = raw_items(self.options)
        todo: list[_Todo | Report] = []
        files: list[str] = []
        for name in named:
            try:
                found = find_built(name, self.registry)
                if found is None:
                    files.append(str(name))
                    continue
                target = replace(self._target(found), expected=expected, raw_items=items)
                home = found.registry or self._registry_here()
                unread = ""
                if isinstance(found, Resolved) and name != found.name:
                    # `mnist@latest` may be a release in place of the build; `mnist@1.0.0` is only
                    # that release.
                    of_build = str(name).startswith(f"{found.dataset}@")
                    unread = missing_build(found.dataset) if of_build else ""
                todo.append(_Todo(target, home, unread))
            except _UNFIT as error:
                todo.append(self._unjudged(str(name), error, alone=len(named) == 1))
        if files:
            schema, raw = self.options.schema, self.options.raw
            try:
                for each in files_by_build(files):
                    target = target_of(each, schema=schema, raw=raw, progress=self.progress)
                    home = Registry(target.home) if target.home is not None else None
                    target = replace(target, expected=expected, raw_items=items)
                    todo.append(_Todo(target, home or self._registry_here()))
            except _UNFIT as error:
                todo.append(self._unjudged(display_name(files), error, alone=not todo))
        return todo

    def judge(self, todo: Sequence[_Todo | Report]) -> list[Report]:
        """Check the targets. Returns one report per target."""
        homes = {id(each.home): each.home for each in todo if isinstance(each, _Todo)}
        for home in filter(None, homes.values()):
            expect_policy(home)
        alone = len(todo) == 1
        return [self._judged(each, alone=alone) for each in todo]

    def all(self) -> list[Report]:
        """Check all datasets of the registry."""
        opened = open_registry(self.registry)
        expect_policy(opened)
        within = replace(self, registry=opened.storage.root)
        ignoring = self.options.ignore_missing
        known = (each.name for each in opened.datasets() if not _is_history(each))
        names = sorted({*known, *strays(opened)})
        reports: list[Report] = []
        for name in names:
            found: _Todo | Report
            dataset = opened.dataset(name)
            try:
                target = self._target(_local(dataset))
                missing = missing_build(dataset)
                found = _Todo(target, opened, "" if ignoring else missing)
                if missing and ignoring:
                    self.progress.note(f"not checked: {missing}")
            except _UNFIT as error:
                if ignoring and isinstance(error, NotHereError):
                    self.progress.note(f"not checked: {error.message}")
                    continue
                found = self._unjudged(name, error, alone=False)
            reports.append(within._judged(found, alone=False))
        if not names:
            raise UsageError(
                "the registry has no dataset yet",
                hint="build one with `tfrecreg build NAME`, or give the files to check",
            )
        if not reports:
            raise NotHereError(
                f"none of {listed(names)} is here; without `--ignore-missing`, the report says how "
                "to get each of them"
            )
        return reports

    def _judged(self, found: _Todo | Report, *, alone: bool) -> Report:
        """Check one target. If one of several cannot be checked, the others are still checked."""
        if isinstance(found, Report):
            return found
        target, home, unread = found
        options, beside = self.options, self.beside
        try:
            if options.against is not None:
                other = find_target(options.against, registry=self.registry)
                target = replace(target, baseline=Baseline(other, self.engine, self.progress))
            report = check_target(
                target,
                home.config if home is not None else Config(),
                options,
                engine=self.engine,
                progress=self.progress,
                cache=scan_cache(home, reuse=options.cached),
                beside=beside(target) if beside is not None else [],
            )
        except _BROKEN as error:
            return self._unjudged(target.name, error, alone=alone)
        report = replace(report, changes=tuple(self._changes(target)))
        if unread:
            unread = f"`{report.target}` was checked in place of {unread}"
            report = replace(report, status="error", errors=(*report.errors, unread))
        here = self._registry_here()
        elsewhere = here is None or target.home is None or here.storage.root != target.home.root
        if target.home is None or report.folder is None or is_absolute(report.folder):
            return report
        # For a target in another registry, use the full path of its folder.
        folder = str(Path(target.home.root, report.folder)) if elsewhere else report.folder
        return replace(report, folder=folder)

    def _unjudged(self, name: str, error: TfrecregError, *, alone: bool) -> Report:
        """The report about a target that could not be read. If the check has no other target
        (`alone`), or if the user's schema is wrong, `error` is raised instead.
        """
        if alone or (isinstance(error, SchemaError) and self.options.schema is not None):
            raise error
        return error_report(name, error)

    def _target(self, found: Built) -> Target:
        """The target, with the raw data to measure. The option `raw` names their folder. Without
        this option, the folder in the configuration is used, but only for a build whose manifest
        lists no raw files.
        """
        raw = self.options.raw
        if raw is None and isinstance(found, Resolved) and found.kind == "build":
            raw = found.dataset.raw_folder if not found.manifest.raw.files else None
            if raw is not None and not Path(raw).is_dir():
                self.progress.note(
                    f"the raw data of `{found.dataset}` are not in `{safe(raw, limit=1000)}`, so "
                    "inflation is not judged"
                )
                raw = None
        return target_of(found, schema=self.options.schema, raw=raw, progress=self.progress)

    def _expected(self) -> Expected | None:
        options = self.options
        if options.same_as is None and not options.expect:
            return None
        comparing = validators_with("expected", plugins())
        if comparing and not asked_for(comparing, (), options.skip):
            names = " ".join(f"--skip {each.name}" for each in comparing)
            raise UsageError(f"`{names}` skips the validators that `--same-as` and `--expect` need")
        from tfrecreg.core.check.content import expected_of

        return expected_of(options.same_as, options.expect, self.registry)

    def _registry_here(self) -> Registry | None:
        """The registry that the user named or that was found; None if there is no registry."""
        root = self.registry if self.registry is not None else find_registry()
        return open_registry(root) if root is not None else None

    def _changes(self, target: Target) -> Iterator[str]:
        """A line about a missing build and, for a page, one about the latest changes."""
        if target.home is None or target.manifest is None:
            return
        registry = Registry(target.home)
        if missing := missing_build(registry.dataset(target.dataset)):
            yield missing
        if self.beside is None:
            return
        changes = import_module(CHANGES)  # imported here, because few checks compare versions
        with suppress(TfrecregError):  # findings report the reason
            yield changes.changes_of(resolve(registry, target.reference), self.progress)


def _is_history(dataset: Dataset) -> bool:
    """Whether a dataset is neither configured nor built, and has only yanked releases."""
    config = dataset.registry.config
    if dataset.name in config.datasets or dataset.name in config.broken or dataset.is_built():
        return False
    try:
        return not not_yanked(dataset)
    except (ManifestError, NewerFormatError):
        return False


def _local(dataset: Dataset) -> Resolved:
    """The build of a dataset, or its newest release if this machine has only that."""
    versions = not_yanked(dataset)
    if versions and not dataset.is_built() and not has_shards(dataset):
        newest = open_release(dataset, versions[-1])
        if newest.folder is not None:
            return newest
    return resolve(dataset.registry, dataset.name)


def scan_cache(registry: Registry | None, *, reuse: bool) -> ScanCache | None:
    """The registry's cache. Without a registry, the user's cache; None if the user has none."""
    if registry is not None:
        return ScanCache(registry.storage, layout.CHECKS, reuse=reuse)
    storage = user_cache()
    return None if storage is None else ScanCache(storage, "tfrecreg/checks", reuse=reuse)
