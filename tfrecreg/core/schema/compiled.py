"""A compiled schema: the declarations of a schema that apply in one environment.

It is picklable and independent of protobuf. It has the rules for single records. For splits, it has
the rules that need only counts. TFDV checks the rules that need statistics (drift, skew,
comparators, the vocabulary of a language).

The module also renders a schema as JSON and as a specification for `tf.io.parse_example`. In
that specification, a feature is left out if the type of its values is unknown or STRUCT, or if its
life cycle stage or the environment excludes it. Any other feature is:

- a `FixedLenFeature` if every example has it and its number of values is fixed, either by a shape
  of known sizes or by a value count whose `min` equals its `max`;
- else a `RaggedFeature` if the schema has `represent_variable_length_as_ragged`;
- else a `VarLenFeature` (a sparse tensor).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import isfinite
from typing import Any, Literal

from tfrecreg.core.schema.definition import (
    BoolDomain,
    Domain,
    FloatDomain,
    ImageDomain,
    IntDomain,
    Schema,
    SchemaFeature,
    SparseFeature,
    StringDomain,
    StructDomain,
    ValueCount,
    WeightedFeature,
)
from tfrecreg.core.values.config import EnvironmentOptions, read_limits
from tfrecreg.core.values.errors import SchemaError
from tfrecreg.core.values.text import listed


@dataclass(frozen=True, kw_only=True)
class CompiledSchema:
    """The rules for a record."""

    features: tuple[SchemaFeature, ...]
    """Features to check, in order of their names."""
    ignored: frozenset[str] = frozenset()
    """Features that are not checked, so they may have any form."""
    elsewhere: frozenset[str] = frozenset()
    """Features that belong only to other environments."""
    environment: str | None = None
    sparse: tuple[SparseFeature, ...] = ()
    weighted: tuple[WeightedFeature, ...] = ()
    examples: ValueCount = field(default_factory=ValueCount)
    """Number of examples in all splits together."""

    @cached_property
    def by_name(self) -> Mapping[str, SchemaFeature]:
        """Maps the name of each feature to check to the feature."""
        return {feature.name: feature for feature in self.features}


def compile_schema(schema: Schema, environment: str | None = None) -> CompiledSchema:
    """Select the declarations of one environment, or of all environments."""
    if environment is not None and environment not in schema.environments():
        known = listed(schema.environments())
        raise SchemaError(
            f"the schema `{schema.where}` has no environment `{environment}`, only {known}"
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
    """Whether a feature belongs to `environment`. If `environment` is None, the result is True."""
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
    found = read_limits(EnvironmentOptions, options, "schema")
    return SplitSchemas(
        compile_schema(schema, found.environment),
        {split: compile_schema(schema, each) for split, each in found.environments.items()},
    )


_DTYPES: dict[str, Literal["string", "int64", "float32"]] = {
    "BYTES": "string",
    "INT": "int64",
    "FLOAT": "float32",
}

_FORMS = {"fixed": "FixedLenFeature", "varlen": "VarLenFeature", "ragged": "RaggedFeature"}

_KINDS: dict[type[Domain], str] = {
    IntDomain: "int",
    FloatDomain: "float",
    StringDomain: "string",
    BoolDomain: "bool",
    ImageDomain: "image",
}


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Parsing rule of a feature."""

    name: str
    form: Literal["fixed", "varlen", "ragged"]
    dtype: Literal["string", "int64", "float32"]
    """TensorFlow's name."""
    shape: tuple[int, ...] = ()
    """The shape of a fixed form; ``()`` is a scalar. The shape has no meaning for other forms."""


def tensor_specs(schema: Schema, environment: str | None = None) -> tuple[TensorSpec, ...]:
    """The specifications of a schema's features, in order of their names."""
    specs: list[TensorSpec] = []
    for feature in compile_schema(schema, environment).features:
        dtype = _DTYPES.get(feature.kind or "")
        if dtype is None:
            continue
        shape = feature.tensor_shape
        if feature.is_required and shape is not None and None not in shape:
            sizes = tuple(size for size in shape if size is not None)
            specs.append(TensorSpec(feature.name, "fixed", dtype, sizes))
        else:
            specs.append(TensorSpec(feature.name, "ragged" if schema.ragged else "varlen", dtype))
    return tuple(specs)


def tf_source(schema: Schema) -> str:
    """Python source that defines ``FEATURES``, for `tf.io.parse_example`.

    The source needs ``import tensorflow as tf`` before it.
    """
    lines = []
    for spec in tensor_specs(schema):
        shape = f"{list(spec.shape)}, " if spec.form == "fixed" else ""
        lines.append(f"    {spec.name!a}: tf.io.{_FORMS[spec.form]}({shape}tf.{spec.dtype}),\n")
    return f"FEATURES = {{\n{''.join(lines)}}}\n" if lines else "FEATURES = {}\n"


def schema_json(schema: Schema) -> dict[str, Any]:
    """The schema for a JSON document. It has the features by name, in the schema's order.

    Fields that are not set have no entry. The `kind` of a domain is ``int``, ``float``, ``string``,
    ``bool``, ``image``, ``struct``, or another domain's name (``url``, ``time`` …). Bounds that
    JSON cannot express as numbers are strings, for example ``"inf"``.
    """
    document: dict[str, Any] = {
        "features": {feature.name: _feature(feature) for feature in schema.features}
    }
    if schema.default_environments:
        document["default_environments"] = list(schema.default_environments)
    if schema.ragged:
        document["represent_variable_length_as_ragged"] = True
    return document


def _feature(feature: SchemaFeature) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": feature.type, "required": feature.is_required}
    presence = {"min_fraction": feature.min_fraction, "min_count": feature.min_count}
    if any(presence.values()):
        entry["presence"] = {name: least for name, least in presence.items() if least}
    if feature.value_count is not None:
        entry["value_count"] = _known(asdict(feature.value_count))
    if feature.shape is not None:
        entry["shape"] = list(feature.shape)
    if feature.domain is not None:
        entry["domain"] = _domain(feature.domain, feature.domain_name)
    if feature.min_domain_mass is not None:
        entry["min_domain_mass"] = feature.min_domain_mass
    marks = {"picture": feature.is_image, "label": feature.is_label, "stage": feature.stage}
    entry |= {name: value for name, value in marks.items() if value}
    for name in ("in_environment", "not_in_environment", "tags", "comments"):
        if values := getattr(feature, name):
            entry[name] = list(values)
    return entry


def _domain(domain: Domain, name: str) -> dict[str, Any]:
    if isinstance(domain, StructDomain):
        members = {feature.name: _feature(feature) for feature in domain.features}
        return {"kind": "struct", "features": members}
    found = _known(asdict(domain))
    kind = found.pop("name", _KINDS.get(type(domain), ""))
    named = {"name": name} if name else {}
    return {"kind": kind.removesuffix("_domain"), **named, **found}


_UNSET_IF_EMPTY = ("is_categorical", "string_format", "integer_format")
"""Fields that a schema does not set if their value is empty or False."""


def _known(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields that are set. Numbers that JSON cannot represent become strings."""
    known: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, tuple):
            known[name] = list(value)
        elif isinstance(value, float) and not isfinite(value):
            known[name] = str(value)
        elif value is not None and (value or name not in _UNSET_IF_EMPTY):
            known[name] = value
    return known
