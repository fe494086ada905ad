"""A schema compiled for records: the declarations that apply in one environment.

A compiled schema is picklable and independent of protobuf, so it can be sent to workers. It has the
rules for a single record, and the few figures of a whole split that follow from counting. What
needs statistics (drift, skew, comparators, the vocabulary of a language) is left to TFDV.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tfrecreg.core.schema.definition import (
    Schema,
    SchemaFeature,
    SparseFeature,
    ValueCount,
    WeightedFeature,
)
from tfrecreg.core.schema.environments import environment_options
from tfrecreg.core.values.errors import SchemaError
from tfrecreg.core.values.suggest import did_you_mean, listed
from tfrecreg.core.values.text import safe


@dataclass(frozen=True, kw_only=True)
class CompiledSchema:
    """The rules for a record."""

    features: tuple[SchemaFeature, ...]
    """Features to check, in order of their names."""
    ignored: frozenset[str] = frozenset()
    """Features that may be there, in any form."""
    elsewhere: frozenset[str] = frozenset()
    """Features that the schema has in other environments only."""
    environment: str | None = None
    sparse: tuple[SparseFeature, ...] = ()
    weighted: tuple[WeightedFeature, ...] = ()
    examples: ValueCount = field(default_factory=ValueCount)
    """Number of examples in all splits together."""

    @cached_property
    def by_name(self) -> Mapping[str, SchemaFeature]:
        """The features to check by name."""
        return {feature.name: feature for feature in self.features}


def compile_schema(schema: Schema, environment: str | None = None) -> CompiledSchema:
    """Select the declarations of one environment, or of all."""
    if environment is not None and environment not in schema.environments():
        known = schema.environments()
        raise SchemaError(
            f"the schema `{safe(schema.where)}` has no environment `{safe(environment)}`"
            + did_you_mean(environment, known),
            hint=f"its environments: {listed(known)}",
        )
    checked: dict[str, SchemaFeature] = {}
    ignored: set[str] = set()
    elsewhere: set[str] = set()
    for feature in schema.features:
        if feature.is_ignored:
            ignored.add(feature.name)
        elif belongs(feature, schema, environment):
            checked[feature.name] = feature
        else:
            elsewhere.add(feature.name)
    return CompiledSchema(
        features=tuple(checked[name] for name in sorted(checked)),
        ignored=frozenset(ignored),
        elsewhere=frozenset(elsewhere),
        environment=environment,
        sparse=tuple(
            each
            for each in schema.sparse
            if not each.is_ignored and checked.keys() >= {*each.indices, each.values}
        ),
        weighted=tuple(
            each
            for each in schema.weighted
            if not each.is_ignored and checked.keys() >= {each.feature, each.weight}
        ),
        examples=schema.examples,
    )


def belongs(feature: SchemaFeature, schema: Schema, environment: str | None) -> bool:
    """Whether a feature is to be in examples of an environment; None for any."""
    if environment is None or environment in feature.in_environment:
        return True
    if environment in feature.not_in_environment:
        return False
    return environment in schema.default_environments


@dataclass(frozen=True, slots=True)
class SplitSchemas:
    """The compiled schema of each split."""

    default: CompiledSchema
    by_split: Mapping[str, CompiledSchema] = field(default_factory=dict)
    """Schemas of the splits that have an environment of their own."""

    def of(self, split: str) -> CompiledSchema:
        """The schema of one split."""
        return self.by_split.get(split, self.default)


def compile_split_schemas(schema: Schema, options: Mapping[str, Any]) -> SplitSchemas:
    """Compile a schema for each environment in the options of the validator `schema`."""
    environment, by_split = environment_options("schema", options)
    return SplitSchemas(
        compile_schema(schema, environment),
        {split: compile_schema(schema, each) for split, each in by_split.items()},
    )
