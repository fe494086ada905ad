"""Checks whether the reader for one version of a schema can parse records of another version.

A reader parses with the specification from :mod:`tfrecreg.core.schema.compiled`. The check covers
every record that the schema of the records allows. `docs/schemas.md` has the modes and the rules,
which follow TensorFlow's ``example_proto_fast_parsing.cc``.

The module also compares two schemas field by field, including fields that are never checked
(comparators, annotations). It ignores comments, order and layout.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableSequence
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, NamedTuple, get_args

from tfrecreg.core.schema.check import length_text, rule_text, values_text
from tfrecreg.core.schema.compiled import TensorSpec, compile_schema, tensor_specs
from tfrecreg.core.schema.definition import (
    BoolDomain,
    FloatDomain,
    ImageDomain,
    IntDomain,
    Schema,
    SchemaFeature,
    StringDomain,
    TimeDomain,
    ValueDomain,
)
from tfrecreg.core.schema.proto import schema_message
from tfrecreg.core.values.codes import SCH020, SCH021
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.findings import Code

Mode = Literal["backward", "forward", "full"]


class Clash(NamedTuple):
    """A rule that a feature breaks."""

    rule: str
    code: Code
    feature: str
    message: str


RULES = {
    **dict.fromkeys(("absent", "any-type", "other-type", "other-length"), SCH020),
    **dict.fromkeys(("gone", "optional", "other-shape", "other-counts", "other-values"), SCH021),
}
"""Rules in the order in which they are checked. If a feature breaks a rule that makes a reader fail
(SCH020), the rules after it are not checked for that feature."""


def parse_mode(text: str) -> tuple[Mode, bool]:
    """Split a mode such as ``full-transitive`` into its name and whether it is transitive."""
    name = text.removesuffix("-transitive")
    for mode in get_args(Mode):
        if name == mode:
            return mode, name != text
    raise UsageError(f"`mode` should be `backward`, `forward` or `full`, found `{text}`")


def clashes(reader: Schema, records: Schema, environment: str | None = None) -> tuple[Clash, ...]:
    """Find each rule of the schema `reader` that a record of the schema `records` can break."""
    own = compile_schema(reader, environment)
    theirs = compile_schema(records, environment)
    found: list[Clash] = []
    for spec in tensor_specs(reader, environment):
        asked, record = own.by_name[spec.name], theirs.by_name.get(spec.name)
        if record is not None and record.kind == "STRUCT":
            record = None  # no example can hold a STRUCT
        unchecked = spec.name in theirs.ignored
        for rule, asks, there in _broken_rules(spec, asked, record, unchecked):
            code = RULES[rule]
            text = f"{rule_text(asked, asks)} for the reader; in the records it {there}"
            found.append(Clash(rule, code, spec.name, text))
            if code is SCH020:
                break
    return tuple(found)


def _broken_rules(
    spec: TensorSpec, reader: SchemaFeature, record: SchemaFeature | None, unchecked: bool
) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each broken rule, what the reader requires and what the records have.

    If no record has the feature, `record` is None. If `unchecked` is true, the feature may have any
    form, and `record` is None as well.
    """
    fixed, always, kind = spec.form == "fixed", "be in every example", f"be {reader.kind}"
    if fixed and unchecked:
        yield "absent", always, "may be missing, because nothing about it is checked"
    elif fixed and record is None:
        yield "absent", always, "is missing"
    elif fixed and record is not None and not record.is_required:
        yield "absent", always, "may be missing"
    if unchecked:
        yield "any-type", kind, "may have any type, because nothing about it is checked"
        return
    if record is None:
        yield "gone", "be there", "is missing, so the reader always gets it empty"
        return
    if record.kind is None:
        yield "any-type", kind, "may have any type"
    elif record.kind != reader.kind:
        yield "other-type", kind, f"is {record.kind}"
    lengths, theirs = length_text(reader), length_text(record)
    if fixed and not record.min_values == record.max_values == reader.min_values:
        yield "other-length", lengths, f"may {theirs}"
    if reader.is_required and not record.is_required:
        yield "optional", always, "may be missing, so the reader gets it empty"
    if fixed and None not in (record.shape, reader.shape) and record.shape != reader.shape:
        yield "other-shape", lengths, f"should {theirs}"
    if not fixed and not _counts_within(record, reader):
        yield "other-counts", lengths, f"may {theirs}"
    if not _values_within(record, reader):
        yield "other-values", values_text(reader), f"may {values_text(record)}"


def _counts_within(inner: SchemaFeature, outer: SchemaFeature) -> bool:
    """Whether `outer` allows each value count that `inner` allows."""
    high, number = outer.max_values, outer.multiple_of
    fixed = inner.min_values == inner.max_values
    return (
        inner.min_values >= outer.min_values
        and (high is None or (inner.max_values is not None and inner.max_values <= high))
        and (inner.min_values if fixed else inner.multiple_of) % number == 0
    )


