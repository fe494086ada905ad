"""Compatibility: whether readers made from one version of a schema parse records of another.

A reader parses by the specification of :mod:`tfrecreg.core.schema.compiled`. The records are all
that the other schema allows, whether or not they exist today. Every rule is a row of :data:`RULES`;
`docs/schemas.md` shows them as a table.

- **backward**: today's reader, yesterday's records.
- **forward**: yesterday's reader, today's records.
- **full**: both.

Which readers fail follows TensorFlow's ``example_proto_fast_parsing.cc``; the tests compare every
case with TensorFlow's verdict.

The difference between two schemas, feature by feature and field by field.

Every field of the text is compared, also those that are never checked (comparators, annotations).
Comments, order and layout are not: two texts that mean the same do not differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableSequence
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
from tfrecreg.core.values.findings import Code

Mode = Literal["backward", "forward", "full"]


class _Case(NamedTuple):
    """One feature that a reader asks for."""

    spec: TensorSpec
    reader: SchemaFeature
    """Declaration in the reader's schema."""
    record: SchemaFeature | None
    """Declaration in the records' schema; None if they never have it, or if `unchecked`."""
    unchecked: bool
    """Whether the records' schema ignores it: it may be there, in any form."""


class CompatibilityRule(NamedTuple):
    """One way in which a reader and records do not fit together."""

    name: str
    code: Code
    summary: str
    """Condition of the rule, as a sentence for the table."""
    find: Callable[[_Case], str | None]
    """Returns the message, or None if the rule is kept."""


class Clash(NamedTuple):
    """A rule that a feature breaks."""

    rule: str
    code: Code
    feature: str
    message: str


RULES: list[CompatibilityRule] = []
"""Rules in the order of evaluation; the first that makes a reader fail ends a feature."""


def parse_mode(text: str) -> tuple[Mode, bool]:
    """Parse a mode such as ``full-transitive``: its name, and whether it is transitive."""
    name = text.removesuffix("-transitive")
    for mode in get_args(Mode):
        if name == mode:
            return mode, name != text
    raise ValueError(f"no mode {text!r}: expected one of {get_args(Mode)}")


def clashes(reader: Schema, records: Schema, environment: str | None = None) -> tuple[Clash, ...]:
    """The rules that are broken if a reader made from one schema gets records that keep another."""
    own = compile_schema(reader, environment)
    theirs = compile_schema(records, environment)
    found: list[Clash] = []
    for spec in tensor_specs(reader, environment):
        record = theirs.by_name.get(spec.name)
        if record is not None and record.kind == "STRUCT":
            record = None  # no example can hold one
        unchecked = spec.name in theirs.ignored
        found += _broken_rules(_Case(spec, own.by_name[spec.name], record, unchecked))
    return tuple(found)


def _broken_rules(case: _Case) -> Iterator[Clash]:
    for rule in RULES:
        message = rule.find(case)
        if message is not None:
            yield Clash(rule.name, rule.code, case.spec.name, message)
            if rule.code is SCH020:
                return


_Find = Callable[[_Case], "str | None"]


def _rule(name: str, code: Code, summary: str) -> Callable[[_Find], _Find]:
    def add(find: _Find) -> _Find:
        RULES.append(CompatibilityRule(name, code, summary, find))
        return find

    return add


def _text(case: _Case, asks: str, found: str) -> str:
    return f"{rule_text(case.reader, asks)} for the reader; in the records it {found}"


@_rule("absent", SCH020, "The reader requires it in every example, and the records may lack it")
def _may_lack_it(case: _Case) -> str | None:
    if case.spec.form != "fixed":
        return None
    asks = "be in every example"
    if case.unchecked:
        return _text(case, asks, "may be missing, as nothing about it is checked")
    if case.record is None:
        return _text(case, asks, "is not there")
    return None if case.record.is_required else _text(case, asks, "may be missing")


@_rule(
    "any-type",
    SCH020,
    "The records may have it in any type, as their schema names none or does not check it",
)
def _may_be_of_any_type(case: _Case) -> str | None:
    asks = f"be {case.reader.kind}"
    if case.unchecked:
        return _text(case, asks, "may have any type, as nothing about it is checked")
    if case.record is not None and case.record.kind is None:
        return _text(case, asks, "may have any type")
    return None


@_rule("other-type", SCH020, "The records have it in another type")
def _is_of_another_type(case: _Case) -> str | None:
    kind = None if case.record is None else case.record.kind
    if kind is None or kind == case.reader.kind:
        return None
    return _text(case, f"be {case.reader.kind}", f"is {kind}")


@_rule(
    "other-length",
    SCH020,
    "The reader wants a fixed number of values, and the records may have another",
)
def _may_be_of_another_length(case: _Case) -> str | None:
    record = case.record
    if case.spec.form != "fixed" or record is None:
        return None
    if record.min_values == record.max_values == case.reader.min_values:
        return None
    return _text(case, length_text(case.reader), f"may {length_text(record)}")


@_rule("gone", SCH021, "The reader asks for it where there is any, and the records never have it")
def _is_never_there(case: _Case) -> str | None:
    if case.record is not None or case.unchecked:
        return None
    return _text(case, "be there", "is not, so that the reader always gets it empty")


