"""What a schema says of a SequenceExample, in the form that TFX has for it.

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

A step that always has one value is a scalar, one with n values an array of n. A `shape` instead of
`value_counts` is that of a step, and leaves the number of steps open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from tfrecreg.core.example.model import Kind
from tfrecreg.core.schema.compiled import CompiledSchema, belongs, compile_schema
from tfrecreg.core.schema.definition import (
    SEQUENCE,
    Schema,
    SchemaFeature,
    StructDomain,
    ValueCount,
)
from tfrecreg.core.values.errors import SchemaError
from tfrecreg.core.values.text import safe

_KINDS = {"BYTES": Kind.BYTES, "INT": Kind.INT64, "FLOAT": Kind.FLOAT}


@dataclass(frozen=True, kw_only=True)
class ListRule:
    """What a schema says of one list."""

    feature: SchemaFeature
    """Its declaration, for its name, type, presence and domain."""
    steps: ValueCount
    """Bounds of the number of steps."""
    values: ValueCount
    """Bounds of the number of values of a step."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.feature.name

    @property
    def kind(self) -> Kind | None:
        """The kind of each step; None for any."""
        return _KINDS.get(self.feature.kind or "")

    @property
    def is_required(self) -> bool:
        """Whether every record must have it."""
        return self.feature.is_required

    @property
    def step_shape(self) -> tuple[int, ...] | None:
        """The shape that each step has; None if steps differ in length."""
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
    """Lists that may be there, in any form."""

    @cached_property
    def together(self) -> CompiledSchema:
        """Context and lists as features of one schema, for what is judged of whole splits."""
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
                f"{safe(schema.where)}: `{safe(each.name)}` is a feature of the context and a list",
                hint="elements have one value for each name: rename one of them in the records, or "
                "give the list `lifecycle_stage: PLANNED`",
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
        what = "is a STRUCT" if feature.kind == "STRUCT" else "has another number of levels"
        raise SchemaError(
            f"{safe(schema.where)}: the list `{safe(feature.name)}` {what}, a list has steps of "
            "values",
            hint="`value_counts { value_count { min: 1 } value_count { min: 4 max: 4 } }` is one "
            "step or more, of 4 values each",
        )
    if feature.shape is not None:
        return ListRule(
            feature=feature,
            steps=ValueCount(),
            values=ValueCount(feature.min_values, feature.max_values),
        )
    steps, values = levels or (ValueCount(), ValueCount())
    return ListRule(feature=feature, steps=steps, values=values)
