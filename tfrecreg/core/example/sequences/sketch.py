"""Drafts of a schema from payloads of either kind: Examples or SequenceExamples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tfrecreg.core.example.declared import DeclaredFeature
from tfrecreg.core.example.kinds import PayloadKind, SequenceExample, decode_sequence
from tfrecreg.core.example.model import Example, Feature
from tfrecreg.core.schema.definition import SEQUENCE
from tfrecreg.core.schema.infer import (
    SchemaSketch,
    SeenFeature,
    block,
    quoted,
    share_text,
    value_domain,
)
from tfrecreg.core.schema.messages import KIND_NAMES
from tfrecreg.core.values.text import count, safe

_MAX_LISTS = 10_000
"""Maximum number of lists to keep: their names come from the data."""


@dataclass(slots=True)
class SeenList:
    """The steps of one list. Small and mergeable, in any order."""

    records: int = 0
    """Number of records that have it."""
    fewest: int | None = None
    """Fewest steps in a record that has it."""
    most: int = 0
    """Most steps."""
    values: SeenFeature = field(default_factory=SeenFeature)
    """The values, each step for an example."""

    def add(self, steps: Sequence[Feature]) -> None:
        """Add the steps of one more record."""
        self._count(1, len(steps), len(steps))
        for step in steps:
            self.values.add(step)

    def merge(self, other: SeenList) -> None:
        """Add the steps seen elsewhere."""
        if other.fewest is not None:
            self._count(other.records, other.fewest, other.most)
        self.values.merge(other.values)

    def _count(self, records: int, fewest: int, most: int) -> None:
        self.records += records
        self.fewest = fewest if self.fewest is None else min(self.fewest, fewest)
        self.most = max(self.most, most)


class PayloadSketch:
    """A summary of the payloads of a dataset, and the draft that follows from it.

    Picklable and mergeable: make one per shard, then merge them. Its size is bounded.
    """

    def __init__(self) -> None:
        self.examples = SchemaSketch()
        """Of the Examples; all other records are counted as others."""
        self._contexts = SchemaSketch()
        self._lists: dict[str, SeenList] = {}
        self._too_many = False

    @property
    def has_names(self) -> bool:
        """Whether there is anything to draft a schema from."""
        return bool(self.examples.names or self._contexts.names or self._lists)

    def add(self, payload: bytes, kind: PayloadKind, example: Example | None) -> None:
        """Add one more record."""
        self.examples.add(example if kind is PayloadKind.EXAMPLE else None)
        if kind is PayloadKind.SEQUENCE_EXAMPLE:
            sequence = decode_sequence(payload)
            if sequence is not None:
                self._add(sequence)

    def merge(self, other: PayloadSketch) -> None:
        """Add the records seen elsewhere."""
        self.examples.merge(other.examples)
        self._contexts.merge(other._contexts)
        self._too_many |= other._too_many
        for name, theirs in other._lists.items():
            seen = self._list(name)
            if seen is not None:
                seen.merge(theirs)

    def render(
        self,
        dataset: str,
        kind: PayloadKind,
        declared: Mapping[str, DeclaredFeature] | None = None,
    ) -> str:
        """The draft, as text that :func:`tfrecreg.core.schema.proto.parse_schema` takes."""
        if kind is PayloadKind.EXAMPLE:
            return self.examples.render(dataset, declared)
        contexts = SchemaSketch()
        contexts.merge(self._contexts)
        contexts.merge(self.examples)
        contexts.others = self.examples.others - self._contexts.examples
        contexts.empty = 0  # a context may well be empty
        return contexts.render(dataset, declared, list(self._draft(contexts)))

    def _add(self, sequence: SequenceExample) -> None:
        self._contexts.add(sequence.context)
        for name, steps in sequence.lists.items():
            seen = self._list(name)
            if seen is not None:
                seen.add(steps)

    def _list(self, name: str) -> SeenList | None:
        if name not in self._lists and len(self._lists) >= _MAX_LISTS:
            self._too_many = True
            return None
        return self._lists.setdefault(name, SeenList())

    def _draft(self, contexts: SchemaSketch) -> Iterator[str]:
        lists: list[str] = []
        for name in sorted(self._lists):
            is_common = name in contexts.names
            lists += _draft_list(name, self._lists[name], contexts.examples, is_common=is_common)
        yield ""
        yield "# The lists. `value_counts` has the number of steps, then of values in a step."
        if self._too_many:
            yield f"# Left out: all lists after the first {_MAX_LISTS}."
        struct = block("struct_domain", *lists)
        yield from block("feature", f"name: {quoted(SEQUENCE)}", "type: STRUCT", *struct)


def _draft_list(name: str, seen: SeenList, records: int, *, is_common: bool) -> Iterator[str]:
    try:
        shown = quoted(name)
    except UnicodeEncodeError:
        yield f"# Left out: `{safe(name)}`, a name that is not UTF-8."
        return
    usual = seen.values.most_frequent()
    if is_common or usual is None:
        if is_common:
            yield "# Not checked: the name is in the context, too."
        else:
            share = share_text(seen.records, records)
            yield f"# {share}, never with a value, so its type is not known"
        yield from block("feature", f"name: {shown}", "lifecycle_stage: PLANNED")
        return
    values = seen.values.kinds[usual]
    if len(seen.values.kinds) > 1:
        types = ", ".join(
            f"{KIND_NAMES[kind]} in {seen.values.kinds[kind].examples}"
            for kind in sorted(seen.values.kinds)
        )
        yield f"# two types, of which a list can have one: {types} steps"
    if seen.records < records:
        yield f"# {share_text(seen.records, records)}"
    if seen.fewest != seen.most:
        yield f"# {seen.fewest} to {count(seen.most, 'step')}"
    if values.fewest != values.most:
        yield f"# {values.fewest} to {count(values.most, 'value')} in a step"
    if not_finite := values.nan + values.infinite:
        yield f"# {not_finite} of {count(values.values, 'value')} NaN or infinite"
    body = [f"name: {shown}", f"type: {KIND_NAMES[usual]}"]
    if seen.records == records:
        body += block("presence", "min_fraction: 1", "min_count: 1")
    steps = _bounds(seen.fewest or 0, seen.most, may_fix=seen.records > 1)
    inner = _bounds(0 if seen.values.unset else values.fewest or 0, values.most, may_fix=True)
    body += block("value_counts", *steps, *inner)
    yield from block("feature", *body, *value_domain(name, usual, values))


def _bounds(fewest: int, most: int, may_fix: bool) -> list[str]:
    """The lines of one level."""
    if fewest == most and most and may_fix:
        return block("value_count", f"min: {most}", f"max: {most}")
    return block("value_count", f"min: {min(fewest, 1)}")