@_rule(
    "optional",
    SCH021,
    "It was in every example by the reader's schema, and the records may lack it",
)
def _may_be_missing(case: _Case) -> str | None:
    if case.record is None or not case.reader.is_required or case.record.is_required:
        return None
    return _text(case, "be in every example", "may be missing, so that the reader gets it empty")


@_rule("other-shape", SCH021, "As many values, in another shape")
def _is_of_another_shape(case: _Case) -> str | None:
    record = case.record
    if record is None or case.spec.form != "fixed" or record.shape is None:
        return None
    if case.reader.shape is None or record.shape == case.reader.shape:
        return None
    return _text(case, length_text(case.reader), f"should {length_text(record)}")


@_rule(
    "other-counts",
    SCH021,
    "The records may have more or fewer values than the reader's schema allows",
)
def _may_have_other_counts(case: _Case) -> str | None:
    record, reader = case.record, case.reader
    if record is None or case.spec.form == "fixed":
        return None
    high = reader.max_values
    fits = (
        record.min_values >= reader.min_values
        and (high is None or (record.max_values is not None and record.max_values <= high))
        and _divides(reader.multiple_of, record)
    )
    return None if fits else _text(case, length_text(reader), f"may {length_text(record)}")


def _divides(number: int, record: SchemaFeature) -> bool:
    if record.min_values == record.max_values:
        return record.min_values % number == 0
    return record.multiple_of % number == 0


@_rule(
    "other-values", SCH021, "The records may hold values outside the domain of the reader's schema"
)
def _may_have_other_values(case: _Case) -> str | None:
    if case.record is None or values_within(case.record, case.reader):
        return None
    return _text(case, values_text(case.reader), f"may {values_text(case.record)}")


def values_within(inner: SchemaFeature, outer: SchemaFeature) -> bool:
    """Whether `outer` allows every value that `inner` allows. Both have the same kind."""
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
    infinite = inner.disallow_inf is not True and not (_bounded(inner) and not is_text)
    return not (outer.disallow_inf and infinite) and _range_within(inner, outer)


def _bounded(domain: FloatDomain) -> bool:
    return domain.min not in (None, -inf) and domain.max not in (None, inf)


def _range_within(inner: IntDomain | FloatDomain, outer: IntDomain | FloatDomain) -> bool:
    low, high = outer.min, outer.max
    if low is not None and low != -inf and (inner.min is None or inner.min < low):
        return False
    return high is None or high == inf or (inner.max is not None and inner.max <= high)


Value = str | tuple[str, ...]
"""The value of a field; a tuple for a repeated field, in order."""

_NAMED = ("feature", "sparse_feature", "weighted_feature")
_DOMAINS = ("string_domain", "int_domain", "float_domain")


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChange:
    """One field in which two schemas differ."""

    part: str
    """The message that has the field: ``feature``, ``sparse_feature``, ``weighted_feature``, a
    schema-level domain (``string_domain`` …), or ``schema``."""
    name: str
    """Name of that feature or domain; empty for the schema itself."""
    field: str
    """Dotted path: ``int_domain.max``. Empty if only one schema has the feature or domain."""
    expected: Value | None
    """Value in the first schema, None if it is not set."""
    found: Value | None
    """Value in the second schema, None if it is not set."""


def compare_schemas(expected: Schema, found: Schema) -> tuple[SchemaChange, ...]:
    """The fields in which two schemas differ: the schema's own first, then by name."""
    before, after = _parts(expected), _parts(found)
    order = sorted({*before, *after}, key=lambda each: (each[1] != "", each[1], each[0]))
    return tuple(change for part in order for change in _changes(part, before, after))


_Parts = dict[tuple[str, str], dict[str, Value]]


def _changes(part: tuple[str, str], before: _Parts, after: _Parts) -> Iterator[SchemaChange]:
    kind, name = part
    old, new = before.get(part), after.get(part)
    if old is None or new is None:
        yield SchemaChange(
            part=kind,
            name=name,
            field="",
            expected=None if old is None else _summary(old),
            found=None if new is None else _summary(new),
        )
        return
    for field in sorted({*old, *new}):
        if old.get(field) != new.get(field):
            yield SchemaChange(
                part=kind, name=name, field=field, expected=old.get(field), found=new.get(field)
            )


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
    if descriptor.message_type is None:
        yield (
            path,
            tuple(_differ_text(descriptor, each) for each in value)
            if repeated
            else _differ_text(descriptor, value),
        )
    elif descriptor.message_type.GetOptions().map_entry:
        for key in sorted(value):
            yield from _message(value[key], f"{path}[{key}]")
    elif descriptor.name in ("shape", "dense_shape"):
        yield path, _shape(value)
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


def _shape(message: Any) -> str:
    sizes = [str(dim.size) if dim.HasField("size") else "?" for dim in message.dim]
    return " × ".join(sizes) or "scalar"


def _summary(fields: dict[str, Value]) -> tuple[str, ...]:
    """All fields of a feature, as ``field: value``."""
    return tuple(
        f"{field}: {value if isinstance(value, str) else ', '.join(value)}"
        for field, value in fields.items()
    )
