"""The compiled form of a schema: what a single record has to be.

A contract is picklable and knows nothing of protobuf, so it travels to workers as it is. It holds
what can be told of one record, and the few figures of a whole split that follow from counting
(`min_fraction`, `min_count`, `min_domain_mass`, `unique_constraints`, `dataset_constraints`). What
needs statistics (drift, skew, comparators, the vocabulary of a language) is TFDV's.

Where the schema leaves a choice, this one was made:

- **Required** is a feature with ``presence.min_fraction`` 1. A fraction below 1 and `min_count` are
  about the examples of a split, and are checked when it has been read.
- A **shape** says how many values there are where the feature is there; it does not make the
  feature required. (TFDV wants a feature with a shape to be in every example.)
- A feature whose **kind is not set** is missing; an **empty list** is there, with no value. TFDV
  and `tf.io.parse_example` see it so too.
- In an **environment** the features it excludes are unexpected, as in TFDV. Without one, every
  feature belongs.
- The **stages** PLANNED, ALPHA, DEPRECATED, DISABLED, DEBUG_ONLY and VALIDATION_DERIVED take a
  feature out: whether it is there and what it holds does not matter.
- **NaN and infinity**: where the float domain says `disallow_nan` or `disallow_inf`, that and only
  that is an error. Where it says neither, both are reported as warnings: training on them goes
  wrong in silence. ``disallow_nan: false`` and ``disallow_inf: false`` allow them.
- A **sparse feature** that is in an example at all is there with all its parts, with an index a
  value, each within `dense_shape`. A **weighted feature** has a weight a value. Either belongs to
  an environment where all its parts do.
- **Different values** (`unique_constraints`) are counted over a split, **examples**
  (`dataset_constraints`) over all of them.
- A feature of the type **STRUCT** can be in no example: one that is required is always missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tfrecreg.errors import SchemaError
from tfrecreg.schema.model import (
    BoolDomain,
    Feature,
    FeatureType,
    FloatDomain,
    ImageDomain,
    IntDomain,
    Presence,
    Schema,
    SparseFeature,
    StringDomain,
    TimeDomain,
    ValueCount,
)
from tfrecreg.suggest import did_you_mean, listed
from tfrecreg.text import safe

__all__ = [
    "Contract",
    "FeatureRule",
    "SparseRule",
    "ValueDomain",
    "WeightRule",
    "compile_contract",
    "in_environment",
]

ValueDomain = IntDomain | FloatDomain | BoolDomain | TimeDomain | frozenset[bytes]
"""What values are checked against, one by one; a frozenset holds all that are allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureRule:
    """What one feature has to be."""

    name: str
    kind: FeatureType | None
    """None for any; STRUCT for one that no example can hold."""
    required: bool = False
    """Whether it has to be in every example."""
    min_fraction: float = 0.0
    """Of the examples of a split."""
    min_count: int = 0
    """Examples of a split."""
    shape: tuple[int | None, ...] | None = None
    """None for a dimension that varies."""
    min_values: int = 0
    max_values: int | None = None
    """None for no limit. With a fixed shape both bounds are the product of its sizes."""
    multiple_of: int = 1
    """The number of values is a multiple of it: what a shape with one varying dimension asks."""
    domain: ValueDomain | None = None
    min_domain_mass: float = 1.0
    """The least fraction of the values of a split that are in the domain."""
    is_picture: bool = False
    """Its values are encoded pictures, which are never looked into."""
    max_bytes: int | None = None
    """Of a picture."""
    distinct: ValueCount | None = None
    """How many different values a split has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseRule:
    """What the parts of a sparse feature have to be to each other."""

    name: str
    indices: tuple[str, ...]
    values: str
    sizes: tuple[int | None, ...]
    """Of each dimension, None for one that has no bound."""
    is_sorted: bool
    required: bool = False
    min_fraction: float = 0.0
    min_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightRule:
    """A feature and the feature of its weights."""

    name: str
    values: str
    weights: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What a record has to be."""

    features: tuple[FeatureRule, ...]
    """In order of their names."""
    ignored: frozenset[str] = frozenset()
    """Features that may be there, in any form."""
    elsewhere: frozenset[str] = frozenset()
    """Features that the schema has in other environments only."""
    environment: str | None = None
    sparse: tuple[SparseRule, ...] = ()
    weights: tuple[WeightRule, ...] = ()
    examples: ValueCount | None = None
    """How many examples there are in all splits together."""


