"""What was seen of one feature: small, mergeable, the same in whatever order it is put together."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite

from tfrecreg.example import Feature, Kind
from tfrecreg.example.tensors import read_tensor
from tfrecreg.pictures import sniff

__all__ = ["MAX_WORDS", "KindSeen", "Seen"]

MAX_WORDS = 50
"""Different strings that are kept; a feature with more has no list of strings."""

_MAX_TENSORS = 4
"""Different dtypes and shapes of serialised tensors that are told apart."""

MAX_WORD_BYTES = 64
"""Longer values are text or data, not one of a few names."""


@dataclass(slots=True)
class KindSeen:
    """What was seen of a feature where it had one kind."""

    examples: int = 0
    values: int = 0
    least: int | None = None
    """Fewest values in an example."""
    most: int = 0
    """Most values in an example."""
    low: int | None = None
    """Of INT values."""
    high: int | None = None
    """Of INT values."""
    not_finite: int = 0
    """FLOAT values that are NaN or infinite."""
    pictures: dict[str, int] = field(default_factory=dict)
    """BYTES values that begin as a picture does, by format."""
    tensors: dict[tuple[str, tuple[int, ...]] | None, int] = field(default_factory=dict)
    """BYTES values that are serialised tensors, by dtype and shape; None for more than a few."""
    words: set[str] | None = field(default_factory=set)
    """The different BYTES values; None where there are too many, or one is too long or no text."""

    def add(self, feature: Feature) -> None:
        """See one more example's values."""
        self.examples += 1
        count = feature.count
        self.values += count
        self.least = count if self.least is None else min(self.least, count)
        self.most = max(self.most, count)
        if feature.kind is Kind.BYTES:
            self._add_bytes(feature)
        elif feature.kind is Kind.INT64 and count:
            self._widen(min(feature.values), max(feature.values))
        elif feature.kind is Kind.FLOAT:
            self.not_finite += sum(not isfinite(value) for value in feature.values)

    def merge(self, other: KindSeen) -> None:
        """Take in what was seen elsewhere."""
        self.examples += other.examples
        self.values += other.values
        if other.least is not None:
            self.least = other.least if self.least is None else min(self.least, other.least)
        self.most = max(self.most, other.most)
        if other.low is not None and other.high is not None:
            self._widen(other.low, other.high)
        self.not_finite += other.not_finite
        for name, count in other.pictures.items():
            self.pictures[name] = self.pictures.get(name, 0) + count
        for what, count in other.tensors.items():
            self._add_tensors(what, count)
        if self.words is not None:
            self._keep(None if other.words is None else self.words | other.words)

    def _widen(self, low: int, high: int) -> None:
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)

    def _add_bytes(self, feature: Feature) -> None:
        for value in feature.values:
            name = sniff(value)
            if name:
                self.pictures[name] = self.pictures.get(name, 0) + 1
            tensor = read_tensor(value)
            if tensor is not None:
                self._add_tensors((tensor.dtype, tensor.shape), 1)
                self.words = None
            if self.words is None:
                continue
            try:
                word = value[: MAX_WORD_BYTES + 1].decode("utf-8")
            except UnicodeDecodeError:
                self.words = None
            else:
                self._keep(None if len(value) > MAX_WORD_BYTES else self.words | {word})

    def _add_tensors(self, what: tuple[str, tuple[int, ...]] | None, count: int) -> None:
        if what not in self.tensors and len(self.tensors) >= _MAX_TENSORS:
            what = None
        self.tensors[what] = self.tensors.get(what, 0) + count

    def _keep(self, words: set[str] | None) -> None:
        self.words = None if words is None or len(words) > MAX_WORDS else words


@dataclass(slots=True)
class Seen:
    """What was seen of one feature."""

    kinds: dict[Kind, KindSeen] = field(default_factory=dict)
    """By kind; more than one where examples do not agree."""
    unset: int = 0
    """Examples that have it without a kind."""

    def add(self, feature: Feature) -> None:
        """See it in one more example."""
        if feature.kind is Kind.UNSET:
            self.unset += 1
        else:
            self.kinds.setdefault(feature.kind, KindSeen()).add(feature)

    def merge(self, other: Seen) -> None:
        """Take in what was seen elsewhere."""
        self.unset += other.unset
        for kind, seen in other.kinds.items():
            self.kinds.setdefault(kind, KindSeen()).merge(seen)

    @property
    def examples(self) -> int:
        """Examples that have it, with a kind."""
        return sum(seen.examples for seen in self.kinds.values())

    def usual(self) -> Kind | None:
        """The kind that most examples have, the first by number where two are even."""
        return min(self.kinds, key=lambda kind: (-self.kinds[kind].examples, kind), default=None)
