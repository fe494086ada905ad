"""Checks examples one by one against a compiled schema, and writes the messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import Any

from blake3 import blake3

from tfrecreg.core.check.scan.tally import Problem
from tfrecreg.core.example.model import Example, Feature, Kind
from tfrecreg.core.schema.compiled import CompiledSchema
from tfrecreg.core.schema.definition import (
    BoolDomain,
    FloatDomain,
    ImageDomain,
    IntDomain,
    SchemaFeature,
    SparseFeature,
    StringDomain,
    TimeDomain,
    ValueCount,
    WeightedFeature,
)
from tfrecreg.core.schema.domain_check import InvalidValues, ValueCheck, value_check
from tfrecreg.core.values.codes import SCH002, SCH003, SCH004, SCH005, SCH006, SCH007, SCH009
from tfrecreg.core.values.findings import Severity
from tfrecreg.core.values.text import listed, safe

KIND_NAMES = {Kind.UNSET: "no kind", Kind.BYTES: "BYTES", Kind.FLOAT: "FLOAT", Kind.INT64: "INT"}
_SHOWN = 5
"""A message lists the allowed strings up to this number. If there are more, it only counts them."""


def rule_text(rule: SchemaFeature | SparseFeature | WeightedFeature, asks: str) -> str:
    """The message about a broken rule: the name of the feature, "should", and `asks`."""
    return f"`{safe(rule.name)}` should {asks}"


def counted(number: int, noun: str) -> str:
    """``1 value``, ``3 values``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def presence_text(rule: SchemaFeature | SparseFeature) -> str:
    """How many examples of a split must have the feature according to the rule."""
    asks = []
    if 0 < rule.min_fraction < 1:
        asks.append(f"in at least {100 * rule.min_fraction:.6g}%")
    if rule.min_count:
        asks.append(f"in at least {rule.min_count}")
    return f"be {' and '.join(asks)} of the examples of a split"


def bounds_text(bounds: ValueCount, noun: str) -> str:
    """``at least 3 examples``, ``3 to 5 examples`` …"""
    low, high = bounds.min, bounds.max
    if high is None:
        return f"at least {counted(low or 0, noun)}"
    if not low:
        return f"at most {counted(high, noun)}"
    return f"exactly {counted(low, noun)}" if low == high else f"{low} to {high} {noun}s"


def length_text(rule: SchemaFeature) -> str:
    """The number of values that the rule requires."""
    low = rule.min_values
    if rule.shape is not None:
        if not rule.shape:
            return "have exactly 1 value"
        sizes = " × ".join("?" if size is None else str(size) for size in rule.shape)
        total = f"a multiple of {rule.multiple_of}" if None in rule.shape else str(low)
        return f"have the shape {sizes}, so {total} value{'' if total == '1' else 's'}"
    return f"have {bounds_text(ValueCount(low, rule.max_values), 'value')}"


def values_text(rule: SchemaFeature) -> str:
    """The values that the rule requires."""
    asks = _domain_text(rule)
    if rule.domain_mass < 1:
        return f"{asks} in at least {100 * rule.domain_mass:.6g}% of its values"
    return asks


def _domain_text(rule: SchemaFeature) -> str:
    domain = rule.checked_domain
    if isinstance(domain, StringDomain):
        if len(domain.allowed) > _SHOWN:
            return f"be one of the {len(domain.allowed)} strings of its domain"
        names = sorted({*domain.values})
        return f"be one of {listed(names, word='or')}" if names else "have no value at all"
    if isinstance(domain, BoolDomain):
        if rule.kind != "BYTES":
            return "be 0 or 1"
        truths = [name for name in (domain.true_value, domain.false_value) if name is not None]
        return f"be {listed(truths, word='or')}"
    if isinstance(domain, IntDomain):
        return f"be {_range_text('a whole number', domain.min, domain.max)}"
    if isinstance(domain, FloatDomain):
        return f"be {_range_text('a number', domain.min, domain.max)}"
    if isinstance(domain, TimeDomain):
        form = domain.string_format or domain.integer_format
        return f"be a time in the format `{safe(form)}`"
    if isinstance(domain, ImageDomain):
        limit = domain.max_bytes
        return f"hold images of {'any size' if limit is None else f'at most {limit} bytes'}"
    return f"be any {rule.kind}"


