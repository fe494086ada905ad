"""The `schema` validator: every record against the schema.

The check of SequenceExamples against a schema that describes them.

The context is checked as an Example is. Of a list are checked: presence, type of each step, number
of steps, number of values of each step, and domain. Limits on its distinct values and on the share
of its values inside the domain are not judged, and a measure says so.

The check of records against a compiled schema, and the judgment of whole splits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from tfrecreg.core.check.scan.interface import Shard, Target, Validator, Visitor
from tfrecreg.core.check.scan.tally import JsonCodec, Tally, key_from
from tfrecreg.core.example.kinds import PayloadKind, SequenceExample, kind_of
from tfrecreg.core.example.model import Example, Feature, Kind
from tfrecreg.core.example.sequences import (
    ListRule,
    SequenceRules,
    compile_sequences,
    read_sequence,
)
from tfrecreg.core.records.batch import RecordBatch, StreamEnd
from tfrecreg.core.schema.check import (
    KIND_NAMES,
    MAX_DISTINCT,
    Checker,
    DistinctValues,
    DomainMass,
    Problem,
    bounds_text,
    counted,
    length_text,
    presence_text,
    rule_text,
    value_problem,
)
from tfrecreg.core.schema.compiled import (
    CompiledSchema,
    EnvironmentOptions,
    SplitSchemas,
    environment_options,
)
from tfrecreg.core.schema.definition import Schema, SchemaFeature, SparseFeature, ValueCount
from tfrecreg.core.schema.domain_check import ValueCheck, value_check
from tfrecreg.core.schema.infer import KindSummary, SeenFeature, draft_feature
from tfrecreg.core.schema.roles.payload_kinds import NOT_AN_EXAMPLE, no_schema_fits, other_location
from tfrecreg.core.schema.vectorized import VectorizedCheck
from tfrecreg.core.values.codes import (
    SCH001,
    SCH002,
    SCH003,
    SCH004,
    SCH005,
    SCH006,
    SCH008,
    SCH010,
    CodeList,
)
from tfrecreg.core.values.findings import Code, Finding, Location, Measure
from tfrecreg.core.values.text import listed, safe

if TYPE_CHECKING:
    from tfrecreg.core.schema.compiled import SplitSchemas
    from tfrecreg.core.schema.definition import Schema


class SchemaValidator(Validator):
    """Checks the records of a target that has a schema; options: :class:`EnvironmentOptions`."""

    name = "schema"
    Options = EnvironmentOptions
    codes: Sequence[Code] = CodeList("SCH00*", "SCH010")
    judge: SchemaJudge
    """Judges the splits; set by :meth:`begin`."""

    def applies(self, target: Target) -> str | None:
        """None if the target has a schema of its records, else the reason not to apply."""
        if target.schema is None:
            reason = no_schema_fits(target, sequences=True)
            return reason or "no schema: name one with --schema"
        return no_schema_fits(target, sequences=_schema(target).describes_sequences()) or None

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], SchemaVisitor]:
        """Compile the schema."""
        # Imported only here: a check of files without a schema only calls `applies`.
        from tfrecreg.core.schema.compiled import compile_split_schemas

        self.part_codec = JsonCodec(SchemaPart, self.codes)
        if _schema(target).describes_sequences():
            self.judge = judge = SequenceJudge(_schema(target), options)
            return judge.visitor
        schemas = compile_split_schemas(_schema(target), options)
        self.judge = SchemaJudge(schemas)
        return partial(_make_visitor, self.visitor_class(), schemas)

    def visitor_class(self) -> type[SchemaVisitor]:
        """The class of the visitors; subclasses that need more than a finding override it."""

        return SchemaVisitor

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str:
        return key_from(target.schema, options=options)

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, SchemaPart]]
    ) -> Iterator[Finding | Measure]:
        return self.judge.finish(target, parts)


def _make_visitor(kind: type[SchemaVisitor], schemas: SplitSchemas, shard: Shard) -> SchemaVisitor:
    return kind(schemas.of(shard.split), shard)


def _schema(target: Target) -> Schema:
    from tfrecreg.core.schema.proto import parse_schema

    return parse_schema(target.schema or "", target.schema_path or "schema")


_MAX_UNEXPECTED = 100
"""Maximum number of unexpected features of a shard with findings of their own: their names come
from the data.
"""


@dataclass(slots=True)
class SchemaPart:
    """The result for one shard, and after merging for all shards of a split."""

    tally: Tally = field(default_factory=Tally)
    examples: int = 0
    """Number of records that are Examples, and were checked."""
    unexamined: int = 0
    """Number of records too large for memory."""
    absent: dict[str, int] = field(default_factory=dict)
    """Number of Examples without a feature, by feature."""
    masses: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Number of all values, and of values outside the domain, by feature."""
    kinds: dict[str, set[str]] = field(default_factory=dict)
    """The wrong types found, by feature."""
    distinct: dict[str, DistinctValues] = field(default_factory=dict)
    """The distinct values, by feature, for features with a rule on their number."""
    unexpected: dict[str, dict[int, tuple[int, int, int]]] = field(default_factory=dict)
    """Of features that the schema does not declare, by kind: number of Examples, fewest and most
    values.
    """

    def merge(self, other: SchemaPart) -> None:
        """Add the next shard."""
        self.tally.merge(other.tally)
        self.examples += other.examples
        self.unexamined += other.unexamined
        for name, absent in other.absent.items():
            self.absent[name] = self.absent.get(name, 0) + absent
        for name, (total, outside) in other.masses.items():
            before = self.masses.get(name, (0, 0))
            self.masses[name] = (before[0] + total, before[1] + outside)
        for name, kinds in other.kinds.items():
            self.kinds.setdefault(name, set()).update(kinds)
        for name, distinct in other.distinct.items():
            if name in self.distinct:
                self.distinct[name].merge(distinct)
            else:
                self.distinct[name] = distinct
        for name, by_kind in other.unexpected.items():
            seen = self.unexpected.setdefault(name, {})
            for kind, (number, fewest, most) in by_kind.items():
                earlier, low, high = seen.get(kind, (0, fewest, most))
                seen[kind] = earlier + number, min(low, fewest), max(high, most)


