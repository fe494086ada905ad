"""Contradictions in a schema that protobuf's parser does not find.

TFDV finds most of them too, but only while it validates statistics, and then repairs the schema in
memory and goes on. Here they are errors: a schema that contradicts itself never gates anything.
Features that their life cycle stage excludes from validation only need a valid name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from tfrecreg.core.schema.definition import IGNORED_STAGES, FeatureType
from tfrecreg.core.values.text import did_you_mean, safe

Fail = Callable[[str, str, str], NoReturn]
"""Raises the error for the name of a feature or domain (empty without one), a message, a hint."""

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


def check_message(message: Any, fail: Fail) -> None:
    """Check a whole `Schema` message."""
    domains = _check_domains(message, fail)
    features = {feature.name: feature for feature in message.feature}
    declared: dict[str, Any] = {}
    for group in ("feature", "sparse_feature", "weighted_feature"):
        _check_names(getattr(message, group), group, declared, fail)
    for feature in message.feature:
        _FeatureCheck(feature, domains, fail).run()
    for sparse in message.sparse_feature:
        _check_sparse(sparse, features, fail)
    for weighted in message.weighted_feature:
        subject = f"weighted feature `{safe(weighted.name)}`"
        for group in ("feature", "weight_feature"):
            name = "/".join(getattr(weighted, group).step)
            _require_declared(name, weighted.name, subject, features, fail)
    names = ("min_examples_count", "max_examples_count")
    constraints = message.dataset_constraints
    _check_bounds(constraints, "", "the schema", fail, names=names, count_of="examples")


def _check_domains(message: Any, fail: Fail) -> dict[str, str]:
    """Check the schema-level domains; returns the list that each is in, by its name."""
    domains: dict[str, str] = {}
    for group in ("string_domain", "int_domain", "float_domain"):
        for domain in getattr(message, group):
            if not domain.name:
                fail("", f"a `{group}` of the schema has no name", "features refer to it by name")
            subject = f"domain `{safe(domain.name)}`"
            if domain.name in domains:
                fail(domain.name, f"{subject} is defined twice", "rename one of them, or remove it")
            domains[domain.name] = group
            if group != "string_domain":
                _check_bounds(domain, domain.name, subject, fail)
    return domains


def _check_names(messages: Iterable[Any], group: str, declared: dict[str, Any], fail: Fail) -> None:
    """Check that each message has a name, and that no other declaration of it differs."""
    for message in messages:
        if not message.HasField("name"):
            fail("", f"a `{group}` has no name", "give it the name that it has in the examples")
        first = declared.setdefault(message.name, message)
        if first is not message and first != message:
            what = f"feature `{safe(message.name)}` is declared twice, and differently"
            fail(
                message.name, what, "one feature, one declaration: remove or rename one of the two"
            )


def _check_bounds(
    message: Any,
    owner: str,
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
            fail(owner, f"{subject} has NaN for its {name}", "give a number")
        if count_of and bound < 0:
            fail(owner, f"{subject} has a negative `{name}`", f"it is a number of {count_of}")
    if all(map(message.HasField, names)) and low > high:
        low, high = (f"{each:g}" if isinstance(each, float) else each for each in (low, high))
        what = f"{subject} has `{names[0]}` {low} above `{names[1]}` {high}"
        fail(owner, what, "swap the two, or correct one of them")


def _check_sparse(sparse: Any, features: Mapping[str, Any], fail: Fail) -> None:
    subject = f"sparse feature `{safe(sparse.name)}`"
    for index in sparse.index_feature:
        _require_declared(index.name, sparse.name, subject, features, fail)
    if sparse.HasField("value_feature"):
        value = sparse.value_feature.name
        _require_declared(value, sparse.name, subject, features, fail)
    if stage_of(sparse) in IGNORED_STAGES:
        return
    if not sparse.index_feature:
        fail(
            sparse.name, f"{subject} has no index feature", "name one a dimension: `index_feature`"
        )
    for index in sparse.index_feature:
        kind = type_of(features[index.name])
        if kind not in ("INT", None):
            fail(
                sparse.name,
                f"{subject} has the index `{safe(index.name)}` of type {kind}, expected INT",
                "indices are whole numbers",
            )
    if not sparse.HasField("value_feature"):
        fail(sparse.name, f"{subject} has no value feature", "name it: `value_feature { name: … }`")
    dimensions = len(sparse.dense_shape.dim)
    if sparse.HasField("dense_shape") and dimensions != len(sparse.index_feature):
        fail(
            sparse.name,
            f"{subject} has {dimensions} dimensions and {len(sparse.index_feature)} indices",
            "one index feature a dimension",
        )


def _require_declared(
    name: str, owner: str, subject: str, features: Mapping[str, Any], fail: Fail
) -> None:
    if name not in features:
        fail(
            owner,
            f"{subject} is made of the feature `{safe(name)}`, which is not declared"
            + did_you_mean(name, features),
            "declare it as a `feature` too: it is what the examples hold",
        )


class _FeatureCheck:
    """The checks of one `Feature` message."""

    def __init__(self, message: Any, domains: Mapping[str, str], fail: Fail) -> None:
        self._message = message
        self._domains = domains
        self._raise = fail
        self._kind = type_of(message)
        self._subject = f"feature `{safe(message.name)}`"

    def run(self) -> None:
        """Check the feature, and those inside it, unless it is ignored."""
        message = self._message
        if stage_of(message) in IGNORED_STAGES:
            return
        presence = message.presence
        if not 0 <= presence.min_fraction <= 1:
            what = f"has the min_fraction {presence.min_fraction:g}, which is not from 0 to 1"
            hint = "1 is every example; leave it out for a feature that may be missing"
            self._fail(what, hint)
        if presence.min_count < 0:
            what = f"has the min_count {presence.min_count}, which is below 0"
            self._fail(what, "it is a number of examples")
        self._check_counts()
        if both := set(message.in_environment) & set(message.not_in_environment):
            what = f"is both in and not in the environment `{safe(min(both))}`"
            hint = "remove one of `in_environment` and `not_in_environment`"
            self._fail(what, hint)
        if which := message.WhichOneof("domain_info"):
            self._check_domain(which)
        mass = message.distribution_constraints.min_domain_mass
        if message.HasField("distribution_constraints") and not 0 <= mass <= 1:
            what = f"has the min_domain_mass {mass:g}, which is not from 0 to 1"
            self._fail(what, "1 is every value")
        members = message.struct_domain.feature
        _check_names(members, "feature", {}, self._raise)
        for member in members:
            _FeatureCheck(member, self._domains, self._raise).run()

    def _fail(self, what: str, hint: str) -> NoReturn:
        self._raise(self._message.name, f"{self._subject} {what}", hint)

    def _check_counts(self) -> None:
        message = self._message
        for dim in message.shape.dim:
            if dim.HasField("size") and dim.size < 0:
                hint = "leave out `size` for a dimension that varies, or use `value_count`"
                self._fail(f"has a dimension of size {dim.size}", hint)
        counts = [
            (message.value_count, "values"),
            (message.unique_constraints, "different values"),
            *((count, "values") for count in message.value_counts.value_count),
        ]
        for count, noun in counts:
            _check_bounds(count, message.name, self._subject, self._raise, count_of=noun)

    def _check_domain(self, which: str) -> None:
        message, kind, name = self._message, self._kind, which
        if which == "domain":
            if message.domain not in self._domains:
                self._fail(
                    f"refers to the domain `{safe(message.domain)}`, which is not defined"
                    + did_you_mean(message.domain, self._domains),
                    "define it at the level of the schema: `string_domain { name: … value: … }`",
                )
            name = self._domains[message.domain]
        types = _TYPES_OF_DOMAIN[name]
        if kind is not None and kind not in types:
            what = f"is {kind}, and a `{name}` is for {' or '.join(types)}"
            self._fail(what, "correct the type, or use the domain that fits it")
        domain = getattr(message, which)
        if which in ("int_domain", "float_domain"):
            _check_bounds(domain, message.name, self._subject, self._raise)
        elif which == "bool_domain":
            given = domain.HasField("true_value") or domain.HasField("false_value")
            if kind == "BYTES" and not given:
                what = "is BYTES, and its `bool_domain` names no strings for true and false"
                self._fail(what, "add `true_value` and `false_value`")
            if given and domain.true_value == domain.false_value:
                hint = "correct `true_value` or `false_value`"
                self._fail("has the same string for true and false", hint)
        elif which in ("time_domain", "time_of_day_domain"):
            form = domain.WhichOneof("format")
            wanted = {"BYTES": "string_format", "INT": "integer_format"}.get(kind or "", form)
            if form != wanted and form is not None:
                what = f"is {kind}, and its `{which}` has `{form}`"
                self._fail(what, f"give it `{wanted}`")
