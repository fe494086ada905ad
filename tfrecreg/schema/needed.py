"""What records hold that a schema does not allow: all that a change of the schema has to know."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite, isinf, isnan

from tfrecreg.codes import SCH003, SCH004, SCH005, SCH006, SCH007
from tfrecreg.example import Feature, Kind
from tfrecreg.schema.check import Problem
from tfrecreg.schema.contract import FeatureRule
from tfrecreg.schema.seen import Seen

__all__ = ["MAX_STRINGS", "Need", "Needs"]

MAX_STRINGS = 100
"""Strings outside a domain that are kept; more are no list that anyone reviews."""

_MAX_NEW = 100
"""Features that a schema does not have, which are kept: their names come from the data."""

_LONG = 256
"""Bytes from which a string is data, and no member of a list."""


@dataclass(slots=True)
class Need:
    """What records hold of one feature where they break its rule."""

    kinds: dict[Kind, int] = field(default_factory=dict)
    """Examples with another type, by that type."""
    retyped: set[int] = field(default_factory=set)
    """The fewest and the most values of those examples."""
    counts: set[int] = field(default_factory=set)
    """The fewest and the most values of the others with a number of values not allowed."""
    low: float | int | None = None
    """The lowest number in an example with numbers outside the domain."""
    high: float | int | None = None
    strings: set[bytes] | None = field(default_factory=set)
    """Those outside the domain; None where there are too many, or one is too long."""
    nan: bool = False
    infinite: bool = False
    largest: int = 0
    """Bytes of the largest value of those examples."""

    def merge(self, other: Need) -> None:
        """Take in what was seen elsewhere."""
        for kind, count in other.kinds.items():
            self.kinds[kind] = self.kinds.get(kind, 0) + count
        self.retyped = _ends(self.retyped | other.retyped)
        self.counts = _ends(self.counts | other.counts)
        if other.low is not None and other.high is not None:
            self._widen(other.low, other.high)
        self._keep(other.strings)
        self.nan |= other.nan
        self.infinite |= other.infinite
        self.largest = max(self.largest, other.largest)

    def see(self, feature: Feature, problem: Problem, rule: FeatureRule) -> None:
        """See one more example that breaks the rule."""
        if problem.code is SCH003:
            self.kinds[feature.kind] = self.kinds.get(feature.kind, 0) + 1
            self.retyped = _ends(self.retyped | {feature.count})
        elif problem.code is SCH004:
            self.counts = _ends(self.counts | {feature.count})
        elif problem.code is SCH006 or problem.code.code == SCH007.code:
            self._see_values(feature, rule)

    def _see_values(self, feature: Feature, rule: FeatureRule) -> None:
        if feature.kind is Kind.BYTES:
            if not rule.is_picture:
                self.nan |= any(b"nan" in value.lower() for value in feature.values)
                self.infinite |= any(b"inf" in value.lower() for value in feature.values)
            self.largest = max(self.largest, *feature.sizes)
            if self.strings is not None and not rule.is_picture:
                allowed = rule.domain if isinstance(rule.domain, frozenset) else frozenset()
                self._keep(None if self.largest > _LONG else set(feature.values) - allowed)
        elif feature.kind is Kind.INT64:
            self._widen(min(feature.values), max(feature.values))
        else:
            finite = [value for value in feature.values if isfinite(value)]
            if finite:
                self._widen(min(finite), max(finite))
            self.nan |= any(map(isnan, feature.values))
            self.infinite |= any(map(isinf, feature.values))

    def _widen(self, low: float, high: float) -> None:
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)

    def _keep(self, strings: set[bytes] | None) -> None:
        both = None if strings is None or self.strings is None else self.strings | strings
        self.strings = None if both is None or len(both) > MAX_STRINGS else both


def _ends(numbers: set[int]) -> set[int]:
    return {min(numbers), max(numbers)} if numbers else numbers


@dataclass(slots=True)
class Needs:
    """What records hold that is not allowed, by feature. Picklable and mergeable, bounded."""

    features: dict[str, Need] = field(default_factory=dict)
    new: dict[str, Seen] = field(default_factory=dict)
    """Features that the schema does not have."""
    more: int = 0
    """How often features were met that are not kept any more."""

    def see(self, feature: Feature | None, problem: Problem, rule: FeatureRule | None) -> None:
        """See one more problem of one more example.

        Args:
            feature: that of the name that the problem has; None where there is none.
            problem: what is wrong with it.
            rule: what the contract says of it; None where that is nothing.
        """
        if feature is None:
            return
        if problem.code is not SCH005:
            if rule is not None:
                self.features.setdefault(problem.feature, Need()).see(feature, problem, rule)
        elif problem.feature in self.new or len(self.new) < _MAX_NEW:
            self.new.setdefault(problem.feature, Seen()).add(feature)
        else:
            self.more += 1

    def merge(self, other: Needs) -> None:
        """Take in what was seen elsewhere."""
        for name, need in other.features.items():
            self.features.setdefault(name, Need()).merge(need)
        for name, seen in other.new.items():
            if name in self.new or len(self.new) < _MAX_NEW:
                self.new.setdefault(name, Seen()).merge(seen)
            else:
                self.more += seen.examples
        self.more += other.more
