"""Summaries of the records that break a schema: the facts that a change of the schema needs."""

from __future__ import annotations

from dataclasses import dataclass, field

from tfrecreg.codes.sch import SCH005, SCH006
from tfrecreg.example import Feature, Kind, bytes_feature
from tfrecreg.schema.check import Problem
from tfrecreg.schema.definition import BoolDomain, StringDomain
from tfrecreg.schema.definition import Feature as SchemaFeature
from tfrecreg.schema.infer import DRAFT_LIMIT, FeatureSummary, WordLimit

__all__ = ["MAX_STRINGS", "Violations"]

MAX_STRINGS = 100
"""Maximum number of strings outside a domain to keep; nobody reviews a longer list."""

_LIMIT = WordLimit(MAX_STRINGS, 256)

_MAX_UNDECLARED = 100
"""Maximum number of undeclared features to keep: their names come from the data."""


@dataclass(slots=True)
class Violations:
    """Summaries of the features with problems. Picklable, mergeable and bounded."""

    summaries: dict[tuple[str, str], FeatureSummary] = field(default_factory=dict)
    """The features that have a problem, by code and name. Of strings outside a list of allowed
    ones, only these are in it."""
    undeclared: int = 0
    """Number of features in it that the schema does not have."""

    def add(
        self, feature: Feature | None, problem: Problem, declared: SchemaFeature | None
    ) -> None:
        """Add one problem of one example.

        Args:
            feature: the feature of that name in the example; None if there is none.
            problem: what is wrong with it.
            declared: its declaration; None if there is none.
        """
        if feature is None or (declared is None and problem.code is not SCH005):
            return
        domain = None if declared is None else declared.domain
        is_text = problem.code is SCH006 and feature.kind is Kind.BYTES
        if is_text and isinstance(domain, (StringDomain, BoolDomain)):
            feature = bytes_feature(set(feature.values) - domain.allowed)
        summary = self._summary((problem.code.code, problem.feature))
        if summary is not None:
            summary.add(feature)

    def merge(self, other: Violations) -> None:
        """Add what was seen elsewhere."""
        for key, theirs in other.summaries.items():
            summary = self._summary(key)
            if summary is not None:
                summary.merge(theirs)

    def _summary(self, key: tuple[str, str]) -> FeatureSummary | None:
        if key not in self.summaries:
            is_undeclared = key[0] == SCH005.code
            if is_undeclared and self.undeclared >= _MAX_UNDECLARED:
                return None
            self.undeclared += is_undeclared
            self.summaries[key] = FeatureSummary(DRAFT_LIMIT if is_undeclared else _LIMIT)
        return self.summaries[key]

    def of(self, code: str, name: str) -> FeatureSummary:
        """The summary of one feature with one problem, empty if there is none."""
        return self.summaries.get((code, name)) or FeatureSummary()
