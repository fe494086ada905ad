"""The rules that a schema declares for SequenceExamples, in TFX's form.

Features of the context are features of the schema. The lists are in the `struct_domain` of a
feature `##SEQUENCE##` of type STRUCT. There `value_counts` has two levels: the number of steps, and
the number of values of a step::

    feature {
      name: "##SEQUENCE##"
      type: STRUCT
      struct_domain {
        feature {
          name: "rgb"
          type: FLOAT
          presence { min_fraction: 1 }
          value_counts { value_count { min: 1 } value_count { min: 4 max: 4 } }
        }
      }
    }

A step that always has one value is a scalar; a step with n values is an array. A list may have a
`shape` instead of `value_counts`. This is the shape of a step, and any number of steps is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.example.kinds import PayloadKind, SequenceExample, decode_sequence, kind_of
from tfrecreg.core.example.model import (
    DELIMITED,
    DeclaredFeature,
    Example,
    Feature,
    NotAnExampleError,
    fields,
)
from tfrecreg.core.schema.check import KIND_NAMES
from tfrecreg.core.schema.compiled import CompiledSchema, belongs, compile_schema
from tfrecreg.core.schema.definition import (
    SEQUENCE,
    Schema,
    SchemaFeature,
    StructDomain,
    ValueCount,
)
from tfrecreg.core.schema.infer import (
    SchemaSketch,
    SeenFeature,
    block,
    quoted,
    share_text,
    type_comments,
    value_comments,
    value_domain,
)
from tfrecreg.core.values.errors import SchemaError
from tfrecreg.core.values.text import count


@dataclass(frozen=True, kw_only=True)
class ListRule:
    """The rule of a schema for one list."""

    feature: SchemaFeature
    """Declares the name, type, presence and domain of the list."""
    steps: ValueCount
    values: ValueCount
    """Number of values per step."""

    @property
    def step_shape(self) -> tuple[int, ...] | None:
        """The shape that each step has; None if steps may differ in length."""
        shape = self.feature.shape
        if shape is not None:
            return None if None in shape else tuple(each for each in shape if each is not None)
        if self.values.min is None or self.values.min != self.values.max:
            return None
        return () if self.values.min == 1 else (self.values.min,)


@dataclass(frozen=True, kw_only=True)
class SequenceRules:
    """The rules for a record. Picklable."""

    context: CompiledSchema
    """The rules for the context."""
    lists: tuple[ListRule, ...]
    """The lists to check and to read, in order of their names."""
    ignored: frozenset[str] = frozenset()
    """Lists that may be present in any form."""

    @cached_property
    def together(self) -> CompiledSchema:
        """One schema with the context and the lists as features, for rules on whole splits."""
        features = (*self.context.features, *(each.feature for each in self.lists))
        return replace(self.context, features=tuple(sorted(features, key=lambda each: each.name)))


def compile_sequences(schema: Schema, environment: str | None = None) -> SequenceRules:
    """The rules of a schema that describes SequenceExamples."""
    (struct,) = (each for each in schema.features if each.name == SEQUENCE)
    others = tuple(each for each in schema.features if each is not struct)
    context = compile_schema(replace(schema, features=others), environment)
    members = struct.domain.features if isinstance(struct.domain, StructDomain) else ()
    context_names = {each.name for each in others}
    for each in members:
        if each.name in context_names and not each.is_ignored:
            raise SchemaError(
                f"{schema.where}: a context feature and a list both have the name `{each.name}`; "
                "only a list with `lifecycle_stage: PLANNED` may share a name with a feature"
            )
    return SequenceRules(
        context=context,
        lists=tuple(
            _rule(schema, each)
            for each in sorted(members, key=lambda each: each.name)
            if not each.is_ignored and belongs(each, schema, environment)
        ),
        ignored=frozenset(each.name for each in members if each.is_ignored),
    )


def _rule(schema: Schema, feature: SchemaFeature) -> ListRule:
    levels = feature.levels
    if feature.kind == "STRUCT" or feature.value_count is not None or len(levels) > 2:
        raise SchemaError(
            f"{schema.where}: the list `{feature.name}` should have two levels: first the number "
            "of steps, then the number of values in each step; for example "
            "`value_counts { value_count { min: 1 } value_count { min: 4 max: 4 } }`"
        )
    steps, values = levels or (ValueCount(), ValueCount())
    if feature.shape is not None:
        steps, values = ValueCount(), ValueCount(feature.min_values, feature.max_values)
    return ListRule(feature=feature, steps=steps, values=values)


_LISTS = (2, DELIMITED)
_DEPTH = 100


def read_sequence(payload: bytes) -> SequenceExample | None:
    """`payload` as a SequenceExample, with or without lists; None for anything else.

    An Example is accepted, because it has the same bytes as a SequenceExample without lists.
    """
    found = decode_sequence(payload)
    if found is not None:
        return found
    example = decode_or_none(payload)
    kind = kind_of(payload, 0, len(payload), example)
    if kind is not PayloadKind.EXAMPLE or has_lists_field(payload):
        return None
    return SequenceExample(example or {}, {})


def has_lists_field(payload: bytes) -> bool:
    """True if a message is damaged or has the field for lists. An Example ignores that field."""
    try:
        return any(tag == _LISTS for tag, _, _ in fields(payload, 0, len(payload), _DEPTH))
    except NotAnExampleError:
        return True


def common_names(sequence: SequenceExample) -> list[str]:
    """Names that are both in the context and among the lists, sorted."""
    return sorted(sequence.context.keys() & sequence.lists.keys())


_MAX_LISTS = 10_000
"""Maximum number of lists to keep. Their names come from the data, so there may be very many."""


@dataclass(slots=True)
class SeenList:
    """A small summary of one list's steps. Such summaries can be merged in any order."""

    records: int = 0
    """Number of records that have it."""
    fewest: int | None = None
    """Number of steps per record that has the list."""
    most: int = 0
    values: SeenFeature = field(default_factory=SeenFeature)
    """Each step counts as an example."""

    def add(self, steps: Sequence[Feature]) -> None:
        """Add the steps of one more record."""
        self.merge(SeenList(1, len(steps), len(steps)))
        for step in steps:
            self.values.add(step)

    def merge(self, other: SeenList) -> None:
        """Add the steps of another part."""
        if other.fewest is not None:
            self.records += other.records
            self.fewest = min(other.fewest, other.fewest if self.fewest is None else self.fewest)
            self.most = max(self.most, other.most)
        self.values.merge(other.values)


