"""The operation `diff`: the differences between two references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing

from tfrecreg.builtin.releases.diff.compare import LabelMaps, Reading
from tfrecreg.builtin.releases.diff.images import follow_images
from tfrecreg.builtin.releases.diff.match import Matched, Places, match
from tfrecreg.builtin.releases.diff.result import (
    CHANGE_KINDS,
    ChangeKind,
    DiffResult,
    LabelChange,
    ListedExamples,
    SideSummary,
    SplitDiff,
)
from tfrecreg.builtin.releases.diff.verdict import (
    count_pairs,
    judge_change,
    missing_hint,
    order_of,
    per_split,
    shard_counts,
)
from tfrecreg.core.registry.manifest import Change
from tfrecreg.core.registry.registry import RegistryLike
from tfrecreg.core.registry.shardset.find import Built, TargetLike
from tfrecreg.core.registry.shardset.side import Side, find_side, side_of
from tfrecreg.core.schema.compat import SchemaChange, compare_schemas
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.reference import parse_version
from tfrecreg.core.workers.interface import Engine

_SHOWN = 20
"""Maximum number of examples of each kind in the result."""


def diff(
    before: TargetLike | Built,
    after: TargetLike | Built,
    *,
    registry: RegistryLike | None = None,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> DiffResult:
    """Compare two builds or releases, example by example.

    Examples are matched through the indexes, which are small and stay on this machine.
    Differing features are read from the records of changed examples, and only
    where the bytes of both sides are on this machine.
    """
    found = [find_side(each, registry) for each in (before, after)]
    first, second = map(side_of, found)
    return diff_sides(first, second, progress, engine=engine)


def diff_sides(
    before: Side,
    after: Side,
    progress: Progress = SILENT,
    *,
    engine: Engine | None = None,
) -> DiffResult:
    """As :func:`diff`, of two sides that were found."""
    labels = LabelMaps.of(before, after)
    with closing(Reading(before, after, engine)) as reading:
        matched = follow_images(before, after, match(before, after, progress), reading, progress)
        groups = matched.changed, matched.renamed_changed, matched.moved_changed
        of_changed, tallied = count_pairs(reading, labels, progress, *groups)
    same = before.manifest.content == after.manifest.content
    order = order_of(before, after) if same else None
    change = judge_change(
        before, after, order, None if same else matched, of_changed, tallied.relabelled
    )
    listing = ListedExamples(before, after, matched, labels)
    totals = _totals(matched)
    return DiffResult(
        before=_summary(before),
        after=_summary(after),
        order=order,
        change=change,
        version=_next_number(before, after, change),
        splits=tuple(_splits(before, after, matched)),
        totals=totals,
        examples={kind: tuple(listing(kind, _SHOWN)) for kind in CHANGE_KINDS if totals[kind]},
        compared=tallied.compared,
        unread=tallied.unread,
        unread_reason=tallied.reason,
        hint=missing_hint(before, after, order, matched, tallied),
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


def _splits(before: Side, after: Side, matched: Matched) -> Iterator[SplitDiff]:
    old, new = _sizes(before), _sizes(after)

    def counts(side: Side, *places: Places) -> Counter[str]:
        found: Counter[str] = Counter()
        for each in places:
            found.update(per_split(each, side.manifest))
        return found

    added = counts(after, matched.added)
    removed = counts(before, matched.removed)
    changed = counts(after, matched.changed.after)
    moved_in = counts(after, matched.moved.after, matched.moved_changed.after)
    moved_out = counts(before, matched.moved.before, matched.moved_changed.before)
    renamed = counts(after, matched.renamed.after, matched.renamed_changed.after)
    for name in sorted({*old, *new}):
        first, second = old.get(name), new.get(name)
        yield SplitDiff(
            name=name,
            records_before=first[0] if first is not None else None,
            records_after=second[0] if second is not None else None,
            payload_before=first[1] if first is not None else None,
            payload_after=second[1] if second is not None else None,
            added=added[name],
            removed=removed[name],
            changed=changed[name],
            moved_in=moved_in[name],
            moved_out=moved_out[name],
            renamed=renamed[name],
            known=name not in matched.unknown,
        )


def _sizes(side: Side) -> dict[str, tuple[int, int]]:
    """Of each split, the number of records and their bytes."""
    return {each.name: (each.records, each.payload_bytes) for each in side.manifest.splits}


def _schema_changes(before: Side, after: Side) -> tuple[SchemaChange, ...] | None:
    if before.schema is None or after.schema is None:
        # A build behind a URL may come without its schema, but not without its digest.
        is_remote = before.remote is not None or after.remote is not None
        is_same = before.manifest.schema.blake3 == after.manifest.schema.blake3
        return () if is_remote and is_same else None
    return compare_schemas(before.schema, after.schema)


def _next_number(before: Side, after: Side, change: Change) -> str | None:
    release = before.manifest.release
    if release is None or before.manifest.dataset != after.manifest.dataset:
        return None
    if change.level == "initial":
        return None
    return str(parse_version(release.version).bump(change.level))
