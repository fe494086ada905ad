"""Compatibility: whether readers made from one version of a schema parse records of another.

A reader parses by the specification of :mod:`tfrecreg.core.schema.spec`. The records are all that the
other schema allows, whether or not they exist today. Every rule is a row of :data:`RULES`;
`docs/schemas.md` shows them as a table.

- **backward**: today's reader, yesterday's records.
- **forward**: yesterday's reader, today's records.
- **full**: both.

Which readers fail follows TensorFlow's ``example_proto_fast_parsing.cc``; the tests compare every
case with TensorFlow's verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import Literal, NamedTuple, get_args

from tfrecreg.core.schema.compiled import compile_schema
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
from tfrecreg.core.schema.messages import length_text, rule_text, values_text
from tfrecreg.core.schema.spec import TensorSpec, tensor_specs
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
