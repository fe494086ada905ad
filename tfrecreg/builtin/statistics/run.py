"""The operation: the statistics of what the user names."""

from __future__ import annotations

from collections.abc import Sequence

from tfrecreg.builtin.statistics.make import Stats, stats_of
from tfrecreg.core.registry.registry import RegistryLike
from tfrecreg.core.registry.shardset.find import TargetLike
from tfrecreg.core.registry.shardset.target import find_target
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.workers.interface import Engine


def stats(
    argument: TargetLike,
    *,
    registry: RegistryLike | None = None,
    split: str | None = None,
    features: Sequence[str] = (),
    schema: str | None = None,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> Stats:
    """The statistics of a build, a release or files; cached in a registry."""
    target = find_target(argument, registry=registry, schema=schema)
    for note in target.notes if target.kind == "files" else ():
        progress.note(note)
    return stats_of(
        target,
        split=split,
        features=features,
        engine=engine,
        progress=progress,
    )