class RuleCounts(Protocol):
    """What a checker counts for the rules about whole splits; see :class:`Checker`."""

    @property
    def absent(self) -> dict[str, int]: ...

    @property
    def masses(self) -> Mapping[str, DomainMass]: ...

    @property
    def distinct(self) -> Mapping[str, DistinctValues]: ...


class SchemaVisitor(Visitor):
    """Checks the records of one shard."""

    def __init__(self, schema: CompiledSchema, shard: Shard) -> None:
        self._shard = shard
        self._checker = Checker(schema)
        self._counts: RuleCounts = self._checker
        self._vectorized = VectorizedCheck(schema, self._checker)
        self._part = SchemaPart()

    def batch(self, batch: RecordBatch) -> None:
        part = self._part
        if not batch.whole:
            part.unexamined += len(batch)
            return
        check = self._checker
        # Use decoded records if another validator decoded them, or if the columns do not show that
        # any is valid.
        rest = self._vectorized.remaining(batch.memory, batch.starts, batch.lengths, batch.example)
        part.examples += len(batch) - len(rest)
        if len(rest) == len(batch):
            example_at: Callable[[int], Example | None] = batch.examples.__getitem__
        else:
            example_at = batch.example
        for position in rest:
            example = example_at(position)
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
        self._part.absent = self._counts.absent
        self._part.masses = {
            name: (mass.total, mass.outside) for name, mass in self._counts.masses.items()
        }
        self._part.distinct = dict(self._counts.distinct)
        return self._part

    def problem(
        self, batch: RecordBatch, position: int, example: Example, problem: Problem
    ) -> None:
        """Count one problem of a record; overridden by subclasses that need more than a finding."""
        name, message, feature = problem.feature, problem.message, problem.feature
        if problem.code is SCH003 and problem.detail:
            self._part.kinds.setdefault(name, set()).add(problem.detail.removeprefix("found "))
        if problem.code is SCH005:
            seen, value = self._part.unexpected, example.get(name)
            if name in seen or len(seen) < _MAX_UNEXPECTED:
                by_kind = seen.setdefault(name, {})
                if value is not None:
                    count = value.count
                    number, low, high = by_kind.get(value.kind, (0, count, count))
                    by_kind[int(value.kind)] = number + 1, min(low, count), max(high, count)
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
    """The judgment of the records of all shards together."""

    def __init__(self, schemas: SplitSchemas) -> None:
        self._schemas = schemas
        self.splits: dict[str, SchemaPart] = {}
        """The result of each split, available after :meth:`finish`."""

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, SchemaPart]]
    ) -> Iterator[Finding | Measure]:
        splits = self.splits
        for shard, part in parts:
            splits.setdefault(shard.split, SchemaPart()).merge(part)
        total = SchemaPart()
        for split, part in splits.items():
            self._judge_presence(split, part)
            self._judge_distinct(split, part)
            total.merge(part)
        self._judge_examples(total)
        for finding in total.tally.findings(target.dataset):
            first = finding.locations[0] if finding.locations else Location()
            split, feature = first.split or "", first.feature or ""
            if finding.code == SCH006.code:
                rule = self._schemas.of(split).by_name[feature]
                if _is_within_mass(rule, splits[split]):
                    continue
            if finding.code == SCH003.code:
                found = " and ".join(sorted(splits[split].kinds[feature]))
                finding = replace(finding, message=f"{finding.message}, found {found}")
            if finding.code == SCH005.code and feature not in self._schemas.of(split).elsewhere:
                declaration = _declaration(feature, splits[split])
                if declaration:
                    finding = replace(finding, hint=f"{finding.hint}: {declaration}")
            yield finding
        looked = f"{counted(total.examples, 'record')} checked"
        yield Measure("schema.records", total.examples, looked)
        if total.unexamined:
            left = f"{counted(total.unexamined, 'record')} too large to be checked"
            yield Measure("schema.unexamined", total.unexamined, left)
        if uncounted := sorted(self._uncounted(splits)):
            many = f"more than {MAX_DISTINCT:,} different values"
            text = f"{many} in {listed(uncounted)}: `unique_constraints` not judged"
            yield Measure("schema.uncounted", len(uncounted), text)

    def _judge_presence(self, split: str, part: SchemaPart) -> None:
        """Check the rules for all examples of a split together."""
        if not part.examples:
            return
        schema = self._schemas.of(split)
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

    def _judge_distinct(self, split: str, part: SchemaPart) -> None:
        """Check the number of distinct values of a split's features."""
        for name, distinct in part.distinct.items():
            rule = self._schemas.of(split).by_name[name]
            bounds = rule.distinct
            if bounds is None or distinct.verdict(bounds) is not False:
                continue
            found = f"found {'at least ' if distinct.is_full else ''}{distinct.count}"
            location = Location(split=split or None, feature=name, detail=found)
            asks = f"have {bounds_text(bounds, 'different value')} in a split"
            part.tally.add(SCH008, rule_text(rule, asks), location, split=split, feature=name)

    def _uncounted(self, splits: Mapping[str, SchemaPart]) -> set[str]:
        """Features with too many distinct values to be judged."""
        return {
            name
            for split, part in splits.items()
            for name, distinct in part.distinct.items()
            if (bounds := self._schemas.of(split).by_name[name].distinct) is not None
            and distinct.verdict(bounds) is None
        }

    def _judge_examples(self, total: SchemaPart) -> None:
        """Check the total number of examples."""
        bounds = self._schemas.default.examples
        low, high = bounds.min or 0, bounds.max
        if total.examples < low or (high is not None and total.examples > high):
            message = f"there should be {bounds_text(bounds, 'example')}, found {total.examples}"
            total.tally.add(SCH010, message, None)