class PayloadSketch:
    """A small summary of payloads, to draft a schema from. Make one per shard, then merge."""

    def __init__(self) -> None:
        self.examples = SchemaSketch()
        """Sketch of the Examples. It counts all other records as `others`."""
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
            if sequence is None:
                return
            self._contexts.add(sequence.context)
            for name, steps in sequence.lists.items():
                seen = self._list(name)
                if seen is not None:
                    seen.add(steps)

    def merge(self, other: PayloadSketch) -> None:
        """Add the records of another part."""
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
        """The draft, as text for :func:`tfrecreg.core.schema.proto.parse_schema`."""
        if kind is PayloadKind.EXAMPLE:
            return self.examples.render(dataset, declared)
        contexts = SchemaSketch()
        contexts.merge(self._contexts)
        contexts.merge(self.examples)
        contexts.others = self.examples.others - self._contexts.examples
        contexts.empty = 0  # a context may be empty
        return contexts.render(dataset, declared, list(self._draft(contexts)))

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
        yield "# Lists. `value_counts` has the number of steps, then the number of values per step."
        if self._too_many:
            yield f"# Left out: all lists after the first {_MAX_LISTS}."
        struct = block("struct_domain", *lists)
        yield from block("feature", f"name: {quoted(SEQUENCE)}", "type: STRUCT", *struct)


def _draft_list(name: str, seen: SeenList, records: int, *, is_common: bool) -> Iterator[str]:
    usual = seen.values.most_frequent()
    if is_common or usual is None:
        if is_common:
            yield "# Not checked, because a feature of the context has the same name."
        else:
            share = share_text(seen.records, records)
            yield f"# {share}, never with a value, so its type is not known"
        yield from block("feature", f"name: {quoted(name)}", "lifecycle_stage: PLANNED")
        return
    values = seen.values.kinds[usual]
    yield from type_comments(seen.values, "list", "steps")
    if seen.records < records:
        yield f"# {share_text(seen.records, records)}"
    if seen.fewest != seen.most:
        yield f"# {seen.fewest} to {count(seen.most, 'step')}"
    yield from value_comments(values, "a step")
    body = [f"name: {quoted(name)}", f"type: {KIND_NAMES[usual]}"]
    if seen.records == records:
        body += block("presence", "min_fraction: 1", "min_count: 1")
    steps = _bounds(seen.fewest or 0, seen.most, may_fix=seen.records > 1)
    inner = _bounds(0 if seen.values.unset else values.fewest or 0, values.most, may_fix=True)
    body += block("value_counts", *steps, *inner)
    yield from block("feature", *body, *value_domain(name, usual, values))


def _bounds(fewest: int, most: int, may_fix: bool) -> list[str]:
    """The lines for one level of `value_counts`."""
    if fewest == most and most and may_fix:
        return block("value_count", f"min: {most}", f"max: {most}")
    return block("value_count", f"min: {min(fewest, 1)}")
