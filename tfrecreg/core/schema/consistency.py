"""Contradictions within a schema. Protobuf's parser does not find such contradictions.

TFDV finds most of them, but only when it validates statistics. It then repairs the schema in memory
and continues. Here they are errors, so no check uses a schema that contradicts itself. If the life
cycle stage of a feature excludes it from validation, only its name must be valid.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tfrecreg.core.schema.definition import IGNORED_STAGES, FeatureType
from tfrecreg.core.values.text import safe

Contradictions = Iterator[tuple[str, str]]
"""Each item is the name of the feature or domain (empty if it has none) and a message. Only a
schema's first contradiction is reliable, because later ones may follow from it.
"""

_TYPES: dict[int, FeatureType] = {1: "BYTES", 2: "INT", 3: "FLOAT", 4: "STRUCT"}
"""Numbers of the proto's `FeatureType`."""

_TYPES_OF_DOMAIN = {
    "domain": ("BYTES",),
    "int_domain": ("INT", "BYTES"),
    "float_domain": ("FLOAT", "BYTES"),
    "string_domain": ("BYTES",),
    "bool_domain": ("INT", "FLOAT", "BYTES"),
    "struct_domain": ("STRUCT",),
    "natural_language_domain": ("BYTES", "INT"),
    "image_domain": ("BYTES",),
    "mid_domain": ("BYTES",),
    "url_domain": ("BYTES",),
    "time_domain": ("INT", "BYTES"),
    "time_of_day_domain": ("INT", "BYTES"),
}
"""The types that each domain applies to, as in TFDV. Text in a natural language may have the type
INT, because its values may be token ids."""


def type_of(message: Any) -> FeatureType | None:
    """The type of a `Feature` message; None if it is not set."""
    return _TYPES.get(message.type)


def stage_of(message: Any) -> str:
    """The life cycle stage of a `Feature` message; empty if it is not set."""
    if getattr(message, "deprecated", False):  # a weighted feature has no such field
        return "DEPRECATED"
    if not message.HasField("lifecycle_stage"):
        return ""
    stages = message.DESCRIPTOR.fields_by_name["lifecycle_stage"].enum_type.values_by_number
    return str(stages[message.lifecycle_stage].name)


def contradictions(message: Any) -> Contradictions:
    """Yield the contradictions in a whole `Schema` message."""
    domains: dict[str, str] = {}
    for group in ("string_domain", "int_domain", "float_domain"):
        for domain in getattr(message, group):
            subject = f"domain `{safe(domain.name)}`"
            if not domain.name:
                yield "", f"a `{group}` of the schema has no name"
            if domain.name in domains:
                yield domain.name, f"{subject} is defined twice"
            domains[domain.name] = group
            if group != "string_domain":
                yield from _bounds(domain, domain.name, subject)
    features = {feature.name: feature for feature in message.feature}
    declared: dict[str, Any] = {}
    for group in ("feature", "sparse_feature", "weighted_feature"):
        yield from _names(getattr(message, group), group, declared)
    for feature in message.feature:
        yield from _of_feature(feature, domains)
    for sparse in message.sparse_feature:
        yield from _of_sparse(sparse, features)
    for weighted in message.weighted_feature:
        subject = f"weighted feature `{safe(weighted.name)}`"
        for group in ("feature", "weight_feature"):
            name = "/".join(getattr(weighted, group).step)
            yield from _undeclared(name, weighted.name, subject, features)
    names = ("min_examples_count", "max_examples_count")
    yield from _bounds(message.dataset_constraints, "", "the schema", names, is_count=True)


def _names(messages: Iterable[Any], group: str, declared: dict[str, Any]) -> Contradictions:
    """Find messages without a name, and different messages with the same name."""
    for message in messages:
        if not message.HasField("name"):
            yield "", f"a `{group}` has no name"
        first = declared.setdefault(message.name, message)
        if first is not message and first != message:
            yield message.name, f"feature `{safe(message.name)}` has two different declarations"


