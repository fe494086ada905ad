"""Checking records against a contract, one example at a time."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from typing import NamedTuple

from tfrecreg.codes import SCH002, SCH003, SCH004, SCH005, SCH006, SCH007, SCH009
from tfrecreg.example import Example, Feature, Kind
from tfrecreg.findings import Code, Severity
from tfrecreg.schema.contract import Contract, FeatureRule
from tfrecreg.schema.distinct import Distinct
from tfrecreg.schema.groups import Groups
from tfrecreg.schema.model import FloatDomain
from tfrecreg.schema.values import Outside, ValueCheck, value_check
from tfrecreg.schema.wording import counted, rule_text, shape_text, values_text
from tfrecreg.text import safe

__all__ = ["TYPE_NAMES", "Checker", "Mass", "Problem"]

TYPE_NAMES = {Kind.UNSET: "no kind", Kind.BYTES: "BYTES", Kind.FLOAT: "FLOAT", Kind.INT64: "INT"}
"""Kinds of features as schemas call them."""

_KINDS = {"BYTES": Kind.BYTES, "FLOAT": Kind.FLOAT, "INT": Kind.INT64}
_NO_LIMIT = 2**63
_NONE: tuple[Problem, ...] = ()

_SCH007_WARNING = replace(SCH007, severity=Severity.WARNING)
"""Where the schema does not say whether numbers have to be finite."""


class Problem(NamedTuple):
    """One way in which a record breaks its contract."""

    code: Code
    feature: str
    message: str
    """The same for all records."""
    detail: str | None
    """What is the case in this one."""


class Mass:
    """Counts the values of a feature that needs only most of them in its domain."""

    __slots__ = ("_check", "outside", "total")

    def __init__(self, check: ValueCheck) -> None:
        self._check = check
        self.total = 0
        """Values seen."""
        self.outside = 0
        """Values outside the domain."""

    def __call__(self, feature: Feature) -> tuple[Outside, ...]:
        found = self._check(feature)
        self.total += feature.count
        self.outside += sum(each.values for each in found)
        return found


class _Counted:
    """Sees the values of a feature whose different values are counted, and checks them."""

    __slots__ = ("_add", "_check")

    def __init__(self, check: ValueCheck | None, distinct: Distinct) -> None:
        self._check = check
        self._add = distinct.add

    def __call__(self, feature: Feature) -> tuple[Outside, ...]:
        self._add(feature)
        return () if self._check is None else self._check(feature)


class Checker:
    """Says what is wrong with an example, and counts what only a whole split can be judged by.

    Args:
        contract: what records have to be.
    """

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._known = contract.ignored.union(rule.name for rule in contract.features)
        self._absent = [0] * len(contract.features)
        self._checks = [value_check(rule) for rule in contract.features]
        self.masses: dict[str, Mass] = {}
        """By feature, for those whose `min_domain_mass` is below 1."""
        self.distinct: dict[str, Distinct] = {}
        """By feature, for those whose different values are counted."""
        self._groups = Groups(contract)
        # What the loop over every record wants of a rule, with nothing left to look up.
        self._quick = [self._of(number, rule) for number, rule in enumerate(contract.features)]

    @property
    def absent(self) -> dict[str, int]:
        """In how many examples each feature was missing, where in any."""
        names = (rule.name for rule in self._contract.features)
        counts = {name: n for name, n in zip(names, self._absent, strict=True) if n}
        return counts | self._groups.absent

    def absent_in(self, number: int, examples: int) -> None:
        """Count `examples` more without the contract's feature of that number."""
        self._absent[number] += examples

    def __call__(self, example: Example) -> Sequence[Problem]:
        """What is wrong with `example`; empty where nothing is."""
        problems: Sequence[Problem] = _NONE
        present = 0
        get = example.get
        for name, kind, check, low, high, number in self._quick:
            feature = get(name)
            if feature is not None:
                present += 1
                if (
                    feature.kind is kind
                    and (check is None or not check(feature))
                    and low <= feature.count <= high
                ):
                    continue
            if found := self._look(number, feature):
                problems = (*problems, *found)
        if self._groups:
            mismatches = self._groups(example)
            problems = (*problems, *(Problem(SCH009, *each) for each in mismatches))
        if present != len(example) and (unexpected := example.keys() - self._known):
            return (*problems, *self._unexpected(example, unexpected))
        return problems

    def _of(
        self, number: int, rule: FeatureRule
    ) -> tuple[str, Kind | None, ValueCheck | None, int, int, int]:
        check = self._checks[number]
        if check is not None and rule.min_domain_mass < 1:
            check = self.masses[rule.name] = Mass(check)
        if rule.distinct is not None:
            distinct = self.distinct[rule.name] = Distinct(rule.distinct)
            check = _Counted(check, distinct)
        if rule.multiple_of != 1:
            self._checks[number] = check  # it is called in the long way only
        high = _NO_LIMIT if rule.max_values is None else rule.max_values
        # A rule without a kind here is always looked at the long way.
        kind = _KINDS.get(rule.kind or "") if rule.multiple_of == 1 else None
        return rule.name, kind, check, rule.min_values, high, number

    def _look(self, number: int, feature: Feature | None) -> Sequence[Problem]:
        """Everything that is wrong with a feature, if it is not in order at first sight."""
        rule = self._contract.features[number]
        if feature is None or feature.kind is Kind.UNSET:
            self._absent[number] += 1
            if not rule.required:
                return _NONE
            detail = None if feature is None else "there, but its kind is not set"
            return (Problem(SCH002, rule.name, rule_text(rule, "be in every example"), detail),)
        if rule.kind is not None and feature.kind is not _KINDS.get(rule.kind):
            found = f"found {TYPE_NAMES[feature.kind]}"
            return (Problem(SCH003, rule.name, rule_text(rule, f"be {rule.kind}"), found),)
        problems: list[Problem] = []
        count, high = feature.count, rule.max_values
        many = high is not None and count > high
        if count < rule.min_values or many or count % rule.multiple_of:
            found = f"found {counted(count, 'value')}"
            problems.append(Problem(SCH004, rule.name, rule_text(rule, shape_text(rule)), found))
        check = self._checks[number]
        for outside in check(feature) if check is not None else ():
            problems.append(_value_problem(rule, outside))
        return problems

    def _unexpected(self, example: Example, names: Set[str]) -> list[Problem]:
        contract = self._contract
        problems: list[Problem] = []
        for name in sorted(names):
            feature = example[name]
            if name in contract.elsewhere:
                where = f"the environment `{safe(contract.environment or '')}` of the schema"
            else:
                where = "the schema"
            message = f"`{safe(name)}` is not in {where}"
            found = f"found {TYPE_NAMES[feature.kind]}, {counted(feature.count, 'value')}"
            problems.append(Problem(SCH005, name, message, found))
        return problems


def _value_problem(rule: FeatureRule, outside: Outside) -> Problem:
    if not outside.not_finite:
        return Problem(SCH006, rule.name, rule_text(rule, values_text(rule)), outside.detail)
    domain = rule.domain
    strict = isinstance(domain, FloatDomain) and (domain.disallow_nan or domain.disallow_inf)
    code = SCH007 if strict else _SCH007_WARNING
    return Problem(code, rule.name, rule_text(rule, "be finite"), outside.detail)