def _declaration(name: str, part: SchemaPart) -> str:
    """The text that declares a feature as it was found; empty if none can."""
    seen = SeenFeature()
    for kind, (number, fewest, most) in part.unexpected.get(name, {}).items():
        if kind == Kind.UNSET:
            seen.unset = number
        else:
            seen.kinds[Kind(kind)] = KindSummary(examples=number, fewest=fewest, most=most)
    if not seen.kinds and not seen.unset:
        return ""
    lines = draft_feature(name, seen, part.examples)
    return " ".join(each.strip() for each in lines if not each.startswith("#"))


def _is_within_mass(rule: SchemaFeature, part: SchemaPart) -> bool:
    """Whether the share of values outside the domain is within the limit of the rule."""
    if rule.domain_mass >= 1:
        return False
    total, outside = part.masses[rule.name]
    return outside <= (1 - rule.domain_mass) * total


NOT_A_SEQUENCE = "the payload should be a tf.train.SequenceExample"
"""The message of `SCH001` where the schema describes SequenceExamples."""


class SequenceChecker:
    """Finds the problems of SequenceExamples, and keeps counts for rules about whole splits."""

    def __init__(self, rules: SequenceRules) -> None:
        self._context = Checker(rules.context)
        self._lists = [(rule, _value_check(rule)) for rule in rules.lists]
        self._known = rules.ignored.union(each.name for each in rules.lists)
        self._absent: dict[str, int] = {}

    @property
    def absent(self) -> dict[str, int]:
        """Number of records without a feature or list, by name; only those above 0."""
        return {**self._context.absent, **self._absent}

    @property
    def masses(self) -> Mapping[str, DomainMass]:
        """As of a :class:`Checker`, for the context."""
        return self._context.masses

    @property
    def distinct(self) -> Mapping[str, DistinctValues]:
        """As of a :class:`Checker`, for the context."""
        return self._context.distinct

    def __call__(self, sequence: SequenceExample) -> list[Problem]:
        """The problems of a record; empty if there are none."""
        problems = list(self._context(sequence.context))
        for rule, check in self._lists:
            steps = sequence.lists.get(rule.name)
            if steps is not None:
                problems += _list_problems(rule, check, steps)
                continue
            self._absent[rule.name] = self._absent.get(rule.name, 0) + 1
            if rule.is_required:
                message = rule_text(rule.feature, "be in every example")
                problems.append(Problem(SCH002, rule.name, message, None))
        for name in sorted(sequence.lists.keys() - self._known):
            found = f"found a list of {counted(len(sequence.lists[name]), 'step')}"
            message = f"`{safe(name)}` is not in the schema"
            problems.append(Problem(SCH005, name, message, found))
        return problems