def _bounds(
    message: Any,
    owner: str,
    subject: str,
    names: tuple[str, str] = ("min", "max"),
    *,
    is_count: bool = False,
) -> Contradictions:
    """Find bounds that are NaN, bounds in the wrong order, and counts with negative bounds."""
    low, high = (getattr(message, name) for name in names)
    for name, bound in zip(names, (low, high), strict=True):
        if math.isnan(bound):
            yield owner, f"{subject} has NaN for its {name}"
        if is_count and bound < 0:
            yield owner, f"{subject} has a negative `{name}`"
    if all(map(message.HasField, names)) and low > high:
        low, high = (f"{each:g}" if isinstance(each, float) else each for each in (low, high))
        yield owner, f"{subject} has `{names[0]}` {low} above `{names[1]}` {high}"


def _undeclared(name: str, owner: str, subject: str, features: Mapping[str, Any]) -> Contradictions:
    if name not in features:
        yield owner, f"{subject} uses the feature `{safe(name)}`, which is not declared"


def _of_sparse(sparse: Any, features: Mapping[str, Any]) -> Contradictions:
    name, subject = sparse.name, f"sparse feature `{safe(sparse.name)}`"
    for index in sparse.index_feature:
        yield from _undeclared(index.name, name, subject, features)
    if sparse.HasField("value_feature"):
        yield from _undeclared(sparse.value_feature.name, name, subject, features)
    if stage_of(sparse) in IGNORED_STAGES:
        return
    if not sparse.index_feature:
        yield name, f"{subject} has no index feature"
    for index in sparse.index_feature:
        kind = type_of(features[index.name])
        if kind not in ("INT", None):
            what = f"has the index `{safe(index.name)}` of type {kind}, expected INT"
            yield name, f"{subject} {what}"
    if not sparse.HasField("value_feature"):
        yield name, f"{subject} has no value feature"
    dimensions, indices = len(sparse.dense_shape.dim), len(sparse.index_feature)
    if sparse.HasField("dense_shape") and dimensions != indices:
        yield name, f"{subject} has {dimensions} dimensions and {indices} indices"


def _of_feature(message: Any, domains: Mapping[str, str]) -> Contradictions:
    """Contradictions in a feature and its members; none if the feature's stage is ignored."""
    if stage_of(message) in IGNORED_STAGES:
        return
    subject = f"feature `{safe(message.name)}`"
    for what in _of_values(message):
        yield message.name, f"{subject} {what}"
    counts = (message.value_count, message.unique_constraints, *message.value_counts.value_count)
    for count in counts:
        yield from _bounds(count, message.name, subject, is_count=True)
    which = message.WhichOneof("domain_info")
    for what in _of_domain(message, which, domains) if which else ():
        yield message.name, f"{subject} {what}"
    if which in ("int_domain", "float_domain"):
        yield from _bounds(getattr(message, which), message.name, subject)
    members = message.struct_domain.feature
    yield from _names(members, "feature", {})
    for member in members:
        yield from _of_feature(member, domains)


def _of_values(message: Any) -> Iterator[str]:
    presence, mass = message.presence, message.distribution_constraints.min_domain_mass
    for name, share in (("min_fraction", presence.min_fraction), ("min_domain_mass", mass)):
        if not 0 <= share <= 1:
            yield f"has the {name} {share:g}, which is not from 0 to 1"
    if presence.min_count < 0:
        yield f"has the min_count {presence.min_count}, which is below 0"
    for dim in message.shape.dim:
        if dim.size < 0:
            yield f"has a dimension of size {dim.size}"
    if both := set(message.in_environment) & set(message.not_in_environment):
        yield f"is included in the environment `{safe(min(both))}` and excluded from it"


def _of_domain(message: Any, which: str, domains: Mapping[str, str]) -> Iterator[str]:
    kind, name = type_of(message), which
    if which == "domain":
        if message.domain not in domains:
            yield f"refers to the domain `{safe(message.domain)}`, which is not defined"
        name = domains[message.domain]
    types = _TYPES_OF_DOMAIN[name]
    if kind is not None and kind not in types:
        yield f"is {kind}, but a `{name}` is for {' or '.join(types)}"
    domain = getattr(message, which)
    if which == "bool_domain":
        given = domain.HasField("true_value") or domain.HasField("false_value")
        if kind == "BYTES" and not given:
            yield "is BYTES, but its `bool_domain` names no strings for true and false"
        if given and domain.true_value == domain.false_value:
            yield "has the same string for true and false"
    elif which in ("time_domain", "time_of_day_domain"):
        form = domain.WhichOneof("format")
        if (kind, form) in (("BYTES", "integer_format"), ("INT", "string_format")):
            yield f"is {kind}, but its `{which}` has `{form}`"
