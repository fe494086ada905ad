"""From the protobuf message to the plain values of :mod:`tfrecreg.schema.model`.

Nothing is judged here: :mod:`tfrecreg.schema.rules` has done that before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tfrecreg.schema.model import (
    BoolDomain,
    Domain,
    Feature,
    FeatureType,
    FloatDomain,
    ImageDomain,
    IntDomain,
    OtherDomain,
    Presence,
    SparseFeature,
    StringDomain,
    StructDomain,
    TimeDomain,
    ValueCount,
    WeightedFeature,
)

__all__ = [
    "build_examples",
    "build_features",
    "build_sparse",
    "build_weighted",
    "stage_of",
    "type_of",
]

_TYPES: dict[int, FeatureType] = {1: "BYTES", 2: "INT", 3: "FLOAT", 4: "STRUCT"}
"""Numbers of `FeatureType` in the proto."""

CATEGORICAL_YES = 1
"""Of `StringDomain.Categorical` in the proto."""


def build_features(message: Any) -> tuple[Feature, ...]:
    """The features of a `Schema` message, references to its own domains resolved."""
    named: dict[str, Domain] = {}
    for group in ("int_domain", "float_domain", "string_domain"):
        named.update((domain.name, _domain(group, domain)) for domain in getattr(message, group))
    return _features(message.feature, named)


def build_sparse(message: Any) -> tuple[SparseFeature, ...]:
    """The sparse features of a `Schema` message."""
    return tuple(
        SparseFeature(
            name=each.name,
            indices=tuple(index.name for index in each.index_feature),
            values=each.value_feature.name,
            shape=_shape(each.dense_shape) if each.HasField("dense_shape") else None,
            is_sorted=each.is_sorted,
            presence=_presence(each),
            stage=stage_of(each),
        )
        for each in _unique(message.sparse_feature)
    )


def build_weighted(message: Any) -> tuple[WeightedFeature, ...]:
    """The weighted features of a `Schema` message."""
    return tuple(
        WeightedFeature(
            name=each.name,
            # A path of more than one step leads into a STRUCT, where no example has anything.
            feature="/".join(each.feature.step),
            weight="/".join(each.weight_feature.step),
            stage=stage_of(each),
        )
        for each in _unique(message.weighted_feature)
    )


def build_examples(message: Any) -> ValueCount | None:
    """How many examples a `Schema` message wants, None where it does not say."""
    if not message.HasField("dataset_constraints"):
        return None
    constraints = message.dataset_constraints
    low = _given(constraints, "min_examples_count")
    high = _given(constraints, "max_examples_count")
    return None if low is None and high is None else ValueCount(low, high)


def type_of(message: Any) -> FeatureType | None:
    """The type of a `Feature` message, None where it does not say."""
    return _TYPES.get(message.type)


def stage_of(message: Any) -> str:
    """The life cycle stage of a `Feature` message, empty where it does not say."""
    if getattr(message, "deprecated", False):  # a weighted feature has no such field
        return "DEPRECATED"
    if not message.HasField("lifecycle_stage"):
        return ""
    stages = message.DESCRIPTOR.fields_by_name["lifecycle_stage"].enum_type.values_by_number
    return str(stages[message.lifecycle_stage].name)


def _features(messages: Iterable[Any], named: Mapping[str, Domain]) -> tuple[Feature, ...]:
    return tuple(_feature(message, named) for message in _unique(messages))


def _unique(messages: Iterable[Any]) -> Iterable[Any]:
    # What is declared again is declared in the same words: the rules saw to it.
    return {message.name: message for message in messages}.values()


def _feature(message: Any, named: Mapping[str, Domain]) -> Feature:
    nested = len(message.value_counts.value_count) > 1
    which = message.WhichOneof("domain_info")
    domain: Domain | None = None
    if which == "domain":
        domain = named.get(message.domain)
    elif which == "struct_domain":
        domain = StructDomain(_features(message.struct_domain.feature, named))
    elif which is not None:
        domain = _domain(which, getattr(message, which))
    constraints = message.distribution_constraints
    return Feature(
        name=message.name,
        type=type_of(message),
        presence=_presence(message),
        shape=_shape(message.shape) if message.HasField("shape") else None,
        value_count=None if nested else _value_count(message),
        nested=nested,
        domain=domain,
        domain_name=message.domain,
        min_domain_mass=_given(constraints, "min_domain_mass"),
        distinct=_distinct(message) if message.HasField("unique_constraints") else None,
        stage=stage_of(message),
        in_environment=tuple(message.in_environment),
        not_in_environment=tuple(message.not_in_environment),
        tags=tuple(message.annotation.tag),
        comments=tuple(message.annotation.comment),
    )


def _given(message: Any, field: str) -> Any:
    return getattr(message, field) if message.HasField(field) else None


def _presence(message: Any) -> Presence | None:
    if not message.HasField("presence"):
        return None
    presence = message.presence
    return Presence(_given(presence, "min_fraction"), _given(presence, "min_count"))


def _distinct(message: Any) -> ValueCount:
    constraints = message.unique_constraints
    return ValueCount(_given(constraints, "min"), _given(constraints, "max"))


def _shape(message: Any) -> tuple[int | None, ...]:
    return tuple(_given(dim, "size") for dim in message.dim)


def _value_count(message: Any) -> ValueCount | None:
    if message.HasField("value_count"):
        count = message.value_count
    elif message.value_counts.value_count:
        count = message.value_counts.value_count[0]
    else:
        return None
    return ValueCount(_given(count, "min"), _given(count, "max"))


def _domain(kind: str, message: Any) -> Domain:
    if kind == "int_domain":
        return IntDomain(_given(message, "min"), _given(message, "max"), message.is_categorical)
    if kind == "float_domain":
        return FloatDomain(
            _given(message, "min"),
            _given(message, "max"),
            _given(message, "disallow_nan"),
            _given(message, "disallow_inf"),
            # Older releases of tensorflow-metadata do not know this field.
            bool(getattr(message, "is_categorical", False)),
        )
    if kind == "string_domain":
        return StringDomain(tuple(message.value), message.is_categorical == CATEGORICAL_YES)
    if kind == "bool_domain":
        return BoolDomain(_given(message, "true_value"), _given(message, "false_value"))
    if kind == "image_domain":
        return ImageDomain(
            _given(message, "minimum_supported_image_fraction"),
            # Older releases of tensorflow-metadata do not know this field.
            message.max_image_byte_size if _has(message, "max_image_byte_size") else None,
        )
    if kind == "time_domain":
        return TimeDomain("time_domain", message.string_format, _format(message))
    if kind == "time_of_day_domain":
        return TimeDomain("time_of_day_domain", message.string_format, _format(message))
    return OtherDomain(kind)


def _format(message: Any) -> str:
    if not message.HasField("integer_format"):
        return ""
    formats = message.DESCRIPTOR.fields_by_name["integer_format"].enum_type.values_by_number
    return str(formats[message.integer_format].name)


def _has(message: Any, field: str) -> bool:
    return field in message.DESCRIPTOR.fields_by_name and bool(message.HasField(field))
