"""What a target is compared with: the statistics of another, made or remembered."""

from __future__ import annotations

import os
from dataclasses import replace

from tfrecreg.engines import Engine
from tfrecreg.operations.check.find import find
from tfrecreg.operations.check.targets import files_target, reference_target
from tfrecreg.progress import Progress
from tfrecreg.registry import Resolved
from tfrecreg.scan import Baseline, Target

__all__ = ["with_baseline"]


def with_baseline(
    target: Target,
    against: str | None,
    registry: str | os.PathLike[str] | None,
    engine: Engine,
    progress: Progress,
    *,
    with_statistics: bool = True,
) -> Target:
    """The target, with what it is to be compared with.

    Args:
        target: what is checked. Its schema says which features are categories, on both sides.
        against: a reference or files; None leaves the target as it is.
        registry: the registry's folder; None to look for it.
        engine: where to scan.
        progress: told how far it is.
        with_statistics: whether anybody asks for its statistics.

    Raises:
        UsageError: `against` names nothing, or has no Examples.
        MissingExtraError: TFDV is not installed.
        FailureError: a shard could not be read.
    """
    if against is None:
        return target
    found = find(against, registry)
    if isinstance(found, Resolved):
        other = reference_target(found, schema=None, raw=None)
    else:
        other = files_target([found], schema=None, raw=None)
    if not with_statistics:
        return replace(target, baseline=Baseline(other.name, {}, other.shards))
    # Statistics are for whoever asks for them: a check without them imports none of it.
    from tfrecreg.operations.stats import stats
    from tfrecreg.statistics import StatisticsCache, StatisticsOptions

    cache = StatisticsCache(found.registry.storage) if isinstance(found, Resolved) else None
    options = StatisticsOptions(schema=target.schema, schema_path=target.schema_path or "schema")
    made = stats(other, options=options, cache=cache, engine=engine, progress=progress)
    protos = {
        each.statistics.split: each.statistics.proto.SerializeToString() for each in made.splits
    }
    return replace(target, baseline=Baseline(other.name, protos, other.shards))
