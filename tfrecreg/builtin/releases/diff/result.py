"""The operation `diff`: the differences between two references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import partial
from html import escape
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tfrecreg.builtin.releases.diff.compare import (
    FeatureCounts,
    LabelMaps,
    Reading,
    RecordChange,
    read_changes,
)
from tfrecreg.builtin.releases.diff.match import Matched, Pairs, Places, record_of, shard_of
from tfrecreg.builtin.releases.diff.verdict import (
    ShardCounts,
    ShardOrder,
    compare_sides,
    per_split,
    shard_counts,
)
from tfrecreg.core.registry.data import Built, TargetLike
from tfrecreg.core.registry.find import expect_built
from tfrecreg.core.registry.manifest import Change
from tfrecreg.core.registry.side import Side, side_of
from tfrecreg.core.schema.compat import SchemaChange, compare_schemas
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.reference import parse_version
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.context import Context, Travelling
from tfrecreg.core.workers.interface import Engine

if TYPE_CHECKING:
    from typing_extensions import Unpack

ChangeKind = Literal["removed", "added", "changed", "moved", "renamed"]

CHANGE_KINDS: tuple[ChangeKind, ...] = ("removed", "added", "changed", "moved", "renamed")
"""Kinds of differences. ``renamed`` means the same image or record under another key."""


SPLIT_COUNTS: Mapping[str, tuple[Literal["before", "after"], tuple[str, ...]]] = {
    "removed": ("before", ("removed",)),
    "added": ("after", ("added",)),
    "changed": ("after", ("changed",)),
    "moved_in": ("after", ("moved", "moved_changed")),
    "moved_out": ("before", ("moved", "moved_changed")),
    "renamed": ("after", ("renamed", "renamed_changed")),
}
"""The counts of a :class:`SplitDiff`, in the order of the columns in every table. Each entry names
one side, and the fields of :class:`Matched` that are counted in this side's splits. A new column
needs a field in :class:`SplitDiff` and a line here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDiff:
    """One example that differs between the sides."""

    kind: ChangeKind
    split: str
    """Current split; for a removed example, its former split."""
    key: str
    shard: str
    """The file's name. `split`, `key`, `shard` and `record` describe the same side."""
    record: int
    """Number in its shard, from 0."""
    from_split: str | None = None
    """Former split, if it differs."""
    from_key: str | None = None
    """Former key, if it differs."""
    features_added: tuple[str, ...] = ()
    features_removed: tuple[str, ...] = ()
    features_changed: tuple[str, ...] = ()
    """The features that differ. It is also empty if the record was not read. The empty name stands
    for the whole payload."""
    labels: tuple[tuple[str, str, str], ...] = ()
    """Each tuple contains a feature, the old label and the new label."""
    from_place: tuple[str, int] | None = field(default=None, repr=False, compare=False)
    """Former shard and record; None for an added example. It is not in JSON documents."""

    @property
    def place(self) -> tuple[str, int] | None:
        """Current shard and record; None for a removed example."""
        return (self.shard, self.record) if self.kind != "removed" else None

    def to_json(self) -> dict[str, Any]:
        """The example for a JSON document, without fields that do not apply."""
        plain = asdict(self)
        del plain["from_place"]
        names = ("feature", "before", "after")
        plain["labels"] = [dict(zip(names, each, strict=True)) for each in self.labels]
        return {name: value for name, value in plain.items() if value not in (None, (), [])}


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitDiff:
    """One split in numbers. A number is None if its side does not have the split."""

    name: str
    records_before: int | None
    records_after: int | None
    payload_before: int | None
    """Bytes of all payloads."""
    payload_after: int | None
    added: int = 0
    removed: int = 0
    changed: int = 0
    moved_in: int = 0
    moved_out: int = 0
    renamed: int = 0
    known: bool = True
    """Whether all indexes are on this machine. If not, the counts mean nothing."""

    def to_json(self) -> dict[str, Any]:
        """Convert the split to a JSON object. Unknown values are null."""
        plain = asdict(self)
        if not self.known:
            plain.update(dict.fromkeys(SPLIT_COUNTS))
        return plain


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelChange:
    """The number of examples in which a label changed from one value to another."""

    feature: str
    before: str
    """The value, with the name of its class if it has one: ``3 (cat)``."""
    after: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SideSummary:
    """The content digest and the sizes of one side."""

    name: str
    content: str
    """The content digest."""
    records: int
    bytes: int
    """Size of the shards in bytes."""
    shards: int
    features: Mapping[str, int]
    """For each feature, the bytes of its values."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DiffResult:
    """Differences between two sides."""

    before: SideSummary
    after: SideSummary
    order: ShardOrder | None
    """Order of the examples, if both sides have the same examples; else None."""
    change: Change
    """The smallest legal step from the first side to the second, and why."""
    version: str | None
    """The smallest legal number; None if the first side is not a release of that dataset."""
    splits: tuple[SplitDiff, ...]
    totals: Mapping[ChangeKind, int]
    """Total of each kind in all splits that could be compared."""
    examples: Mapping[ChangeKind, tuple[RecordDiff, ...]]
    """Some examples of each kind. Added and removed examples are sorted by split and key, others by
    split, shard and record."""
    compared: int
    """Number of examples whose features were compared, because both records were read."""
    unread: int
    """Number of examples whose record could not be read."""
    unread_reason: str
    hint: str
    """What to do about missing bytes or indexes; empty if none are missing."""
    features: Mapping[str, FeatureCounts]
    """For each feature, in how many of the compared examples it differs."""
    labels: tuple[LabelChange, ...]
    """The label changes. The most frequent one comes first."""
    more_labels: int
    """Number of label changes that are not in `labels`."""
    relabelled: int
    """Number of examples with another label."""
    schema: tuple[SchemaChange, ...] | None
    """The changes of the schema; None if one of the schemas is missing or does not parse."""
    shards: ShardCounts
    listing: ListedExamples = field(repr=False, compare=False)

    def __repr__(self) -> str:
        return f"<DiffResult {self._verdict()}>"

    def __str__(self) -> str:
        """The verdict and its reasons."""
        return "\n    ".join((self._verdict(), *self.change.reasons))

    def _repr_html_(self) -> str:
        """HTML for a notebook: a table of the splits, and then the reasons of the verdict."""
        heads = ("records_before", "records_after", *SPLIT_COUNTS)
        rows = "".join(
            f"<tr><td>{escape(each.name)}"
            + "".join(
                f"<td>{number:,}" if number else "<td>"
                for number in (getattr(each, head) for head in heads)
            )
            for each in self.splits
        )
        head = "".join(f"<th>{head.removeprefix('records_').replace('_', ' ')}" for head in heads)
        reasons = "".join(f"<li>{escape(reason)}" for reason in self.change.reasons)
        verdict = escape(self._verdict())
        return f"<p><b>{verdict}</b></p><table><tr><th>split{head}{rows}</table><ul>{reasons}</ul>"

    def _verdict(self) -> str:
        """``mnist@1.0.0 → mnist@2.0.0: 1 changed, major``."""
        counts = [f"{total:,} {kind}" for kind, total in self.totals.items() if total]
        found = "same" if self.same else ", ".join([*counts, self.change.level])
        return f"{safe(self.before.name)} → {safe(self.after.name)}: {found}"

    @property
    def same(self) -> bool:
        """Whether the examples, their order and meaning, the shards and the schema are all the
        same.
        """
        return (
            self.order == "same"
            and self.change.level == "patch"
            and not self.schema
            and self.schema is not None
            and not (self.shards.new or self.shards.gone or self.shards.recoded)
            and not any(self.totals.values())
        )

    @property
    def known(self) -> bool:
        """Whether the indexes of all splits are here. If not, the totals leave out splits."""
        return all(split.known for split in self.splits)

    def records(self, engine: Engine | None = None) -> Iterator[RecordDiff]:
        """Yield every example that differs, kind by kind."""
        for kind in CHANGE_KINDS:
            yield from self.listing(kind, engine=engine)

    def to_json(self) -> dict[str, Any]:
        """The document of ``diff --json``."""
        return {
            "before": self.before,
            "after": self.after,
            "same": self.same,
            "order": self.order,
            "change": {
                "level": self.change.level,
                "version": self.version,
                "reasons": self.change.reasons,
                "hint": self.hint,
                "counts": self.change.counts,
            },
            "splits": self.splits,
            "totals": {kind: total if self.known else None for kind, total in self.totals.items()},
            "examples": self.examples,
            "features": {
                "compared": self.compared,
                "unread": self.unread,
                "unread_reason": self.unread_reason,
                "counts": dict(sorted(self.features.items())),
            },
            "labels": self.labels,
            "more_labels": self.more_labels,
            "schema": self.schema,
            "shards": self.shards,
        }


def compare_splits(before: Side, after: Side, matched: Matched) -> Iterator[SplitDiff]:
    """Yield the counts for each split that either side has."""
    sides = {"before": before, "after": after}
    sizes = {
        name: {each.name: (each.records, each.payload_bytes) for each in side.manifest.splits}
        for name, side in sides.items()
    }
    counts: dict[str, Counter[str]] = {column: Counter() for column in SPLIT_COUNTS}
    for column, (side, groups) in SPLIT_COUNTS.items():
        for group in groups:
            found = getattr(matched, group)
            places = getattr(found, side) if isinstance(found, Pairs) else found
            counts[column].update(per_split(places, sides[side].manifest))
    for name in sorted({*sizes["before"], *sizes["after"]}):
        (records_before, payload_before), (records_after, payload_after) = (
            sizes[side].get(name, (None, None)) for side in sides
        )
        yield SplitDiff(
            name=name,
            records_before=records_before,
            records_after=records_after,
            payload_before=payload_before,
            payload_after=payload_after,
            known=name not in matched.unknown,
            **{column: counts[column][name] for column in SPLIT_COUNTS},
        )


_CHUNK = 50_000
"""Maximum number of keys in memory. Every index is read once per chunk."""


@dataclass(frozen=True, slots=True)
class ListedExamples:
    """Lists the examples of each kind, sorted by their places. Added and removed examples are
    instead sorted by split and key, within each chunk.
    """

    before: Side
    after: Side
    matched: Matched
    labels: LabelMaps

    def __call__(
        self, kind: ChangeKind, most: int | None = None, *, engine: Engine | None = None
    ) -> Iterator[RecordDiff]:
        """Yield the examples of a kind. `most` limits their number. `engine` reads the records."""
        matched = self.matched
        if kind == "removed":
            return islice(self._alone(kind, self.before, matched.removed), most)
        if kind == "added":
            return islice(self._alone(kind, self.after, matched.added), most)
        same, read = {
            "changed": (Pairs.none(), matched.changed),
            "moved": (matched.moved, matched.moved_changed),
            "renamed": (matched.renamed, matched.renamed_changed),
        }[kind]
        alike = self._paired(kind, same[:most], repeat(RecordChange()))
        return islice(chain(alike, self._read(kind, read[:most], engine)), most)

    def _alone(self, kind: ChangeKind, side: Side, places: Places) -> Iterator[RecordDiff]:
        for at in range(0, len(places), _CHUNK):
            chunk = places[at : at + _CHUNK]
            shards = [side.manifest.shards[shard_of(place)] for place in chunk.tolist()]
            keyed = zip(shards, _keys(side, chunk), chunk.tolist(), strict=True)
            for shard, key, place in sorted(keyed, key=lambda each: (each[0].split, each[1])):
                yield RecordDiff(
                    kind=kind,
                    split=shard.split,
                    key=key,
                    shard=shard.path,
                    record=record_of(place),
                    from_place=(shard.path, record_of(place)) if kind == "removed" else None,
                )

    def _read(self, kind: ChangeKind, pairs: Pairs, engine: Engine | None) -> Iterator[RecordDiff]:
        """Read the records of pairs, and yield the pairs with their changes."""
        with closing(Reading(self.before, self.after, engine)) as reading:
            results = reading.run(partial(read_changes, labels=self.labels), pairs)
            with closing(results):
                changes = chain.from_iterable(found for _, _, found in results)
                yield from self._paired(kind, pairs, changes)

    def _paired(
        self, kind: ChangeKind, pairs: Pairs, changes: Iterator[RecordChange]
    ) -> Iterator[RecordDiff]:
        for at in range(0, len(pairs), _CHUNK):
            chunk = pairs[at : at + _CHUNK]
            keys = _keys(self.before, chunk.before), _keys(self.after, chunk.after)
            places = zip(chunk.before.tolist(), chunk.after.tolist(), strict=True)
            for (old, new), old_key, key in zip(places, *keys, strict=True):
                change = next(changes)
                before = self.before.manifest.shards[shard_of(old)]
                after = self.after.manifest.shards[shard_of(new)]
                yield RecordDiff(
                    kind=kind,
                    split=after.split,
                    key=key,
                    shard=after.path,
                    record=record_of(new),
                    from_split=before.split if before.split != after.split else None,
                    from_key=old_key if old_key != key else None,
                    features_added=change.added,
                    features_removed=change.removed,
                    features_changed=change.changed,
                    labels=change.labels,
                    from_place=(before.path, record_of(old)),
                )


def _keys(side: Side, places: Places) -> list[str]:
    """The keys of records; empty if the shard has no index. Each index is read once."""
    keys = [""] * len(places)
    shards = places >> np.uint64(32)
    for shard in np.unique(shards).tolist():
        index = side.index(shard)
        if index is not None:
            for position in np.flatnonzero(shards == np.uint64(shard)).tolist():
                keys[position] = index.key(record_of(int(places[position])))
    return keys


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
