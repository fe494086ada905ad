"""What a shard hands back, and the whole of all shards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tfrecreg.findings import Location
from tfrecreg.validators.inflation.looks import Look
from tfrecreg.validators.inflation.repeats import Repeats

__all__ = ["MOST_FEATURES", "Sizes"]

MOST_FEATURES = 200
"""So many features are looked at closely: names come from the data."""


@dataclass(slots=True)
class Sizes:
    """What one shard weighs, and what was seen of it; then what all of them do."""

    file_bytes: int = 0
    stream_bytes: int = 0
    """Without compression."""
    records: int = 0
    features: dict[str, int] = field(default_factory=dict)
    """Bytes of every feature, exactly."""
    examples_bytes: int = 0
    """Of the records that these are in, names, lengths and framing too."""
    sampled: int = 0
    """Records that were looked at closely."""
    sampled_bytes: int = 0
    """Their bytes in the stream, framing and all."""
    looks: dict[str, Look] = field(default_factory=dict)
    """Of the features in these."""
    first: dict[str, Location] = field(default_factory=dict)
    """The first of these that has a feature."""
    first_numbers: dict[str, Location] = field(default_factory=dict)
    """The first in which it holds numbers that could be stored otherwise."""
    repeats: dict[str, Repeats] = field(default_factory=dict)
    """Of features with large values."""

    def merge(self, other: Sizes) -> None:
        """Take in the next shard."""
        self.file_bytes += other.file_bytes
        self.stream_bytes += other.stream_bytes
        self.records += other.records
        self.examples_bytes += other.examples_bytes
        self.sampled += other.sampled
        self.sampled_bytes += other.sampled_bytes
        _add(self.features, other.features)
        for name, place in other.first.items():
            self.first.setdefault(name, place)
        for name, place in other.first_numbers.items():
            self.first_numbers.setdefault(name, place)
        for name, look in other.looks.items():
            if name in self.looks:
                self.looks[name].merge(look)
            else:
                self.looks[name] = look
        for name, repeats in other.repeats.items():
            self.repeats.setdefault(name, Repeats()).merge(repeats)


def _add(counts: dict[str, int], more: Mapping[str, int]) -> None:
    for name, count in more.items():
        counts[name] = counts.get(name, 0) + count
