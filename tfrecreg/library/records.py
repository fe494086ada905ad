"""Functions that read records of targets: heads, digests, differences, statistics, exports."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, overload

from tfrecreg.core.registry.lookup import Resolved
from tfrecreg.library.display import Head, shown
from tfrecreg.library.targets import path_or_none, tuple_of

if TYPE_CHECKING:
    from tfrecreg.builtin.export.run import ExportResult
    from tfrecreg.builtin.look.digest import ContentDigests
    from tfrecreg.builtin.releases.diff.result import DiffResult
    from tfrecreg.builtin.salvage.model import SalvageResult
    from tfrecreg.builtin.statistics.make import Stats
    from tfrecreg.core.registry.registry import RegistryLike
    from tfrecreg.core.registry.shardset.find import Built, TargetLike, TargetsLike
    from tfrecreg.core.values.progress import Progress
    from tfrecreg.core.workers.interface import Engine
    from tfrecreg.library.targets import Words


def diff(
    before: TargetLike | Built,
    after: TargetLike | Built,
    *,
    registry: RegistryLike | None = None,
    engine: Engine | None = None,
    progress: Progress | bool = True,
) -> DiffResult:
    """Compare two builds or releases, example by example.

    Examples are matched through the indexes, which are small and stay on this machine. Features
    that differ are read from the records of changed examples, where the bytes of both sides are on
    this machine.

    Args:
        before: a reference, a build or a release, or the path or URL of a folder with one.
        after: the second side.
        registry: an open registry or a path in one; None for that of the current folder.
        engine: where to read records; None for this process.
        progress: a bar in a notebook or a terminal; False for none, or an object to update.

    Raises:
        UsageError: there is no such build or release.
        ManifestError: a manifest, a schema or an index is not the one that was released.
        FailureError: a worker died.

    Example:
        >>> difference = tr.diff("mnist@1.0.0", "mnist", registry=reg)
        >>> difference.same
        True
    """
    from tfrecreg.builtin.releases.diff.run import diff

    return diff(before, after, registry=registry, engine=engine, progress=shown(progress))


@overload
def digest(  # type: ignore[overload-overlap]  # a str is an iterable of str
    targets: TargetLike,
    *,
    split: str | None = None,
    registry: RegistryLike | None = None,
    engine: Engine | None = None,
    progress: Progress | bool = True,
) -> ContentDigests: ...
@overload
def digest(
    targets: Iterable[TargetLike],
    *,
    split: str | None = None,
    registry: RegistryLike | None = None,
    engine: Engine | None = None,
    progress: Progress | bool = True,
) -> list[ContentDigests]: ...
def digest(
    targets: TargetsLike,
    *,
    split: str | None = None,
    registry: RegistryLike | None = None,
    engine: Engine | None = None,
    progress: Progress | bool = True,
) -> ContentDigests | list[ContentDigests]:
    """Compute the content digest of each split from the records.

    Equal for the same records in splits of the same names, whatever shards, order and compression.

    Args:
        targets: a reference (``mnist``, ``mnist@1.0.0``), a build, a release, or a path, URL, glob
            or folder of TFRecord files; or a list of these.
        split: split of files whose names contain none, such as train.
        registry: an open registry or a path in one; None for that of the current folder.
        engine: where to read; None for this process.
        progress: a bar in a notebook or a terminal; False for none, or an object to update.

    Returns:
        The digests of a single target. Of a list, a list: one for each reference, in their order,
        and one for all files together.

    Raises:
        UsageError: a target does not exist, or `split` is given and no file needs it.
        NotHereError: the bytes of a target are not on this machine.
        RefusedError: a shard is missing or damaged.
        ManifestError: a manifest is damaged.
        FailureError: a shard cannot be read.

    Example:
        >>> build, release = tr.digest(["mnist", "mnist@1.0.0"], registry=reg)
        >>> build.content == release.content
        True
    """
    from tfrecreg.builtin.look.digest import digest

    found = digest(
        targets,
        split=split,
        registry=registry,
        engine=engine,
        progress=shown(progress),
    )
    return found[0] if isinstance(targets, str | os.PathLike | Resolved) else found


def export(
    target: str | Resolved,
    folder: str | os.PathLike[str],
    *,
    to: str,
    options: Mapping[str, Any] | None = None,
    where: str | None = None,
    registry: RegistryLike | None = None,
    engine: Engine | None = None,
    progress: Progress | bool = True,
) -> ExportResult:
    """Write a build or a release in the format of another tool.

    Args:
        target: a reference (``mnist``, ``mnist@1.0.0``), a build or a release.
        folder: a new or empty folder. It appears when everything is in it. With ``to="files"``
            also a URL.
        to: name of an exporter; ``tfrecreg plugins list`` shows them.
        options: options of the exporter, such as ``{"suffix": ".index"}``.
        where: only records for which this condition holds: ``label = 'cat' AND width >= 224``.
        registry: an open registry or a path in one; None for that of the current folder.
        engine: where to work; None for this process.
        progress: a bar in a notebook or a terminal; False for none, or an object to update.

    Raises:
        UsageError: there is no such target, format or option, the format cannot hold the data or
            chosen records, or `where` is not a condition.
        RefusedError: a shard is damaged.
        MissingExtraError: the format or `where` needs a library that is not installed.
        FailureError: the exporter of a plugin or the disk failed.

    Example:
        >>> tr.export("mnist@1.0.0", "lines", to="jsonl", registry=reg).files[:2]
        ('mnist-test-00000-of-00002.jsonl', 'mnist-test-00001-of-00002.jsonl')
    """
    from tfrecreg.builtin.export.run import export
    from tfrecreg.core.registry.shardset.find import resolve_in

    found = resolve_in(registry, target)
    return export(
        found.registry,
        found.name,
        folder,
        to=to,
        options=options or {},
        where=where,
        engine=engine,
        progress=shown(progress),
    )


def head(
    target: TargetLike,
    records: int | None = None,
    *,
    at: int | None = None,
    shard: str | None = None,
    split: str | None = None,
    where: str | None = None,
    registry: RegistryLike | None = None,
    progress: Progress | bool = True,
) -> Head:
    """The first records, or records from a given number on. Damaged records are skipped.

    Args:
        target: a reference (``mnist``, ``mnist@1.0.0``), a build, a release, or a path, URL, glob
            or folder of TFRecord files.
        records: number of records; None for 5, with `at` for 1.
        at: start at record N of the shard, numbered from 0 as in findings; -1 is the last.
        shard: show only this shard.
        split: show only this split, or a part: ``train``, ``train[-5:]``, ``train[1000:]``,
            ``train+test``.
        where: only records for which this condition holds: ``label = 'cat' AND width >= 224``.
        registry: an open registry or a path in one; None for that of the current folder.
        progress: a bar in a notebook or a terminal; False for none, or an object to update.

    Returns:
        A list that shows itself, in a notebook with the images.

    Raises:
        UsageError: `records` is negative, `where` is not a condition, or there is no such target,
            split, shard or record.
        RefusedError: `where` would be evaluated on damaged records.
        MissingExtraError: `where` without DuckDB.
        DamagedRecordError: the record `at` is damaged.
        FailureError: a shard cannot be read.

    Example:
        >>> for record in tr.head("mnist@1.0.0", 2, registry=reg):
        ...     print(record.shard, record.record, record.key)
        mnist-test.tfrecord-00000-of-00002 0 00016
        mnist-test.tfrecord-00000-of-00002 1 00048
    """
    from tfrecreg.builtin.look.head import head

    count = records if records is not None else 5 if at is None else 1
    return Head(
        head(
            target,
            count,
            at=at,
            shard=shard,
            split=split,
            where=where,
            registry=registry,
            progress=shown(progress),
        )
    )


def salvage(
    targets: TargetsLike,
    output: str | os.PathLike[str],
    *,
    registry: RegistryLike | None = None,
    engine: Engine | None = None,
    progress: Progress | bool = True,
) -> SalvageResult:
    """Write the undamaged records of damaged shards into a new folder. The originals are only read.

    For each shard the folder gets a clean one of the same name, the bytes that were cut out of it
    (``NAME.quarantine``), and for all of them ``salvage.json``, which marks the folder: `check`
    finds SHD009 for each changed shard in it.

    Args:
        targets: references, builds or releases, whose damaged shards are salvaged; or paths, globs
            or folders, every shard of which is. One of these, or a list.
        output: new folder for the salvaged shards. It appears when everything is in it.
        registry: an open registry or a path in one; None for that of the current folder.
        engine: where to read and write shards; None for this process.
        progress: a bar in a notebook or a terminal; False for none, or an object to update.

    Returns:
        The result for each shard. There is no folder if all shards of references are sound.

    Raises:
        UsageError: a target does not exist, two shards have one name, or the folder is not free or
            is where the originals are.
        RefusedError: not one of the shards is a TFRecord.
        FailureError: nothing could be read, the folder cannot be written, or a worker died.

    Example:
        >>> result = tr.salvage("registry/data/mnist", "clean")
        >>> [(shard.status, shard.kept) for shard in result.shards]
        [('sound', 30), ('sound', 30), ('sound', 100), ('sound', 100)]
    """
    from tfrecreg.builtin.salvage.run import salvage

    return salvage(targets, output, registry=registry, engine=engine, progress=shown(progress))


def stats(
    target: TargetLike,
    split: str | None = None,
    *,
    features: Words = (),
    schema: str | os.PathLike[str] | None = None,
    registry: RegistryLike | None = None,
    engine: Engine | None = None,
    progress: Progress | bool = True,
) -> Stats:
    """The statistics of the features. A registry keeps them for the next call.

    Args:
        target: a reference (``mnist``, ``mnist@1.0.0``), a build, a release, or a path, URL, glob
            or folder of TFRecord files.
        split: show only this split.
        features: show only features that match these names or globs.
        schema: use this schema instead of the target's own.
        registry: an open registry or a path in one; None for that of the current folder.
        engine: where to read; None for this process.
        progress: a bar in a notebook or a terminal; False for none, or an object to update.

    Raises:
        UsageError: there is no such target, split or feature, or a schema does not parse.
        RefusedError: a feature has values of two types.
        FailureError: a shard cannot be read.

    Example:
        >>> statistics = tr.stats("mnist@1.0.0", "train", registry=reg)
        >>> statistics.target
        'mnist@1.0.0'
    """
    from tfrecreg.builtin.statistics.make import stats

    return stats(
        target,
        split=split,
        features=tuple_of(features),
        schema=path_or_none(schema),
        registry=registry,
        engine=engine,
        progress=shown(progress),
    )
