"""Functions of targets that need no registry, and arguments of verbs as operations take them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from tfrecreg.core.registry.lookup import Resolved
from tfrecreg.library.display import shown

if TYPE_CHECKING:
    from tfrecreg.builtin.pages.make import PageResult
    from tfrecreg.core.check.options import CheckOptions
    from tfrecreg.core.check.reports import Report
    from tfrecreg.core.registry.registry import RegistryLike
    from tfrecreg.core.registry.shardset.find import TargetLike, TargetsLike
    from tfrecreg.core.values.progress import Progress
    from tfrecreg.core.workers.interface import Engine

FailOnWord: TypeAlias = Literal["error", "warning", "never"]
Words: TypeAlias = "str | Iterable[str]"
"""One name, or several."""


def path_or_none(path: str | os.PathLike[str] | None) -> str | None:
    """A path as requests have it; None stays None."""
    return None if path is None else os.fspath(path)


def name_or_none(target: str | os.PathLike[str] | Resolved | None) -> str | None:
    """The reference of a build or a release, or the path; None stays None."""
    return target.name if isinstance(target, Resolved) else path_or_none(target)


def check_options(
    *,
    only: Words,
    skip: Words,
    raw: str | os.PathLike[str] | None,
    schema: str | os.PathLike[str] | None,
    against: str | os.PathLike[str] | Resolved | None,
    fail_on: FailOnWord | None,
    cached: bool,
    same_as: str | Resolved | None = None,
    expect: Mapping[str, int] | None = None,
    source: str | None = None,
    options: Mapping[str, Any] | None = None,
    ignore_missing: bool = False,
) -> CheckOptions:
    """The options of a check."""
    from tfrecreg.core.check.options import CheckOptions

    return CheckOptions(
        only=tuple_of(only),
        skip=tuple_of(skip),
        raw=path_or_none(raw),
        source=source,
        source_options=options or {},
        schema=path_or_none(schema),
        against=name_or_none(against),
        same_as=name_or_none(same_as),
        expect=expect or {},
        fail_on=fail_on,
        cached=cached,
        ignore_missing=ignore_missing,
    )


def tuple_of(words: Words) -> tuple[str, ...]:
    """The names."""
    return (words,) if isinstance(words, str) else tuple(words)


@overload
def check(  # type: ignore[overload-overlap]  # a str is an iterable of str
    targets: TargetLike,
    *,
    only: Words = (),
    skip: Words = (),
    raw: str | os.PathLike[str] | None = None,
    source: str | None = None,
    options: Mapping[str, Any] | None = None,
    schema: str | os.PathLike[str] | None = None,
    against: str | os.PathLike[str] | Resolved | None = None,
    same_as: str | Resolved | None = None,
    expect: Mapping[str, int] | None = None,
    fail_on: FailOnWord | None = None,
    cached: bool = False,
    registry: RegistryLike | None = None,
    engine: Engine | None = None,
    progress: Progress | bool = True,
) -> Report: ...
@overload
def check(
    targets: Iterable[TargetLike],
    *,
    only: Words = (),
    skip: Words = (),
    raw: str | os.PathLike[str] | None = None,
    source: str | None = None,
    options: Mapping[str, Any] | None = None,
    schema: str | os.PathLike[str] | None = None,
    against: str | os.PathLike[str] | Resolved | None = None,
    same_as: str | Resolved | None = None,
    expect: Mapping[str, int] | None = None,
    fail_on: FailOnWord | None = None,
    cached: bool = False,
    registry: RegistryLike | None = None,
    engine: Engine | None = None,
    progress: Progress | bool = True,
) -> list[Report]: ...
def check(
    targets: TargetsLike,
    *,
    only: Words = (),
    skip: Words = (),
    raw: str | os.PathLike[str] | None = None,
    source: str | None = None,
    options: Mapping[str, Any] | None = None,
    schema: str | os.PathLike[str] | None = None,
    against: str | os.PathLike[str] | Resolved | None = None,
    same_as: str | Resolved | None = None,
    expect: Mapping[str, int] | None = None,
    fail_on: FailOnWord | None = None,
    cached: bool = False,
    registry: RegistryLike | None = None,
    engine: Engine | None = None,
    progress: Progress | bool = True,
) -> Report | list[Report]:
    """Check builds, releases or any TFRecord files.

    Args:
        targets: a reference (``mnist``, ``mnist@1.0.0``), a build, a release, or a path, URL, glob
            or folder of TFRecord files; or a list of these.
        only: run only these validators; none for all.
        skip: skip these validators.
        raw: folder of the raw data, or its URL, to judge inflation.
        source: with `raw`: find the items of this source that no record holds, and the records
            that hold no item.
        options: options of the source.
        schema: check against this schema.
        against: compare distributions with this version or these files (drift).
        same_as: expect the records of this version, in any order and any shards, or this content
            digest.
        expect: expect this number of records in each of these splits.
        fail_on: ``error``, ``warning`` or ``never``; None for what the gate says.
        cached: skip shards whose size, mtime and inode have not changed since an earlier `cached`
            check.
        registry: an open registry or a path in one; None for that of the current folder.
        engine: where to scan; None for this process.
        progress: a bar in a notebook or a terminal; False for none, or an object to update.

    Returns:
        The report of a single target. Of a list, a list of reports: one for each reference and for
        each folder that holds a build, in their order; then one for each build that some of the
        files belong to, and one for all other files. In a list, a target that is not here or whose
        manifest or schema is broken has a report that says so.

    Raises:
        UsageError: a target does not exist, or a single one names shards of several builds; an
            unknown validator, a schema that does not parse, a version in `against` or `same_as`
            that does not exist. All targets are found before the first is read.
        NotHereError: the only target is not on this machine.

    Example:
        >>> tr.check("registry/data/mnist").status
        'pass'
        >>> reports = tr.check(["mnist", "mnist@1.0.0"], registry=reg)
        >>> [(report.target, report.status) for report in reports]
        [('mnist', 'pass'), ('mnist@1.0.0', 'pass')]
    """
    from tfrecreg.core.check import run
    from tfrecreg.core.values.errors import UsageError

    chosen = check_options(
        only=only,
        skip=skip,
        raw=raw,
        source=source,
        options=options,
        schema=schema,
        against=against,
        same_as=same_as,
        expect=expect,
        fail_on=fail_on,
        cached=cached,
    )
    if isinstance(targets, str | os.PathLike | Resolved):
        return run.check_one(
            targets, registry=registry, options=chosen, engine=engine, progress=shown(progress)
        )
    several = list(targets)
    if not several:
        raise UsageError(
            "there is no target to check", hint="`tfrecreg.open().check()` checks every dataset"
        )
    return run.check(
        several, registry=registry, options=chosen, engine=engine, progress=shown(progress)
    )


def report(
    targets: TargetsLike,
    output: str | os.PathLike[str] | None = None,
    *,
    against: str | Resolved | None = None,
    statistics: bool = False,
    budget: int | str = "8MB",
    schema: str | os.PathLike[str] | None = None,
    registry: RegistryLike | None = None,
    engine: Engine | None = None,
    progress: Progress | bool = True,
) -> PageResult:
    """Check targets, and make a page that shows the verdict, the findings and the data.

    The page is one HTML file without any request to a network. Making it reads the records once,
    as a check does.

    Args:
        targets: as for :func:`tfrecreg.check`. The page shows all of them.
        output: write the page to this file; None to write none.
        against: also show the changes since this version.
        statistics: also show statistics; with `against` drift, and if TFDV is installed, its
            anomalies.
        budget: size of the page, in bytes or as ``"8MB"``. Images and records that do not fit are
            left out, and the page says how many.
        schema: check against this schema.
        registry: an open registry or a path in one; None for that of the current folder.
        engine: where to scan; None for this process.
        progress: a bar in a notebook or a terminal; False for none, or an object to update.

    Raises:
        UsageError: as :func:`tfrecreg.check`; or `budget` is too small, or `output` cannot be
            written.

    Example:
        >>> page = tr.report("mnist@1.0.0", "mnist.html", registry=reg)
        >>> [report.status for report in page.reports]
        ['pass']
    """
    from tfrecreg.builtin.pages.make import report
    from tfrecreg.core.check.options import CheckOptions
    from tfrecreg.core.values.errors import UsageError
    from tfrecreg.core.values.text import safe
    from tfrecreg.core.values.typed_values import parse_size

    try:
        size = parse_size(budget)
    except ValueError as error:
        raise UsageError(
            f"`budget`: {error}, found `{safe(str(budget))}`", hint='as in `budget="20MB"`'
        ) from None
    return report(
        targets,
        output,
        registry=registry,
        options=CheckOptions(schema=path_or_none(schema)),
        against=name_or_none(against),
        statistics=statistics,
        budget=size,
        engine=engine,
        progress=shown(progress),
    )
