"""The operation: the statistics of what the user names."""

from __future__ import annotations

from collections.abc import Sequence

from tfrecreg.engines.interface import Engine
from tfrecreg.progress import SILENT, Progress
from tfrecreg.registry.registry import RegistryLike
from tfrecreg.shardset.find import TargetLike
from tfrecreg.shardset.target import find_target
from tfrecreg.statistics.make import Stats, stats_of


def stats(
    argument: TargetLike,
    *,
    registry: RegistryLike | None = None,
    split: str | None = None,
    features: Sequence[str] = (),
    where: str | None = None,
    schema: str | None = None,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> Stats:
    """The statistics of a build, a release or files; cached in a registry.

    Args:
        argument: a reference, a build or a release; or a path, folder or glob of files.
        registry: an open registry or a path in one; None for that of the current folder.
        split: show only this split.
        features: show only features that match these names or globs.
        where: a condition in SQL: of only the records for which it holds.
        schema: use this schema instead of the target's own.
        engine: where to read; None for this process.
        progress: updated during the work.

    Raises:
        UsageError: there is no such target, split or feature, a schema does not parse, or `where`
            is not a condition.
        RefusedError: a feature has values of two types, or `where` meets damaged records.
        MissingExtraError: `where` without DuckDB.
        FailureError: a shard cannot be read.
    """
    target = find_target(argument, registry=registry, schema=schema)
    for note in target.notes if target.kind == "files" else ():
        progress.note(note)
    return stats_of(
        target,
        split=split,
        features=features,
        where=where,
        engine=engine,
        progress=progress,
    )