def compile_contract(schema: Schema, environment: str | None = None) -> Contract:
    """The contract that `schema` makes for records, in one environment or in all of them.

    Raises:
        SchemaError: the schema does not name that environment.
    """
    if environment is not None and environment not in schema.environments():
        known = schema.environments()
        raise SchemaError(
            f"the schema `{safe(schema.where)}` has no environment `{safe(environment)}`"
            + did_you_mean(environment, known),
            hint=f"its environments: {listed(known)}",
        )
    rules: list[FeatureRule] = []
    elsewhere: set[str] = set()
    for feature in schema.features:
        if feature.is_ignored:
            continue
        if in_environment(feature, schema, environment):
            rules.append(_rule(feature))
        else:
            elsewhere.add(feature.name)
    checked = {rule.name for rule in rules}
    return Contract(
        features=tuple(sorted(rules, key=lambda rule: rule.name)),
        sparse=tuple(
            _sparse_rule(each)
            for each in schema.sparse
            if not each.is_ignored and checked.issuperset((*each.indices, each.values))
        ),
        weights=tuple(
            WeightRule(name=each.name, values=each.feature, weights=each.weight)
            for each in schema.weighted
            if not each.is_ignored and checked.issuperset((each.feature, each.weight))
        ),
        examples=schema.examples,
        ignored=frozenset(feature.name for feature in schema.features if feature.is_ignored),
        elsewhere=frozenset(elsewhere),
        environment=environment,
    )


def in_environment(feature: Feature, schema: Schema, environment: str | None) -> bool:
    """Whether `feature` belongs to `environment`; without one, every feature belongs."""
    if environment is None or environment in feature.in_environment:
        return True
    if environment in feature.not_in_environment:
        return False
    return environment in schema.default_environments


def _rule(feature: Feature) -> FeatureRule:
    low, high, multiple = _counts(feature)
    domain = feature.domain
    return FeatureRule(
        name=feature.name,
        kind=feature.type or _implied_kind(feature),
        required=feature.is_required,
        min_fraction=_least(feature).min_fraction or 0.0,
        min_count=_least(feature).min_count or 0,
        shape=feature.shape,
        min_values=low,
        max_values=high,
        multiple_of=multiple,
        domain=_domain(feature),
        min_domain_mass=_mass(feature),
        is_picture=feature.is_picture,
        max_bytes=domain.max_bytes if isinstance(domain, ImageDomain) else None,
        distinct=feature.distinct if feature.type in ("INT", "BYTES") else None,
    )


def _least(feature: Feature | SparseFeature) -> Presence:
    return feature.presence or Presence()


def _sparse_rule(sparse: SparseFeature) -> SparseRule:
    least = _least(sparse)
    return SparseRule(
        name=sparse.name,
        indices=sparse.indices,
        values=sparse.values,
        sizes=sparse.shape or (None,) * len(sparse.indices),
        is_sorted=sparse.is_sorted,
        required=least.min_fraction == 1,
        min_fraction=least.min_fraction or 0.0,
        min_count=least.min_count or 0,
    )


def _counts(feature: Feature) -> tuple[int, int | None, int]:
    if feature.shape is not None:
        known = prod(size for size in feature.shape if size is not None)
        if None not in feature.shape or known == 0:
            return known, known, 1
        return 0, None, known
    count = feature.value_count
    if count is None:
        return 0, None, 1
    return count.min or 0, count.max, 1


def _implied_kind(feature: Feature) -> FeatureType | None:
    # Of the other domains a feature may be INT or FLOAT and BYTES alike.
    return "BYTES" if isinstance(feature.domain, (StringDomain, ImageDomain)) else None


def _mass(feature: Feature) -> float:
    # As in TFDV, the constraint means something for strings only.
    if feature.min_domain_mass is None or not isinstance(feature.domain, StringDomain):
        return 1.0
    return feature.min_domain_mass


def _domain(feature: Feature) -> ValueDomain | None:
    domain = feature.domain
    if isinstance(domain, StringDomain):
        return frozenset(value.encode() for value in domain.values)
    if isinstance(domain, (IntDomain, FloatDomain, BoolDomain, TimeDomain)):
        return domain if feature.type is not None else None
    # Without a domain floats are still looked at: not being finite is worth a warning.
    return FloatDomain() if feature.type == "FLOAT" else None
