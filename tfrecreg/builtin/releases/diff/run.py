"""The operation `diff`: the differences between two references."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrecreg.builtin.releases.diff.compare import LabelMaps
from tfrecreg.builtin.releases.diff.match import Matched
from tfrecreg.builtin.releases.diff.result import (
    CHANGE_KINDS,
    ChangeKind,
    DiffResult,
    LabelChange,
    ListedExamples,
    SideSummary,
    compare_splits,
)
from tfrecreg.builtin.releases.diff.verdict import compare_sides, shard_counts
from tfrecreg.core.registry.data import Built, TargetLike
from tfrecreg.core.registry.find import expect_built
from tfrecreg.core.registry.side import Side, side_of
from tfrecreg.core.schema.compat import SchemaChange, compare_schemas
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.reference import parse_version
from tfrecreg.core.workers.context import Context, Travelling
from tfrecreg.core.workers.interface import Engine

if TYPE_CHECKING:
    from typing_extensions import Unpack

_SHOWN = 20
"""Maximum number of examples of each kind in the result."""


def diff(
    before: TargetLike | Built, after: TargetLike | Built, **context: Unpack[Context]
) -> DiffResult:
    """Compare two builds or releases, example by example.

    Examples are matched through the indexes, which are small and stay on this machine.
    The records of changed examples are read to find the features that differ, but only if the bytes
    of both sides are on this machine.
    """
    registry, engine, progress = Travelling(**context)
    found = [expect_built(each, registry) for each in (before, after)]
    first, second = map(side_of, found)
    return diff_sides(first, second, progress, engine=engine)


def diff_sides(
    before: Side, after: Side, progress: Progress = SILENT, *, engine: Engine | None = None
) -> DiffResult:
    """Compare two sides: see :func:`diff`."""
    labels = LabelMaps.of(before, after)
    found = compare_sides(before, after, labels, progress, engine)
    matched, tallied, change = found.matched, found.tallied, found.change
    release, version = before.manifest.release, None
    same_dataset = before.manifest.dataset == after.manifest.dataset
    if release is not None and same_dataset and change.level != "initial":
        version = str(parse_version(release.version).bump(change.level))
    listing = ListedExamples(before, after, matched, labels)
    totals = _totals(matched)
    return DiffResult(
        before=_summary(before),
        after=_summary(after),
        order=found.order,
        change=change,
        version=version,
        splits=tuple(compare_splits(before, after, matched)),
        totals=totals,
        examples={kind: tuple(listing(kind, _SHOWN)) for kind in CHANGE_KINDS if totals[kind]},
        compared=tallied.compared,
        unread=tallied.unread,
        unread_reason=tallied.reason,
        hint=found.hint,
        features=tallied.features,
        labels=tuple(
            LabelChange(feature=feature, before=old, after=new, count=count)
            for (feature, old, new), count in sorted(
                tallied.labels.items(), key=lambda item: (-item[1], item[0])
            )
        ),
        more_labels=tallied.more_labels,
        relabelled=tallied.relabelled,
        schema=_schema_changes(before, after),
        shards=shard_counts(before.manifest, after.manifest),
        listing=listing,
    )


def _totals(matched: Matched) -> dict[ChangeKind, int]:
    return {
        "removed": len(matched.removed),
        "added": len(matched.added),
        "changed": len(matched.changed),
        "moved": len(matched.moved) + len(matched.moved_changed),
        "renamed": len(matched.renamed) + len(matched.renamed_changed),
    }


def _summary(side: Side) -> SideSummary:
    manifest = side.manifest
    return SideSummary(
        name=side.name,
        content=manifest.content,
        records=sum(split.records for split in manifest.splits),
        bytes=sum(shard.bytes for shard in manifest.shards),
        shards=len(manifest.shards),
        features=manifest.features,
    )


def _schema_changes(before: Side, after: Side) -> tuple[SchemaChange, ...] | None:
    if before.schema is None or after.schema is None:
        # A build behind a URL may lack its schema, but has its digest.
        is_remote = before.home is None or after.home is None
        is_same = before.manifest.schema.blake3 == after.manifest.schema.blake3
        return () if is_remote and is_same else None
    return compare_schemas(before.schema, after.schema)
