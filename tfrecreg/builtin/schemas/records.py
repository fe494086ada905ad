"""Checks records against a compiled schema, and whole splits against its rules for splits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from tfrecreg.core.check.scan.interface import Shard, Target, Visitor
from tfrecreg.core.check.scan.tally import Problem, Tally, add_up
from tfrecreg.core.example.kinds import PayloadKind, kind_of
from tfrecreg.core.example.model import Example, Kind
from tfrecreg.core.records.batch import RecordBatch, StreamEnd
from tfrecreg.core.schema.check import (
    MAX_DISTINCT,
    Checker,
    DistinctValues,
    bounds_text,
    counted,
    presence_text,
    rule_text,
)
from tfrecreg.core.schema.compiled import SplitSchemas
from tfrecreg.core.schema.definition import SchemaFeature, SparseFeature
from tfrecreg.core.schema.infer import KindSummary, SeenFeature, draft_feature
from tfrecreg.core.schema.payload_kinds import NOT_AN_EXAMPLE, other_location
from tfrecreg.core.schema.vectorized import VectorizedCheck
from tfrecreg.core.values.codes import SCH001, SCH002, SCH003, SCH005, SCH006, SCH008, SCH010
from tfrecreg.core.values.findings import Finding, Location, Measure
from tfrecreg.core.values.text import listed

MAX_UNEXPECTED = 100
"""Maximum number of undeclared features that get a finding or a draft. Data may have many."""


@dataclass(slots=True)
class Lengths:
    """How many values a feature of one kind has in the Examples that have this feature."""

    examples: int
    fewest: int
    most: int

    def merge(self, other: Lengths) -> None:
        """Add the counts of other Examples."""
        self.examples += other.examples
        self.fewest, self.most = min(self.fewest, other.fewest), max(self.most, other.most)


@dataclass(slots=True)
class SchemaPart:
    """The result for one shard or, after merging, for all shards of a split."""

    tally: Tally = field(default_factory=Tally)
    examples: int = 0
    """Number of records that are Examples and were checked."""
    unexamined: int = 0
    """Number of records too large for memory."""
    absent: dict[str, int] = field(default_factory=dict)
    """Number of Examples without a feature, by feature."""
    values: dict[str, int] = field(default_factory=dict)
    """Number of values, by feature with a share of values that may be outside its domain."""
    outside: dict[str, int] = field(default_factory=dict)
    """Number of these values that are outside the domain."""
    kinds: dict[str, set[str]] = field(default_factory=dict)
    """The wrong types found, by feature."""
    distinct: dict[str, DistinctValues] = field(default_factory=dict)
    """The distinct values of each feature, if a rule limits how many the feature may have."""
    unexpected: dict[str, dict[int, Lengths]] = field(default_factory=dict)
    """The undeclared features, and the numbers of their values by kind."""


class SchemaVisitor(Visitor):
    """Checks the records of one shard."""

    def __init__(self, schemas: SplitSchemas, shard: Shard) -> None:
        schema = schemas.of(shard.split)
        self._shard = shard
        self._checker = Checker(schema)
        self._vectorized = VectorizedCheck(schema, self._checker)
        self._part = SchemaPart()

    def batch(self, batch: RecordBatch) -> None:
        part = self._part
        if not batch.whole:
            part.unexamined += len(batch)
            return
        check = self._checker
        rest = self._vectorized.remaining(batch)
        part.examples += len(batch) - len(rest)
        if len(rest) == len(batch):
            examples: Iterable[tuple[int, Example | None]] = enumerate(batch.examples)
        else:
            examples = ((position, batch.example(position)) for position in rest)
        for position, example in examples:
            start, length = batch.starts[position], batch.lengths[position]
            kind = kind_of(batch.memory, start, length, example)
            if example is None or kind is not PayloadKind.EXAMPLE:
                where = other_location(self._shard, batch, position, kind)
                part.tally.add(SCH001, NOT_AN_EXAMPLE, where, split=self._shard.split)
                continue
            part.examples += 1
            if problems := check(example):
                for problem in problems:
                    self.problem(batch, position, example, problem)

    def close(self, end: StreamEnd) -> SchemaPart:  # noqa: ARG002 - it was counted on the way
        self._part.absent = self._checker.absent
        masses = self._checker.masses
        self._part.values = {name: mass.total for name, mass in masses.items()}
        self._part.outside = {name: mass.outside for name, mass in masses.items()}
        self._part.distinct = dict(self._checker.distinct)
        return self._part

    def problem(
        self,
        batch: RecordBatch,
        position: int,
        example: Example,
        problem: Problem,
    ) -> None:
        """Count one problem of a record. A subclass that needs more than a finding overrides this
        method.
        """
        name, message, feature = problem.feature, problem.message, problem.feature
        if problem.code is SCH003 and problem.detail:
            self._part.kinds.setdefault(name, set()).add(problem.detail.removeprefix("found "))
        if problem.code is SCH005:
            seen, value = self._part.unexpected, example.get(name)
            if name in seen or len(seen) < MAX_UNEXPECTED:
                by_kind = seen.setdefault(name, {})
                if value is not None:
                    lengths = by_kind.setdefault(value.kind, Lengths(0, value.count, value.count))
                    lengths.merge(Lengths(1, value.count, value.count))
            else:
                feature, message = "", "more features are not in the schema"
        self._part.tally.add(
            problem.code,
            message,
            self._shard.locate(batch, position, feature=name, detail=problem.detail),
            split=self._shard.split,
            feature=feature,
        )


class SchemaJudge:
    """Checks the rules that concern the records of all shards together."""

    def __init__(self, schemas: SplitSchemas) -> None:
        self.schemas = schemas
        self.splits: dict[str, SchemaPart] = {}
        """The result of each split, available after :meth:`finish`."""

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, SchemaPart]]
    ) -> Iterator[Finding | Measure]:
        splits = self.splits
        for shard, part in parts:
            add_up(splits.setdefault(shard.split, SchemaPart()), part)
        tally, uncounted = Tally(), set[str]()
        for split, part in splits.items():
            self._judge_presence(split, part)
            uncounted |= self._judge_distinct(split, part)
            tally.merge(part.tally)
        examples = sum(part.examples for part in splits.values())
        bounds = self.schemas.default.examples
        if not bounds.allows(examples):
            message = f"there should be {bounds_text(bounds, 'example')}, found {examples}"
            tally.add(SCH010, message, None)
        for finding in tally.findings(target.dataset):
            first = finding.locations[0] if finding.locations else Location()
            split, feature = first.split or "", first.feature or ""
            if finding.code == SCH006.code:
                mass = self.schemas.of(split).by_name[feature].domain_mass
                values = splits[split].values.get(feature, 0)
                # A quotient of counts, because `1 - mass` may be less than the share it stands for.
                if mass < 1 and (values - splits[split].outside[feature]) / values >= mass:
                    continue
            if finding.code == SCH003.code:
                found = " and ".join(sorted(splits[split].kinds[feature]))
                finding = replace(finding, message=f"{finding.message}, found {found}")
            if finding.code == SCH005.code and feature not in self.schemas.of(split).elsewhere:
                declaration = _declaration(feature, splits[split])
                if declaration:
                    finding = replace(finding, hint=f"{finding.hint}: {declaration}")
            yield finding
        yield Measure("schema.records", examples, f"{counted(examples, 'record')} checked")
        if unexamined := sum(part.unexamined for part in splits.values()):
            left = f"{counted(unexamined, 'record')} too large to check"
            yield Measure("schema.unexamined", unexamined, left)
        if uncounted:
            many = f"more than {MAX_DISTINCT:,} different values"
            text = f"`unique_constraints` not checked: {many} in {listed(sorted(uncounted))}"
            yield Measure("schema.uncounted", len(uncounted), text)

    def _judge_presence(self, split: str, part: SchemaPart) -> None:
        """Check the rules on the presence of features in a whole split."""
        if not part.examples:
            return
        schema = self.schemas.of(split)
        rules: tuple[SchemaFeature | SparseFeature, ...] = (*schema.features, *schema.sparse)
        for rule in rules:
            absent = part.absent.get(rule.name, 0)
            if rule.is_required and absent:
                continue  # each record that lacks it already has a finding
            present = part.examples - absent
            if present >= rule.min_count and present / part.examples >= rule.min_fraction:
                continue
            found = f"in {present} of {counted(part.examples, 'example')}"
            location = Location(split=split or None, feature=rule.name, detail=found)
            message = rule_text(rule, presence_text(rule))
            part.tally.add(SCH002, message, location, split=split, feature=rule.name)

    def _judge_distinct(self, split: str, part: SchemaPart) -> set[str]:
        """Check the number of distinct values of a split's features. Returns the features that have
        too many distinct values to be checked.
        """
        uncounted: set[str] = set()
        for name, distinct in part.distinct.items():
            rule = self.schemas.of(split).by_name[name]
            bounds = rule.distinct
            if bounds is None or (verdict := distinct.verdict(bounds)):
                continue
            if verdict is None:
                uncounted.add(name)
                continue
            found = f"found {'at least ' if distinct.is_full else ''}{distinct.count}"
            location = Location(split=split or None, feature=name, detail=found)
            asks = f"have {bounds_text(bounds, 'different value')} in a split"
            part.tally.add(SCH008, rule_text(rule, asks), location, split=split, feature=name)
        return uncounted


def _declaration(name: str, part: SchemaPart) -> str:
    """A declaration that fits a feature's values in the data; empty if none is possible."""
    seen = SeenFeature()
    for kind, each in part.unexpected.get(name, {}).items():
        if kind == Kind.UNSET:
            seen.unset = each.examples
        else:
            lengths = KindSummary(examples=each.examples, fewest=each.fewest, most=each.most)
            seen.kinds[Kind(kind)] = lengths
    if not seen.kinds and not seen.unset:
        return ""
    lines = draft_feature(name, seen, part.examples)
    return " ".join(each.strip() for each in lines if not each.startswith("#"))