def _value_check(rule: ListRule) -> ValueCheck | None:
    return None if rule.feature.domain_mass < 1 else value_check(rule.feature)


def _list_problems(
    rule: ListRule, check: ValueCheck | None, steps: Sequence[Feature]
) -> Iterator[Problem]:
    """At most one problem of each code, about the first step that has it."""
    name, feature = rule.name, rule.feature
    if not _is_within(len(steps), rule.steps):
        message = rule_text(feature, f"have {bounds_text(rule.steps, 'step')}")
        yield Problem(SCH004, name, message, f"found {counted(len(steps), 'step')}")
    typed = length = False
    found: set[Any] = set()
    for number, step in enumerate(steps):
        is_empty = step.kind is Kind.UNSET and not rule.values.min and rule.step_shape is None
        if rule.kind is not None and step.kind is not rule.kind and not is_empty:
            if not typed:
                typed = True
                detail = f"found {KIND_NAMES[step.kind]}"
                yield Problem(SCH003, name, rule_text(feature, f"be {feature.kind}"), detail)
            continue
        wrong = not _is_within(step.count, rule.values) or step.count % feature.multiple_of
        if wrong and not length:
            length = True
            detail = f"found {counted(step.count, 'value')} in step {number}"
            yield Problem(SCH004, name, rule_text(feature, _step_text(rule)), detail)
        for invalid in check(step) if check is not None and not is_empty else ():
            problem = value_problem(feature, invalid)
            if problem.code not in found:
                found.add(problem.code)
                yield problem._replace(detail=f"{problem.detail}; step {number}")


def _is_within(number: int, bounds: ValueCount) -> bool:
    return (bounds.min or 0) <= number and (bounds.max is None or number <= bounds.max)


def _step_text(rule: ListRule) -> str:
    if rule.feature.shape is not None:
        return f"{length_text(rule.feature)}, in each step"
    return f"have {bounds_text(rule.values, 'value')} in each step"


class SequenceVisitor(SchemaVisitor):
    """Checks the records of one shard."""

    def __init__(self, rules: SequenceRules, shard: Shard) -> None:
        super().__init__(rules.together, shard)
        self._sequences = SequenceChecker(rules)
        self._counts = self._sequences

    def batch(self, batch: RecordBatch) -> None:
        part = self._part
        if not batch.whole:
            part.unexamined += len(batch)
            return
        for position in range(len(batch)):
            payload = batch.payload(position)
            sequence = read_sequence(payload)
            if sequence is None:
                kind = kind_of(payload, 0, len(payload), batch.example(position))
                where = other_location(self._shard, batch, position, kind)
                part.tally.add(SCH001, NOT_A_SEQUENCE, where, split=self._shard.split)
                continue
            part.examples += 1
            for problem in self._sequences(sequence):
                self.problem(batch, position, sequence.context, problem)


class SequenceJudge(SchemaJudge):
    """The judgment of the records of all shards together."""

    def __init__(self, schema: Schema, options: Mapping[str, Any]) -> None:
        environment, by_split = environment_options("schema", options)
        self._default = compile_sequences(schema, environment)
        self._by_split = {name: compile_sequences(schema, each) for name, each in by_split.items()}
        together = {name: each.together for name, each in self._by_split.items()}
        super().__init__(SplitSchemas(self._default.together, together))

    @property
    def visitor(self) -> partial[SequenceVisitor]:
        """Makes the visitor of a shard; picklable."""
        return partial(_visitor, self._default, self._by_split)

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, SchemaPart]]
    ) -> Iterator[Finding | Measure]:
        yield from super().finish(target, parts)
        left = [
            each.name
            for each in self._default.lists
            if each.feature.domain_mass < 1 or each.feature.distinct is not None
        ]
        if left:
            text = f"not judged of lists: `unique_constraints`, `min_domain_mass` of {listed(left)}"
            yield Measure("schema.lists_not_judged", len(left), text)


def _visitor(
    default: SequenceRules, by_split: Mapping[str, SequenceRules], shard: Shard
) -> SequenceVisitor:
    return SequenceVisitor(by_split.get(shard.split, default), shard)
