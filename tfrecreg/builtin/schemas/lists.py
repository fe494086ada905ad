"""Whether readers of the lists of SequenceExamples parse the records of another schema."""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.core.example.sequences.rules import ListRule, compile_sequences
from tfrecreg.core.schema.compat import Clash, values_within
from tfrecreg.core.schema.definition import SEQUENCE, Schema, ValueCount
from tfrecreg.core.schema.messages import rule_text
from tfrecreg.core.values.codes import SCH020, SCH021
from tfrecreg.core.values.findings import Code


def list_clashes(
    reader: Schema, records: Schema, environment: str | None = None
) -> Iterator[Clash]:
    """How a reader of lists fails on records, or misreads them, as `compat.clashes` has it for
    features of the context.
    """
    ours, theirs = reader.describes_sequences(), records.describes_sequences()
    if not (ours and theirs):
        if ours or theirs:
            kinds = ("SequenceExamples", "Examples") if ours else ("Examples", "SequenceExamples")
            message = f"the reader reads {kinds[0]}, and the records are {kinds[1]}"
            yield Clash("other-message", SCH020, SEQUENCE, message)
        return
    rules = compile_sequences(records, environment)
    found = {each.name: each for each in rules.lists}
    for rule in compile_sequences(reader, environment).lists:
        if rule.kind is not None:
            clash = _clash(rule, found.get(rule.name))
            if clash is not None:
                name, code, asks, may = clash
                yield Clash(
                    f"list-{name}",
                    code,
                    rule.name,
                    f"{rule_text(rule.feature, asks)} for the reader; in the records it {may}",
                )


def _clash(reader: ListRule, records: ListRule | None) -> tuple[str, Code, str, str] | None:
    """Rule, code, what the reader asks and what the records may do; None if all is well."""
    fails = reader.step_shape is not None
    lacking = SCH020 if fails and reader.is_required else SCH021
    if records is None:
        return "absent", lacking, "be there", "is not there, or nothing about it is checked"
    kind = reader.feature.kind
    if records.kind is not reader.kind:
        return "other-type", SCH020, f"be {kind}", f"is {records.feature.kind or 'of any type'}"
    if fails and not _is_exactly(records.values, reader.values):
        asks = "have steps of one length"
        return "other-length", SCH020, asks, "may have steps of another length"
    if reader.is_required and not records.is_required:
        return "optional", lacking, "be in every example", "may be missing"
    if fails and reader.step_shape != records.step_shape:
        asks = "have steps of one shape"
        return "other-shape", SCH021, asks, "has as many values in steps of another shape"
    within = _is_within(records.steps, reader.steps) and _is_within(records.values, reader.values)
    if not within:
        asks = "keep its numbers of steps and of values"
        return "other-counts", SCH021, asks, "may have more or fewer"
    if not values_within(records.feature, reader.feature):
        return "other-values", SCH021, "keep its domain", "may have values outside of it"
    return None


def _is_exactly(inner: ValueCount, outer: ValueCount) -> bool:
    return inner.min == inner.max == outer.min and inner.min is not None


def _is_within(inner: ValueCount, outer: ValueCount) -> bool:
    if (inner.min or 0) < (outer.min or 0):
        return False
    return outer.max is None or (inner.max is not None and inner.max <= outer.max)