def _values_within(inner: SchemaFeature, outer: SchemaFeature) -> bool:
    """Whether `outer` allows each value that `inner` allows. Expects features of the same kind."""
    mine, domain = inner.checked_domain, outer.checked_domain
    is_text = outer.kind == "BYTES"
    if isinstance(domain, ImageDomain):
        limit = domain.max_bytes
        return isinstance(mine, ImageDomain) and (
            limit is None or (mine.max_bytes is not None and mine.max_bytes <= limit)
        )
    if domain is None:
        return True
    if inner.domain_mass < outer.domain_mass:
        return False
    if isinstance(domain, StringDomain) or (isinstance(domain, BoolDomain) and is_text):
        return isinstance(mine, (StringDomain, BoolDomain)) and mine.allowed <= domain.allowed
    if isinstance(domain, TimeDomain):
        unchecked = not domain.string_format and domain.integer_format != "PACKED_64_NANOS"
        return mine == domain or unchecked
    if isinstance(domain, BoolDomain):
        both = isinstance(mine, BoolDomain)
        return both or (isinstance(mine, IntDomain) and _range_within(mine, IntDomain(0, 1)))
    if isinstance(mine, BoolDomain) and not is_text:
        return _range_within(IntDomain(0, 1), domain)
    if isinstance(domain, FloatDomain):
        return _floats_within(mine, domain, is_text)
    if not is_text and domain.min is None and domain.max is None:
        return True
    return isinstance(mine, IntDomain) and _range_within(mine, domain)


def _floats_within(inner: ValueDomain | None, outer: FloatDomain, is_text: bool) -> bool:
    if is_text and isinstance(inner, IntDomain):
        return _range_within(inner, outer)
    if not isinstance(inner, FloatDomain):
        return False
    if outer.disallow_nan and not inner.disallow_nan:
        return False
    bounded = inner.min not in (None, -inf) and inner.max not in (None, inf)
    infinite = inner.disallow_inf is not True and not (bounded and not is_text)
    return not (outer.disallow_inf and infinite) and _range_within(inner, outer)


def _range_within(inner: IntDomain | FloatDomain, outer: IntDomain | FloatDomain) -> bool:
    low, high = outer.min, outer.max
    if low is not None and low != -inf and (inner.min is None or inner.min < low):
        return False
    return high is None or high == inf or (inner.max is not None and inner.max <= high)


Value = str | tuple[str, ...]
"""The value of a field. For a repeated field, it is the tuple of its values in order."""

_NAMED = ("feature", "sparse_feature", "weighted_feature")
_DOMAINS = ("string_domain", "int_domain", "float_domain")


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One field in which two schemas differ."""

    part: str
    """The message that has the field: ``feature``, ``sparse_feature``, ``weighted_feature``, a
    schema-level domain (``string_domain`` …), or ``schema``."""
    name: str
    """Name of the feature or domain; empty for the schema itself."""
    field: str
    """Dotted path: ``int_domain.max``. Empty if only one schema has the feature or domain."""
    expected: Value | None
    """Value in the first schema; None if it is not set."""
    found: Value | None
    """Value in the second schema; None if it is not set."""


def compare_schemas(expected: Schema, found: Schema) -> tuple[SchemaChange, ...]:
    """The fields that differ between two schemas. The schema's own fields come first, then the
    fields of its parts, in order of the parts' names.
    """
    before, after = _parts(expected), _parts(found)
    order = sorted({*before, *after}, key=lambda each: (each[1] != "", each[1], each[0]))
    return tuple(change for part in order for change in _changes(part, before, after))


_Parts = dict[tuple[str, str], dict[str, Value]]


def _changes(part: tuple[str, str], before: _Parts, after: _Parts) -> Iterator[SchemaChange]:
    kind, name = part
    old, new = before.get(part), after.get(part)
    if old is None or new is None:
        expected, found = (None if each is None else _summary(each) for each in (old, new))
        yield SchemaChange(kind, name, "", expected, found)
        return
    for field in sorted({*old, *new}):
        if old.get(field) != new.get(field):
            yield SchemaChange(kind, name, field, old.get(field), new.get(field))


def _parts(schema: Schema) -> _Parts:
    message = schema_message(schema)
    parts: _Parts = {("schema", ""): {}}
    for descriptor, value in message.ListFields():
        if descriptor.name in (*_NAMED, *_DOMAINS):
            for each in value:
                parts[descriptor.name, each.name] = dict(_fields(each, "", skip="name"))
        else:
            parts["schema", ""].update(_field(descriptor, value, ""))
    return parts


def _fields(message: Any, prefix: str, skip: str = "") -> Iterator[tuple[str, Value]]:
    for descriptor, value in message.ListFields():
        if descriptor.name != skip:
            yield from _field(descriptor, value, prefix)


def _field(descriptor: Any, value: Any, prefix: str) -> Iterator[tuple[str, Value]]:
    path = f"{prefix}{descriptor.name}"
    repeated = isinstance(value, MutableSequence)
    if descriptor.message_type is None and repeated:
        yield path, tuple(_differ_text(descriptor, each) for each in value)
    elif descriptor.message_type is None:
        yield path, _differ_text(descriptor, value)
    elif descriptor.message_type.GetOptions().map_entry:
        for key in sorted(value):
            yield from _message(value[key], f"{path}[{key}]")
    elif descriptor.name in ("shape", "dense_shape"):
        sizes = [str(dim.size) if dim.HasField("size") else "?" for dim in value.dim]
        yield path, " × ".join(sizes) or "scalar"
    elif not repeated:
        yield from _message(value, path)
    else:
        for number, each in enumerate(value):
            # Members of a struct have names, levels of a nested list have numbers.
            key = each.name if descriptor.name in _NAMED else str(number)
            yield from _message(each, f"{path}[{key}]")


def _message(message: Any, path: str) -> Iterator[tuple[str, Value]]:
    fields = list(_fields(message, f"{path}."))
    yield from fields or [(path, "there")]


def _differ_text(descriptor: Any, value: Any) -> str:
    if descriptor.enum_type is not None:
        return str(descriptor.enum_type.values_by_number[value].name)
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _summary(fields: dict[str, Value]) -> tuple[str, ...]:
    """All fields of a feature, as ``field: value``."""
    return tuple(
        f"{field}: {value if isinstance(value, str) else ', '.join(value)}"
        for field, value in fields.items()
    )