def _range_text(noun: str, low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return noun
    if low is None:
        return f"{noun} of at most {_bound(high)}"
    if high is None:
        return f"{noun} of at least {_bound(low)}"
    return f"{noun} from {_bound(low)} to {_bound(high)}"


def _bound(number: float | None) -> str:
    return f"{number:.9g}" if isinstance(number, float) else str(number)


KINDS = {name: kind for kind, name in KIND_NAMES.items()}
"""Maps the names of kinds in schemas to the kinds."""

MAX_DISTINCT = 100_000
"""Maximum number of distinct values kept per feature. Each value takes about 100 bytes."""

_DIGEST_SIZE = 17
_NO_LIMIT = 2**63
_NONE: tuple[Problem, ...] = ()

_SCH007_WARNING = replace(SCH007, severity=Severity.WARNING)
"""Used if the schema does not say whether numbers must be finite."""


@dataclass(slots=True)
class DistinctValues:
    """The distinct values of one feature. It can be pickled and merged, and its size is limited."""

    limit: int
    values: set[int | bytes] = field(default_factory=set)
    """Strings of 17 bytes and more are kept as digests, which no shorter string equals."""

    @classmethod
    def within(cls, bounds: ValueCount) -> DistinctValues:
        """Create an empty set. Its maximum size follows from `bounds`."""
        wanted = max(bounds.min or 0, bounds.max or 0)
        # Count up to twice the bound, for an exact number in the report.
        return cls(min(2 * wanted + 100, MAX_DISTINCT))

    @property
    def count(self) -> int:
        return len(self.values)

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached. If so, :attr:`count` is only a lower bound."""
        return len(self.values) >= self.limit

    def add(self, feature: Feature) -> None:
        """Add the values of one more example."""
        for value in feature.values:
            if self.is_full:
                return
            is_short = isinstance(value, int) or len(value) < _DIGEST_SIZE
            self.values.add(value if is_short else blake3(value).digest(_DIGEST_SIZE))

    def merge(self, other: DistinctValues) -> None:
        """Add the values of another part."""
        self.values.update(islice(other.values - self.values, self.limit - self.count))

    def verdict(self, bounds: ValueCount) -> bool | None:
        """Whether the number of values is within `bounds`; None if there are too many to count."""
        known = self.count
        if bounds.max is not None and known > bounds.max:
            return False
        if not self.is_full:
            return known >= (bounds.min or 0)
        # `known` is a lower bound.
        return True if bounds.max is None and known >= (bounds.min or 0) else None


class DomainMass:
    """Counts the values of a feature, and how many of them are outside its domain."""

    __slots__ = ("_check", "outside", "total")

    def __init__(self, check: ValueCheck) -> None:
        self._check = check
        self.total = self.outside = 0

    def __call__(self, feature: Feature) -> tuple[InvalidValues, ...]:
        found = self._check(feature)
        self.total += feature.count
        self.outside += sum(each.total for each in found)
        return found


class Checker:
    """Finds the problems of examples, and keeps counts for rules about whole splits."""

    def __init__(self, schema: CompiledSchema) -> None:
        self._schema = schema
        self._known = schema.ignored.union(schema.by_name)
        self.absent: Counter[str] = Counter()
        """For each feature that some examples lack, the number of these examples."""
        self.masses: dict[str, DomainMass] = {}
        """Counters of the features with a `min_domain_mass` below 1, by name."""
        self.distinct: dict[str, DistinctValues] = {}
        """The distinct values of each feature for which the schema limits their number."""
        # Everything that the loop over records needs per feature, without further lookups.
        self._rules = [self._prepare(*each) for each in enumerate(schema.features)]

    def __call__(self, example: Example) -> Sequence[Problem]:
        """The problems of `example`; empty if there are none."""
        problems: Sequence[Problem] = _NONE
        present = 0
        get = example.get
        for name, kind, check, low, high, multiple, number in self._rules:
            feature = get(name)
            invalid: tuple[InvalidValues, ...] = ()
            if feature is not None:
                present += 1
                if feature._kind is kind:
                    if check is not None:
                        invalid = check(feature)
                    count = feature._count
                    if not invalid and low <= count <= high and count % multiple == 0:
                        continue
            if found := self._problems(number, feature, invalid):
                problems = (*problems, *found)
        for sparse in self._schema.sparse:
            problems = (*problems, *self._sparse_problems(sparse, example))
        for each in self._schema.weighted:
            weight, values = f"`{safe(each.weight)}`", f"`{safe(each.feature)}`"
            asks = f"have one weight in {weight} for each value of {values}"
            mismatch = _mismatch(each, asks, example, (each.feature, each.weight))
            problems = problems if mismatch is None else (*problems, mismatch)
        if present != len(example) and (unexpected := example.keys() - self._known):
            return (*problems, *self._unexpected(example, unexpected))
        return problems

    def _prepare(
        self, number: int, feature: SchemaFeature
    ) -> tuple[str, Kind | None, ValueCheck | None, int, int, int, int]:
        kind = KINDS.get(feature.kind or "")
        check = value_check(feature)
        if check is not None and feature.domain_mass < 1:
            check = self.masses[feature.name] = DomainMass(check)
        if feature.distinct is not None:
            inner = check
            distinct = self.distinct[feature.name] = DistinctValues.within(feature.distinct)

            def counting(feature: Feature) -> tuple[InvalidValues, ...]:
                distinct.add(feature)
                return () if inner is None else inner(feature)

            check = counting
        low, high = feature.min_values, feature.max_values
        high = _NO_LIMIT if high is None else high
        return feature.name, kind, check, low, high, feature.multiple_of, number

    def _problems(
        self, number: int, feature: Feature | None, invalid: Sequence[InvalidValues]
    ) -> Sequence[Problem]:
        """All problems of a feature that failed the fast check."""
        rule = self._schema.features[number]
        if feature is None or feature.kind is Kind.UNSET:
            self.absent[rule.name] += 1
            if not rule.is_required:
                return _NONE
            detail = None if feature is None else "there, but its kind is not set"
            return (Problem(SCH002, rule.name, rule_text(rule, "be in every example"), detail),)
        if rule.kind is not None and feature.kind is not KINDS.get(rule.kind):
            found = f"found {KIND_NAMES[feature.kind]}"
            return (Problem(SCH003, rule.name, rule_text(rule, f"be {rule.kind}"), found),)
        problems: list[Problem] = []
        count, high = feature.count, rule.max_values
        too_many = high is not None and count > high
        if count < rule.min_values or too_many or count % rule.multiple_of:
            found = f"found {counted(count, 'value')}"
            problems.append(Problem(SCH004, rule.name, rule_text(rule, length_text(rule)), found))
        problems += (value_problem(rule, each) for each in invalid)
        return problems

    def _unexpected(self, example: Example, names: Set[str]) -> list[Problem]:
        problems: list[Problem] = []
        for name in sorted(names):
            feature = example[name]
            if name in self._schema.elsewhere:
                where = f"the environment `{safe(self._schema.environment or '')}` of the schema"
            else:
                where = "the schema"
            message = f"`{safe(name)}` is not in {where}"
            found = f"found {KIND_NAMES[feature.kind]}, {counted(feature.count, 'value')}"
            problems.append(Problem(SCH005, name, message, found))
        return problems

    def _sparse_problems(self, rule: SparseFeature, example: Example) -> Iterator[Problem]:
        names = (*rule.indices, rule.values)
        parts = [part for name in names if (part := _part(example, name)) is not None]
        if not parts:
            self.absent[rule.name] += 1
            if rule.is_required:
                asks = rule_text(rule, "be in every example")
                yield Problem(SCH009, rule.name, asks, "found none of its parts")
            return
        mismatch = _mismatch(rule, "have one index for each value", example, names)
        if mismatch is not None:
            yield mismatch
        elif all(part.kind is Kind.INT64 for part in parts[:-1]):  # others have their own finding
            yield from _index_problems(rule, [part.values for part in parts[:-1]])


def value_problem(rule: SchemaFeature, invalid: InvalidValues) -> Problem:
    """The problem of values that are outside the domain or not finite."""
    if not invalid.not_finite:
        return Problem(SCH006, rule.name, rule_text(rule, values_text(rule)), invalid.detail)
    domain = rule.checked_domain
    strict = isinstance(domain, FloatDomain) and (domain.disallow_nan or domain.disallow_inf)
    code = SCH007 if strict else _SCH007_WARNING
    return Problem(code, rule.name, rule_text(rule, "be finite"), invalid.detail)


def _index_problems(rule: SparseFeature, columns: list[tuple[int, ...]]) -> Iterator[Problem]:
    sizes = rule.shape or (None,) * len(columns)
    for name, size, column in zip(rule.indices, sizes, columns, strict=True):
        limit = _NO_LIMIT if size is None else size
        wrong = [number for number, index in enumerate(column) if not 0 <= index < limit]
        if wrong:
            last = "upwards" if size is None else f"to {size - 1}"
            detail = f"found {column[wrong[0]]}, value {wrong[0]} of {len(column)}"
            if len(wrong) > 1:
                detail += f"; {len(wrong)} such values"
            asks = f"have indices from 0 {last} in `{safe(name)}`"
            yield Problem(SCH009, rule.name, rule_text(rule, asks), detail)
    if rule.is_sorted:
        rows: Sequence[Any] = list(zip(*columns, strict=True)) if len(columns) > 1 else columns[0]
        for number, (before, after) in enumerate(pairwise(rows), 1):
            if before >= after:
                detail = f"found {after} after {before}, value {number}"
                asks = rule_text(rule, "have strictly ascending indices")
                yield Problem(SCH009, rule.name, asks, detail)
                return


def _mismatch(
    rule: SparseFeature | WeightedFeature, asks: str, example: Example, names: Sequence[str]
) -> Problem | None:
    """The problem if some parts are missing, or if parts differ in their number of values."""
    sizes = {name: None if (part := _part(example, name)) is None else part.count for name in names}
    if len(set(sizes.values())) == 1:
        return None
    if None in sizes.values():
        asks = "have all of its parts or none"
    shown = (
        f"no `{safe(name)}`" if size is None else f"{counted(size, 'value')} in `{safe(name)}`"
        for name, size in sizes.items()
    )
    return Problem(SCH009, rule.name, rule_text(rule, asks), f"found {', '.join(shown)}")


def _part(example: Example, name: str) -> Feature | None:
    """A feature of an example; None if it is missing or its kind is not set."""
    feature = example.get(name)
    return None if feature is None or feature.kind is Kind.UNSET else feature
