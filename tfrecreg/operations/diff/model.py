"""What a diff says, as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

from tfrecreg.manifest import Change
from tfrecreg.operations.diff.order import Order
from tfrecreg.operations.diff.shards import ShardCounts
from tfrecreg.operations.diff.tally import FeatureCounts
from tfrecreg.schema.differ import Change as SchemaChange

__all__ = [
    "KINDS",
    "DiffResult",
    "Kind",
    "LabelChange",
    "Listing",
    "RecordDiff",
    "SideSummary",
    "SplitDiff",
]

Kind = Literal["removed", "added", "changed", "moved", "renamed"]

KINDS: tuple[Kind, ...] = ("removed", "added", "changed", "moved", "renamed")
"""What can become of an example; ``renamed`` is the same picture or record under another key."""


_COUNTS = ("added", "removed", "changed", "moved_in", "moved_out", "renamed")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDiff:
    """One example that is not the same on both sides."""

    kind: Kind
    split: str
    """Where it is now; of a removed one, where it was."""
    key: str
    shard: str
    """The file's name; `split`, `key`, `shard` and `record` are all of the same side."""
    record: int
    """Number in its shard, from 0."""
    from_split: str | None = None
    """Where it was, if that is another split."""
    from_key: str | None = None
    """What its key was, if that was another."""
    features_added: tuple[str, ...] = ()
    features_removed: tuple[str, ...] = ()
    features_changed: tuple[str, ...] = ()
    """Empty, too, where the record was not read. The empty name stands for a whole payload."""
    labels: tuple[tuple[str, str, str], ...] = ()
    """Feature, label before, label after."""

    def to_json(self) -> dict[str, Any]:
        """The example for a JSON document; what does not apply is left out."""
        plain = asdict(self)
        plain["labels"] = [
            {"feature": feature, "before": before, "after": after}
            for feature, before, after in self.labels
        ]
        return {name: value for name, value in plain.items() if value not in (None, (), [])}


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitDiff:
    """One split in numbers. None where the split is on the other side only."""

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
    """False where an index is not on this machine: then the counts say nothing."""

    def to_json(self) -> dict[str, Any]:
        """The split for a JSON document; what is not known is null."""
        plain = asdict(self)
        if not self.known:
            plain.update(dict.fromkeys(_COUNTS))
        return plain


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelChange:
    """How often a label became another one."""

    feature: str
    before: str
    """The value, with the name of its class where it has one: ``3 (cat)``."""
    after: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SideSummary:
    """One side in a few numbers."""

    name: str
    content: str
    """The content digest."""
    records: int
    bytes: int
    """Of the shards."""
    shards: int
    features: Mapping[str, int]
    """Feature to bytes of its values."""

    def to_json(self) -> dict[str, Any]:
        """The side for a JSON document."""
        return {**asdict(self), "features": dict(self.features)}


class Listing(Protocol):
    """Makes the examples of a diff one by one."""

    def __call__(self, kind: Kind, most: int | None = None) -> Iterator[RecordDiff]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffResult:
    """What differs between two sides."""

    before: SideSummary
    after: SideSummary
    order: Order | None
    """Of the examples, where they are the same on both sides; else None."""
    change: Change
    """The smallest legal step from the first side to the second, and why."""
    version: str | None
    """The number that goes with it; None where the first side is no release of that dataset."""
    splits: tuple[SplitDiff, ...]
    totals: Mapping[Kind, int]
    """In the splits that are known."""
    examples: Mapping[Kind, tuple[RecordDiff, ...]]
    """The first of each kind, in order of split, shard and record."""
    compared: int
    """Examples of which both records were read, to tell the features that differ."""
    unread: int
    """Those of which a record could not be read."""
    unread_reason: str
    hint: str
    """What to do where bytes or indexes are missing; empty where none are."""
    features: Mapping[str, FeatureCounts]
    """Of the examples that were compared."""
    labels: tuple[LabelChange, ...]
    """The most frequent ones first."""
    more_labels: int
    """Changes of labels beyond those."""
    schema: tuple[SchemaChange, ...] | None
    """None where one of the schemas is missing or does not parse."""
    shards: ShardCounts
    listing: Listing = field(repr=False, compare=False)

    @property
    def same(self) -> bool:
        """Whether nothing differs in the examples, their order and meaning, the shards or the
        schema.
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
        """Whether the indexes of all splits are here; if not, the totals are those of a part."""
        return all(split.known for split in self.splits)

    def records(self) -> Iterator[RecordDiff]:
        """Every example that is not the same, kind by kind; made while they are taken."""
        for kind in KINDS:
            yield from self.listing(kind)

    def to_json(self) -> dict[str, Any]:
        """The document of ``diff --json``."""
        counts = self.change.counts
        return {
            "before": self.before.to_json(),
            "after": self.after.to_json(),
            "same": self.same,
            "order": self.order,
            "change": {
                "level": self.change.level,
                "version": self.version,
                "reasons": list(self.change.reasons),
                "hint": self.hint,
                "counts": asdict(counts) if counts is not None else None,
            },
            "splits": [split.to_json() for split in self.splits],
            "totals": {kind: total if self.known else None for kind, total in self.totals.items()},
            "examples": {
                kind: [each.to_json() for each in found] for kind, found in self.examples.items()
            },
            "features": {
                "compared": self.compared,
                "unread": self.unread,
                "unread_reason": self.unread_reason,
                "counts": {name: asdict(each) for name, each in sorted(self.features.items())},
            },
            "labels": [asdict(each) for each in self.labels],
            "more_labels": self.more_labels,
            "schema": None if self.schema is None else [each.to_json() for each in self.schema],
            "shards": asdict(self.shards),
        }
