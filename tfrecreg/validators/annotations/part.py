"""What a shard hands back, and then a split."""

from __future__ import annotations

from dataclasses import dataclass, field

from tfrecreg.scan.tally import Tally
from tfrecreg.validators.annotations.classes import ClassCounts, Names

__all__ = ["AnnotationsPart"]


@dataclass(slots=True)
class AnnotationsPart:
    """What was found in one shard, and then in all shards of a split."""

    tally: Tally = field(default_factory=Tally)
    records: int = 0
    """Records that have a label or objects."""
    objects: int = 0
    classes: dict[str, ClassCounts] = field(default_factory=dict)
    """By feature of class numbers."""
    names: dict[str, Names] = field(default_factory=dict)
    """By feature of class numbers, where there is no label map."""

    def merge(self, other: AnnotationsPart) -> None:
        """Take in the next shard."""
        self.tally.merge(other.tally)
        self.records += other.records
        self.objects += other.objects
        for feature, counts in other.classes.items():
            self.classes.setdefault(feature, ClassCounts()).merge(counts)
        for feature, names in other.names.items():
            self.names.setdefault(feature, Names()).merge(names)
