"""What a schema may not say: contradictions that protobuf's parser knows nothing of.

TFDV finds most of them too, but only while it validates statistics, and then mends the schema in
memory and goes on. Here they are errors, so that a contract that contradicts itself never gates
anything. Features whose life cycle stage takes them out of validation are held to their names only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from tfrecreg.schema.build import stage_of, type_of
from tfrecreg.schema.composites import Fail, check_bounds, check_composites
from tfrecreg.schema.locate import Path
from tfrecreg.schema.model import IGNORED_STAGES, SEQUENCE
from tfrecreg.schema.times import unknown_specifiers
from tfrecreg.suggest import did_you_mean
from tfrecreg.text import safe

__all__ = ["Fail", "Remark", "check_message"]

Remark = tuple[Path, str]
"""What is legal at a place, and probably not meant."""

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
"""The types a domain is for, as TFDV has it; token ids may be INT besides."""

_NAMED = ("string_domain", "int_domain", "float_domain")
"""The lists of a schema's own domains."""


def check_message(message: Any, fail: Fail) -> Iterator[Remark]:
    """Check a whole `Schema` message.

    Args:
        message: the protobuf message.
        fail: called for the first contradiction, raises.

    Yields:
        Remarks, in the order of the file.
    """
    domains = _named_domains(message, fail)
    declared: dict[str, Any] = {}
    for group in ("feature", "sparse_feature", "weighted_feature"):
        yield from _check_names(getattr(message, group), (), group, declared, fail)
    for number, feature in enumerate(message.feature):
        yield from _check_feature(feature, ("feature", number), domains, fail)
    check_composites(message, fail)


def _named_domains(message: Any, fail: Fail) -> dict[str, str]:
    """Names of the schema's own domains, with the list each is in."""
    domains: dict[str, str] = {}
    for group in _NAMED:
        for number, domain in enumerate(getattr(message, group)):
            path: Path = (group, number)
            if not domain.name:
                fail(path, f"a `{group}` of the schema has no name", "features refer to it by name")
            if domain.name in domains:
                fail(
                    path,
                    f"domain `{safe(domain.name)}` is defined twice",
                    "rename one of them, or remove it",
                )
            domains[domain.name] = group
            if group != "string_domain":
                _check_range(domain, path, f"domain `{safe(domain.name)}`", fail)
    return domains


def _check_names(
    messages: Iterable[Any], prefix: Path, group: str, declared: dict[str, Any], fail: Fail
) -> Iterator[Remark]:
    for number, message in enumerate(messages):
        path = (*prefix, group, number)
        if not message.HasField("name"):
            fail(path, f"a `{group}` has no name", "give it the name that it has in the examples")
        first = declared.setdefault(message.name, message)
        if first is message:
            continue
        if first != message:
            fail(
                path,
                f"feature `{safe(message.name)}` is declared twice, and differently",
                "one feature, one declaration: remove or rename one of the two",
            )
        yield path, f"feature `{safe(message.name)}` is declared again, in the same words"


def _check_feature(
    message: Any, path: Path, domains: dict[str, str], fail: Fail
) -> Iterator[Remark]:
    if stage_of(message) in IGNORED_STAGES:
        return
    subject = f"feature `{safe(message.name)}`"
    which = message.WhichOneof("domain_info")
    if type_of(message) is None:
        named = domains.get(message.domain) if which == "domain" else which
        is_bytes = named in ("string_domain", "image_domain")
        taken = "taken for BYTES, as its domain is" if is_bytes else "values of any type pass"
        yield path, f"{subject} has no type: {taken}"
    _check_presence(message, path, subject, fail)
    _check_counts(message, path, subject, fail)
    _check_environments(message, path, subject, fail)
    if which is not None:
        _check_domain(message, which, (*path, which, 0), subject, domains, fail)
    if len(message.value_counts.value_count) > 1 and message.name != SEQUENCE:
        yield (
            (*path, "value_counts", 0),
            f"{subject} is nested: its value counts are not checked, as no example can hold it",
        )
    yield from _mass(message, which, path, subject, domains, fail)
    yield from _distinct(message, path, subject, fail)
    if which in ("time_domain", "time_of_day_domain"):
        yield from _times(message, which, (*path, which, 0), subject, fail)
    if which == "string_domain" and not message.string_domain.value:
        yield (*path, which, 0), f"{subject} has a `string_domain` without values: none passes"
    children = message.struct_domain.feature
    struct = (*path, "struct_domain", 0)
    yield from _check_names(children, struct, "feature", {}, fail)
    for number, child in enumerate(children):
        yield from _check_feature(child, (*struct, "feature", number), domains, fail)


def _check_presence(message: Any, path: Path, subject: str, fail: Fail) -> None:
    presence = message.presence
    place = (*path, "presence", 0)
    if not 0 <= presence.min_fraction <= 1:
        fail(
            (*place, "min_fraction", 0),
            f"{subject} has the min_fraction {presence.min_fraction:g}, which is not from 0 to 1",
            "1 is every example; leave it out for a feature that may be missing",
        )
    if presence.min_count < 0:
        fail(
            (*place, "min_count", 0),
            f"{subject} has the min_count {presence.min_count}, which is below 0",
            "it is a number of examples",
        )


