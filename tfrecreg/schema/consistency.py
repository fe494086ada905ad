"""Contradictions in a schema that protobuf's parser does not know.

TFDV finds most of them too, but only while it validates statistics, and then repairs the schema in
memory and goes on. Here they are errors: a schema that contradicts itself never gates anything.
Features that their life cycle stage excludes from validation only need a valid name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from tfrecreg.schema.definition import IGNORED_STAGES, SEQUENCE, FeatureType
from tfrecreg.schema.domain_check import unknown_specifiers
from tfrecreg.schema.pbtxt import FieldPath
from tfrecreg.suggest import did_you_mean
from tfrecreg.text import safe

__all__ = ["Remark", "check_message", "stage_of", "type_of"]

Fail = Callable[[FieldPath, str, str], NoReturn]
"""Raises the error for a field, a message and a hint."""

Remark = tuple[FieldPath, str]
"""A field that is legal and probably a mistake."""

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
"""The types each domain is for, as in TFDV; token ids may also be INT."""


def type_of(message: Any) -> FeatureType | None:
    """The type of a `Feature` message, None if it does not say."""
    return _TYPES.get(message.type)


def stage_of(message: Any) -> str:
    """The life cycle stage of a `Feature` message, empty if it does not say."""
    if getattr(message, "deprecated", False):  # a weighted feature has no such field
        return "DEPRECATED"
    if not message.HasField("lifecycle_stage"):
        return ""
    stages = message.DESCRIPTOR.fields_by_name["lifecycle_stage"].enum_type.values_by_number
    return str(stages[message.lifecycle_stage].name)


def check_message(message: Any, fail: Fail) -> list[Remark]:
    """Check a whole `Schema` message.

    Args:
        message: the protobuf message.
        fail: called for the first contradiction, raises.

    Returns:
        Remarks, in the order of the file.
    """
    domains = _named_domains(message, fail)
    check = _FeatureCheck(domains, fail)
    declared: dict[str, Any] = {}
    for group in ("feature", "sparse_feature", "weighted_feature"):
        check.names(getattr(message, group), (), group, declared)
    for number, feature in enumerate(message.feature):
        check.feature(feature, ("feature", number))
    features = {feature.name: feature for feature in message.feature}
    for number, sparse in enumerate(message.sparse_feature):
        _check_sparse(sparse, ("sparse_feature", number), features, fail)
    for number, weighted in enumerate(message.weighted_feature):
        subject = f"weighted feature `{safe(weighted.name)}`"
        for group in ("feature", "weight_feature"):
            path: FieldPath = ("weighted_feature", number, group, 0)
            _require_declared(
                "/".join(getattr(weighted, group).step), path, subject, features, fail
            )
    names = ("min_examples_count", "max_examples_count")
    place: FieldPath = ("dataset_constraints", 0)
    constraints = message.dataset_constraints
    _check_bounds(constraints, place, "the schema", fail, names=names, count_of="examples")
    return check.remarks


def _named_domains(message: Any, fail: Fail) -> dict[str, str]:
    """The list that each schema-level domain is in, by its name."""
    domains: dict[str, str] = {}
    for group in ("string_domain", "int_domain", "float_domain"):
        for number, domain in enumerate(getattr(message, group)):
            path: FieldPath = (group, number)
            if not domain.name:
                fail(path, f"a `{group}` of the schema has no name", "features refer to it by name")
            subject = f"domain `{safe(domain.name)}`"
            if domain.name in domains:
                fail(path, f"{subject} is defined twice", "rename one of them, or remove it")
            domains[domain.name] = group
            if group != "string_domain":
                _check_bounds(domain, path, subject, fail)
    return domains


def _check_bounds(
    message: Any,
    path: FieldPath,
    subject: str,
    fail: Fail,
    *,
    names: tuple[str, str] = ("min", "max"),
    count_of: str = "",
) -> None:
    """Refuse bounds that are not numbers or the wrong way round, and negative ones of a count."""
    low, high = (getattr(message, name) for name in names)
    for name, bound in zip(names, (low, high), strict=True):
        if math.isnan(bound):
            fail((*path, name, 0), f"{subject} has NaN for its {name}", "give a number")
        if count_of and bound < 0:
            what = f"{subject} has a negative `{name}`"
            fail((*path, name, 0), what, f"it is a number of {count_of}")
    if all(map(message.HasField, names)) and low > high:
        low, high = (f"{each:g}" if isinstance(each, float) else each for each in (low, high))
        what = f"{subject} has `{names[0]}` {low} above `{names[1]}` {high}"
        fail(path, what, "swap the two, or correct one of them")


def _check_sparse(sparse: Any, path: FieldPath, features: Mapping[str, Any], fail: Fail) -> None:
    subject = f"sparse feature `{safe(sparse.name)}`"
    for number, index in enumerate(sparse.index_feature):
        _require_declared(index.name, (*path, "index_feature", number), subject, features, fail)
    if sparse.HasField("value_feature"):
        value = sparse.value_feature.name
        _require_declared(value, (*path, "value_feature", 0), subject, features, fail)
    if stage_of(sparse) in IGNORED_STAGES:
        return
    if not sparse.index_feature:
        fail(path, f"{subject} has no index feature", "name one a dimension: `index_feature`")
    for number, index in enumerate(sparse.index_feature):
        kind = type_of(features[index.name])
        if kind not in ("INT", None):
            fail(
                (*path, "index_feature", number),
                f"{subject} has the index `{safe(index.name)}` of type {kind}, expected INT",
                "indices are whole numbers",
            )
    if not sparse.HasField("value_feature"):
        fail(path, f"{subject} has no value feature", "name it: `value_feature { name: … }`")
    dimensions = len(sparse.dense_shape.dim)
    if sparse.HasField("dense_shape") and dimensions != len(sparse.index_feature):
        fail(
            (*path, "dense_shape", 0),
            f"{subject} has {dimensions} dimensions and {len(sparse.index_feature)} indices",
            "one index feature a dimension",
        )


def _require_declared(
    name: str, path: FieldPath, subject: str, features: Mapping[str, Any], fail: Fail
) -> None:
    if name not in features:
        fail(
            path,
            f"{subject} is made of the feature `{safe(name)}`, which is not declared"
            + did_you_mean(name, features),
            "declare it as a `feature` too: it is what the examples hold",
        )


class _FeatureCheck:
    """Checks `Feature` messages, those inside a `struct_domain` included.

    Args:
        domains: the list that each schema-level domain is in, by its name.
        fail: called for the first contradiction, raises.
    """

    def __init__(self, domains: Mapping[str, str], fail: Fail) -> None:
        self._domains = domains
        self._fail = fail
        self.remarks: list[Remark] = []

    def names(
        self, messages: Iterable[Any], parent: FieldPath, group: str, declared: dict[str, Any]
    ) -> None:
        """Check that each message has a name, and no other declaration has the same."""
        for number, message in enumerate(messages):
            path = (*parent, group, number)
            if not message.HasField("name"):
                hint = "give it the name that it has in the examples"
                self._fail(path, f"a `{group}` has no name", hint)
            first = declared.setdefault(message.name, message)
            if first is message:
                continue
            subject = f"feature `{safe(message.name)}` is declared"
            if first != message:
                hint = "one feature, one declaration: remove or rename one of the two"
                self._fail(path, f"{subject} twice, and differently", hint)
            self.remarks.append((path, f"{subject} again, in the same words"))

    def feature(self, message: Any, path: FieldPath) -> None:
        """Check one feature that is not ignored."""
        if stage_of(message) in IGNORED_STAGES:
            return
        subject = f"feature `{safe(message.name)}`"
        which = message.WhichOneof("domain_info")
        domain = self._domains.get(message.domain) if which == "domain" else which
        if type_of(message) is None:
            is_bytes = domain in ("string_domain", "image_domain")
            taken = "taken for BYTES, as its domain is" if is_bytes else "values of any type pass"
            self.remarks.append((path, f"{subject} has no type: {taken}"))
        self._presence(message, path, subject)
        self._counts(message, path, subject)
        self._environments(message, path, subject)
        if which is not None:
            self._domain(message, which, (*path, which, 0), subject)
        if len(message.value_counts.value_count) > 1 and message.name != SEQUENCE:
            what = "its value counts are not checked, as no example can hold it"
            self.remarks.append(((*path, "value_counts", 0), f"{subject} is nested: {what}"))
        self._domain_mass(message, domain, path, subject)
        self._distinct(message, path, subject)
        if which in ("time_domain", "time_of_day_domain"):
            self._times(message, which, (*path, which, 0), subject)
        if which == "string_domain" and not message.string_domain.value:
            what = f"{subject} has a `string_domain` without values: none passes"
            self.remarks.append(((*path, which, 0), what))
        members = message.struct_domain.feature
        struct = (*path, "struct_domain", 0)
        self.names(members, struct, "feature", {})
        for number, member in enumerate(members):
            self.feature(member, (*struct, "feature", number))

    def _presence(self, message: Any, path: FieldPath, subject: str) -> None:
        fraction, count = message.presence.min_fraction, message.presence.min_count
        if not 0 <= fraction <= 1:
            self._fail(
                (*path, "presence", 0, "min_fraction", 0),
                f"{subject} has the min_fraction {fraction:g}, which is not from 0 to 1",
                "1 is every example; leave it out for a feature that may be missing",
            )
        if count < 0:
            self._fail(
                (*path, "presence", 0, "min_count", 0),
                f"{subject} has the min_count {count}, which is below 0",
                "it is a number of examples",
            )

    def _counts(self, message: Any, path: FieldPath, subject: str) -> None:
        for number, dim in enumerate(message.shape.dim):
            if dim.HasField("size") and dim.size < 0:
                self._fail(
                    (*path, "shape", 0, "dim", number),
                    f"{subject} has a dimension of size {dim.size}",
                    "leave out `size` for a dimension that varies, or use `value_count`",
                )
        counts = [((*path, "value_count", 0), message.value_count)] + [
            ((*path, "value_counts", 0, "value_count", number), count)
            for number, count in enumerate(message.value_counts.value_count)
        ]
        for place, count in counts:
            _check_bounds(count, place, subject, self._fail, count_of="values")

    def _environments(self, message: Any, path: FieldPath, subject: str) -> None:
        both = set(message.in_environment) & set(message.not_in_environment)
        if both:
            self._fail(
                (*path, "not_in_environment", 0),
                f"{subject} is both in and not in the environment `{safe(min(both))}`",
                "remove one of `in_environment` and `not_in_environment`",
            )

    def _domain(self, message: Any, which: str, path: FieldPath, subject: str) -> None:
        kind, domain = type_of(message), which
        if which == "domain":
            if message.domain not in self._domains:
                self._fail(
                    path,
                    f"{subject} refers to the domain `{safe(message.domain)}`, which is not "
                    f"defined{did_you_mean(message.domain, self._domains)}",
                    "define it at the level of the schema: `string_domain { name: … value: … }`",
                )
            domain = self._domains[message.domain]
        allowed = _TYPES_OF_DOMAIN[domain]
        if kind is not None and kind not in allowed:
            self._fail(
                path,
                f"{subject} is {kind}, and a `{domain}` is for {' or '.join(allowed)}",
                "correct the type, or use the domain that fits it",
            )
        if which in ("int_domain", "float_domain"):
            _check_bounds(getattr(message, which), path, subject, self._fail)
        if which == "bool_domain":
            self._bool(message.bool_domain, kind, path, subject)

    def _bool(self, domain: Any, kind: str | None, path: FieldPath, subject: str) -> None:
        given = domain.HasField("true_value") or domain.HasField("false_value")
        if kind == "BYTES" and not given:
            self._fail(
                path,
                f"{subject} is BYTES, and its `bool_domain` names no strings for true and false",
                "add `true_value` and `false_value`",
            )
        if given and domain.true_value == domain.false_value:
            self._fail(
                path,
                f"{subject} has the same string for true and false",
                "correct `true_value` or `false_value`",
            )

    def _domain_mass(self, message: Any, domain: str | None, path: FieldPath, subject: str) -> None:
        if not message.HasField("distribution_constraints"):
            return
        place = (*path, "distribution_constraints", 0)
        mass = message.distribution_constraints.min_domain_mass
        if not 0 <= mass <= 1:
            what = f"{subject} has the min_domain_mass {mass:g}, which is not from 0 to 1"
            self._fail(place, what, "1 is every value")
        if domain != "string_domain":
            what = "`distribution_constraints` is for string domains, and is ignored"
            self.remarks.append((place, f"{subject}: {what}"))

    def _distinct(self, message: Any, path: FieldPath, subject: str) -> None:
        if not message.HasField("unique_constraints"):
            return
        place = (*path, "unique_constraints", 0)
        constraints = message.unique_constraints
        _check_bounds(constraints, place, subject, self._fail, count_of="different values")
        if type_of(message) not in ("INT", "BYTES"):
            what = "`unique_constraints` is for INT and BYTES, and is ignored"
            self.remarks.append((place, f"{subject}: {what}"))

    def _times(self, message: Any, which: str, path: FieldPath, subject: str) -> None:
        domain, kind = getattr(message, which), type_of(message)
        form = domain.WhichOneof("format")
        wanted = {"BYTES": "string_format", "INT": "integer_format"}.get(kind or "")
        if form is not None and wanted is not None and form != wanted:
            what = f"{subject} is {kind}, and its `{which}` has `{form}`"
            self._fail(path, what, f"give it `{wanted}`")
        if unknown := unknown_specifiers(domain.string_format):
            shown = ", ".join(f"`{safe(each)}`" for each in unknown)
            what = f"{subject}: its times are not checked, as {shown} is not known"
            self.remarks.append((path, what))
