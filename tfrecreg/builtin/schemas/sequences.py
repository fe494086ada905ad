"""Checks SequenceExamples against a schema that describes them.

The context is checked as if it were an Example. For each list, the validator checks the presence
and the number of steps. For each step, the validator checks the type, the number of values, and the
domain. Two limits are not checked: the number of distinct values in a list, and the share of values
in the domain. A measure in the report says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tfrecreg.builtin.schemas.records import SchemaJudge, SchemaPart, SchemaVisitor
from tfrecreg.core.check.scan.interface import Shard, Target
from tfrecreg.core.check.scan.tally import Problem
from tfrecreg.core.example.kinds import SequenceExample, kind_of
from tfrecreg.core.example.model import Feature, Kind
from tfrecreg.core.example.sequences import (
    ListRule,
    SequenceRules,
    compile_sequences,
    read_sequence,
)
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.schema.check import (
    KIND_NAMES,
    KINDS,
    Checker,
    bounds_text,
    counted,
    length_text,
    rule_text,
    value_problem,
)
from tfrecreg.core.schema.compiled import SplitSchemas
from tfrecreg.core.schema.definition import Schema
from tfrecreg.core.schema.domain_check import ValueCheck, value_check
from tfrecreg.core.schema.payload_kinds import other_location
from tfrecreg.core.values.codes import SCH001, SCH002, SCH003, SCH004, SCH005
from tfrecreg.core.values.config import EnvironmentOptions, read_limits
from tfrecreg.core.values.findings import Finding, Measure
from tfrecreg.core.values.text import listed, safe

NOT_A_SEQUENCE = "the payload should be a tf.train.SequenceExample"
"""The message of `SCH001` if the schema describes SequenceExamples."""


class SequenceChecker(Checker):
    """Finds the problems of SequenceExamples. The context is checked as if it were an Example."""

    def __init__(self, rules: SequenceRules) -> None:
        super().__init__(rules.context)
        self._lists = [
            (rule, None if rule.feature.domain_mass < 1 else value_check(rule.feature))
            for rule in rules.lists
        ]
        self._known_lists = rules.ignored.union(each.feature.name for each in rules.lists)

    def problems(self, sequence: SequenceExample) -> list[Problem]:
        """The problems of a record; empty if there are none."""
        problems = list(self(sequence.context))
        for rule, check in self._lists:
            name = rule.feature.name
            steps = sequence.lists.get(name)
            if steps is not None:
                problems += _list_problems(rule, check, steps)
                continue
            self.absent[name] += 1
            if rule.feature.is_required:
                message = rule_text(rule.feature, "be in every example")
                problems.append(Problem(SCH002, name, message, None))
        for name in sorted(sequence.lists.keys() - self._known_lists):
            found = f"found a list of {counted(len(sequence.lists[name]), 'step')}"
            message = f"`{safe(name)}` is not in the schema"
            problems.append(Problem(SCH005, name, message, found))
        return problems


def _list_problems(
    rule: ListRule, check: ValueCheck | None, steps: Sequence[Feature]
) -> Iterator[Problem]:
    """The problems of one list. If several steps have the same problem, only the problem of the
    first of these steps is returned.
    """
    feature = rule.feature
    name, kind = feature.name, KINDS.get(feature.kind or "")
    if not rule.steps.allows(len(steps)):
        message = rule_text(feature, f"have {bounds_text(rule.steps, 'step')}")
        yield Problem(SCH004, name, message, f"found {counted(len(steps), 'step')}")
    typed = length = False
    found: set[Any] = set()
    for number, step in enumerate(steps):
        is_empty = step.kind is Kind.UNSET and not rule.values.min and rule.step_shape is None
        if kind is not None and step.kind is not kind and not is_empty:
            if not typed:
                typed = True
                detail = f"found {KIND_NAMES[step.kind]}"
                yield Problem(SCH003, name, rule_text(feature, f"be {feature.kind}"), detail)
            continue
        wrong = not rule.values.allows(step.count) or step.count % feature.multiple_of
        if wrong and not length:
            length = True
            detail = f"found {counted(step.count, 'value')} in step {number}"
            asks = f"have {bounds_text(rule.values, 'value')} in each step"
            if feature.shape is not None:
                asks = f"{length_text(feature)}, in each step"
            yield Problem(SCH004, name, rule_text(feature, asks), detail)
        for invalid in check(step) if check is not None and not is_empty else ():
            problem = value_problem(feature, invalid)
            if problem.code not in found:
                found.add(problem.code)
                yield problem._replace(detail=f"{problem.detail}; step {number}")


class SequenceVisitor(SchemaVisitor):
    """Checks the records of one shard."""

    def __init__(
        self, default: SequenceRules, by_split: Mapping[str, SequenceRules], shard: Shard
    ) -> None:
        rules = by_split.get(shard.split, default)
        super().__init__(SplitSchemas(rules.together), shard)
        self._checker = self._sequences = SequenceChecker(rules)

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
            for problem in self._sequences.problems(sequence):
                self.problem(batch, position, sequence.context, problem)


class SequenceJudge(SchemaJudge):
    """Checks the rules that concern the records of all shards together."""

    def __init__(self, schema: Schema, options: Mapping[str, Any]) -> None:
        found = read_limits(EnvironmentOptions, options, "schema")
        self._default = compile_sequences(schema, found.environment)
        self._by_split = {
            name: compile_sequences(schema, each) for name, each in found.environments.items()
        }
        together = {name: each.together for name, each in self._by_split.items()}
        super().__init__(SplitSchemas(self._default.together, together))

    @property
    def visitor(self) -> partial[SequenceVisitor]:
        """The picklable function that makes a shard's visitor."""
        return partial(SequenceVisitor, self._default, self._by_split)

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, SchemaPart]]
    ) -> Iterator[Finding | Measure]:
        yield from super().finish(target, parts)
        left = [
            each.feature.name
            for each in self._default.lists
            if each.feature.domain_mass < 1 or each.feature.distinct is not None
        ]
        if left:
            text = f"unchecked in lists: `unique_constraints`, `min_domain_mass` of {listed(left)}"
            yield Measure("schema.lists_not_judged", len(left), text)