def _check_counts(message: Any, path: Path, subject: str, fail: Fail) -> None:
    for number, dim in enumerate(message.shape.dim):
        if dim.HasField("size") and dim.size < 0:
            fail(
                (*path, "shape", 0, "dim", number),
                f"{subject} has a dimension of size {dim.size}",
                "leave out `size` for a dimension that varies, or use `value_count`",
            )
    counts = [((*path, "value_count", 0), message.value_count)] + [
        ((*path, "value_counts", 0, "value_count", number), count)
        for number, count in enumerate(message.value_counts.value_count)
    ]
    for place, count in counts:
        if count.min < 0 or count.max < 0:
            fail(place, f"{subject} has a negative value_count", "it is a number of values")
        if count.HasField("max") and count.min > count.max:
            fail(
                place,
                f"{subject} has a value_count with min {count.min} above max {count.max}",
                "swap the two, or correct one of them",
            )


def _check_environments(message: Any, path: Path, subject: str, fail: Fail) -> None:
    both = set(message.in_environment) & set(message.not_in_environment)
    if both:
        fail(
            (*path, "not_in_environment", 0),
            f"{subject} is both in and not in the environment `{safe(min(both))}`",
            "remove one of `in_environment` and `not_in_environment`",
        )


def _check_domain(
    message: Any, which: str, place: Path, subject: str, domains: dict[str, str], fail: Fail
) -> None:
    kind = type_of(message)
    if which == "domain":
        if message.domain not in domains:
            fail(
                place,
                f"{subject} refers to the domain `{safe(message.domain)}`, which is not defined"
                + did_you_mean(message.domain, domains),
                "define it at the level of the schema: `string_domain { name: … value: … }`",
            )
        which = domains[message.domain]
    allowed = _TYPES_OF_DOMAIN[which]
    if kind is not None and kind not in allowed:
        fail(
            place,
            f"{subject} is {kind}, and a `{which}` is for {' or '.join(allowed)}",
            "correct the type, or use the domain that fits it",
        )
    if which in ("int_domain", "float_domain") and place[-2] != "domain":
        _check_range(getattr(message, which), place, subject, fail)
    if which == "bool_domain":
        _check_bool(message.bool_domain, kind, place, subject, fail)


def _check_range(domain: Any, place: Path, subject: str, fail: Fail) -> None:
    for bound in ("min", "max"):
        if math.isnan(getattr(domain, bound)):
            fail((*place, bound, 0), f"{subject} has NaN for its {bound}", "give a number")
    if domain.HasField("min") and domain.HasField("max") and domain.min > domain.max:
        fail(
            place,
            f"{subject} has a domain with min {domain.min:g} above max {domain.max:g}",
            "swap the two, or correct one of them",
        )


def _check_bool(domain: Any, kind: str | None, place: Path, subject: str, fail: Fail) -> None:
    given = domain.HasField("true_value") or domain.HasField("false_value")
    if kind == "BYTES" and not given:
        fail(
            place,
            f"{subject} is BYTES, and its `bool_domain` names no strings for true and false",
            "add `true_value` and `false_value`",
        )
    if given and domain.true_value == domain.false_value:
        fail(
            place,
            f"{subject} has the same string for true and false",
            "correct `true_value` or `false_value`",
        )


def _distinct(message: Any, path: Path, subject: str, fail: Fail) -> Iterator[Remark]:
    if not message.HasField("unique_constraints"):
        return
    place = (*path, "unique_constraints", 0)
    what = "the number of different values"
    check_bounds(message.unique_constraints, "min", "max", place, subject, what, fail)
    if type_of(message) not in ("INT", "BYTES"):
        yield place, f"{subject}: `unique_constraints` is for INT and BYTES, and is ignored"


def _times(message: Any, which: str, place: Path, subject: str, fail: Fail) -> Iterator[Remark]:
    domain = getattr(message, which)
    kind = type_of(message)
    form = domain.WhichOneof("format")
    wanted = {"BYTES": "string_format", "INT": "integer_format"}.get(kind or "")
    if form is not None and wanted is not None and form != wanted:
        fail(place, f"{subject} is {kind}, and its `{which}` has `{form}`", f"give it `{wanted}`")
    if unknown := unknown_specifiers(domain.string_format):
        shown = ", ".join(f"`{safe(each)}`" for each in unknown)
        yield place, f"{subject}: its times are not checked, as {shown} is not known"


def _mass(
    message: Any, which: str | None, path: Path, subject: str, domains: dict[str, str], fail: Fail
) -> Iterator[Remark]:
    if not message.HasField("distribution_constraints"):
        return
    place = (*path, "distribution_constraints", 0)
    mass = message.distribution_constraints.min_domain_mass
    if not 0 <= mass <= 1:
        fail(
            place,
            f"{subject} has the min_domain_mass {mass:g}, which is not from 0 to 1",
            "1 is every value",
        )
    if (domains.get(message.domain) if which == "domain" else which) != "string_domain":
        yield place, f"{subject}: `distribution_constraints` is for string domains, and is ignored"
