"""What differs in the examples that changed, counted: by feature, and by label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tfrecreg.operations.diff.compare import Labels, RecordChange, compare
from tfrecreg.operations.diff.match import Pairs
from tfrecreg.operations.diff.payloads import Payloads, UnreadError
from tfrecreg.progress import Progress

__all__ = ["FeatureCounts", "Tallied", "changes_of", "tally"]

_MOST = 10_000
"""So many features, and pairs of labels, are told apart: names and values are the data's."""
OTHERS = "…"
"""Stands for the features beyond these."""


@dataclass(slots=True)
class FeatureCounts:
    """In how many of the examples that changed a feature …"""

    added: int = 0
    """… came, …"""
    removed: int = 0
    """… went, …"""
    changed: int = 0
    """… and has another kind or other values."""


@dataclass(slots=True)
class Tallied:
    """What was found in the records of pairs."""

    compared: int = 0
    """Pairs whose records were both read."""
    kept: int = 0
    """Those of them that lost nothing: all features of the first are unchanged in the second."""
    unread: int = 0
    """Pairs of which a record could not be read."""
    reason: str = ""
    """Why the first of these could not."""
    missing: bool = False
    """Whether that is because the bytes are not on this machine."""
    features: dict[str, FeatureCounts] = field(default_factory=dict)
    """By name. The empty name stands for whole payloads that are no Examples."""
    labels: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Feature, label before, label after."""
    more_labels: int = 0
    """Changes of labels beyond those that are told apart."""

    def add(self, change: RecordChange) -> None:
        """Count what differs in one pair."""
        self.compared += 1
        self.kept += change.keeps_all
        for kind in ("added", "removed", "changed"):
            for name in getattr(change, kind):
                counts = self._counts(name)
                setattr(counts, kind, getattr(counts, kind) + 1)
        for label in change.labels:
            if label in self.labels or len(self.labels) < _MOST:
                self.labels[label] += 1
            else:
                self.more_labels += 1

    def _counts(self, name: str) -> FeatureCounts:
        if name not in self.features and len(self.features) >= _MOST:
            name = OTHERS
        return self.features.setdefault(name, FeatureCounts())


def changes_of(
    pairs: Pairs, readers: tuple[Payloads, Payloads], labels: Labels
) -> Iterator[tuple[int, RecordChange | UnreadError, int]]:
    """For each pair its position, what differs, and the bytes that were read."""
    for position, (first, second) in enumerate(zip(pairs.before, pairs.after, strict=True)):
        try:
            before, after = readers[0].read(int(first)), readers[1].read(int(second))
        except UnreadError as error:
            yield position, error, 0
        else:
            yield position, compare(before, after, labels), before.size + after.size


def tally(
    pairs: Pairs,
    readers: tuple[Payloads, Payloads],
    labels: Labels,
    progress: Progress,
    *,
    into: Tallied,
    until_loss: bool = False,
) -> None:
    """Count what differs in pairs.

    Args:
        pairs: of records that are not the same.
        readers: of both sides.
        labels: which features are labels.
        progress: told of each pair.
        into: what to add to.
        until_loss: whether to stop where the first pair lost something, or could not be read.
    """
    found = into
    for _, change, size in changes_of(pairs, readers, labels):
        if isinstance(change, UnreadError):
            found.unread += 1
            if found.unread == 1:
                found.reason, found.missing = change.reason, change.missing
        else:
            found.add(change)
        progress.advance(1, size)
        if until_loss and found.kept < found.compared + found.unread:
            break
