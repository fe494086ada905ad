"""Whether readers made from one version of a schema parse records of another: the rules.

A reader parses by the specification of :mod:`tfrecreg.schema.spec`. Records are any that the other
schema allows, whether or not there are such today. Every rule is a row of :data:`RULES`;
`docs/schemas.md` shows them as a table.

- **backward**: today's reader, yesterday's records.
- **forward**: yesterday's reader, today's records.
- **full**: both.

Source of what fails: ``example_proto_fast_parsing.cc`` of TensorFlow, whose verdict the tests ask
for in every case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, get_args

from tfrecreg.codes import SCH020, SCH021
from tfrecreg.findings import Code
from tfrecreg.schema.contract import FeatureRule, compile_contract
from tfrecreg.schema.model import Schema
from tfrecreg.schema.spec import TensorSpec, tensor_specs
from tfrecreg.schema.within import values_within
from tfrecreg.schema.wording import rule_text, shape_text, values_text

__all__ = ["RULES", "Clash", "CompatibilityRule", "Mode", "clashes", "parse_mode"]

Mode = Literal["backward", "forward", "full"]

_DTYPES = {"BYTES": "string", "INT": "int64", "FLOAT": "float32"}


class _Case(NamedTuple):
    """One feature that a reader asks for, and what the records say of it."""

    spec: TensorSpec
    reader: FeatureRule
    """What the reader's own schema says of it."""
    record: FeatureRule | None
    """What the records' schema says; None where it says that there is none."""
    free: bool
    """Whether the records' schema leaves it out of validation: anything goes."""


class CompatibilityRule(NamedTuple):
    """One way in which a reader and records do not fit together."""

    name: str
    code: Code
    summary: str
    """When it applies, as a sentence for the table."""
    find: Callable[[_Case], str | None]
    """The message, None where the rule is kept."""


class Clash(NamedTuple):
    """What a rule found."""

    rule: str
    code: Code
    feature: str
    message: str


def parse_mode(text: str) -> tuple[Mode, bool]:
    """The mode that a name as ``full-transitive`` stands for, and whether it is transitive.

    Raises:
        ValueError: it is none.
    """
    name = text.removesuffix("-transitive")
    for mode in get_args(Mode):
        if name == mode:
            return mode, name != text
    raise ValueError(f"no mode {text!r}: expected one of {get_args(Mode)}")


def clashes(reader: Schema, records: Schema, environment: str | None = None) -> tuple[Clash, ...]:
    """What goes wrong where a reader made from one schema gets records that keep another.

    Args:
        reader: the schema that the reader was made from.
        records: the schema that the records keep.
        environment: of both, None for all.

    Returns:
        in order of the features' names. Where a reader fails on a feature, how it would have
        misread it is not told.

    Raises:
        SchemaError: one of the schemas does not name that environment.
    """
    own = compile_contract(reader, environment)
    theirs = compile_contract(records, environment)
    specs = tensor_specs(reader, environment)
    readers = {rule.name: rule for rule in own.features}
    # No example can hold a STRUCT.
    there = {rule.name: rule for rule in theirs.features if rule.kind != "STRUCT"}
    cases = (
        _Case(spec, readers[spec.name], there.get(spec.name), free=spec.name in theirs.ignored)
        for spec in specs
    )
    return tuple(clash for case in cases for clash in _of_feature(case))


def _of_feature(case: _Case) -> Iterator[Clash]:
    for rule in RULES:
        message = rule.find(case)
        if message is not None:
            yield Clash(rule.name, rule.code, case.spec.name, message)
            if rule.code is SCH020:
                return


def _says(case: _Case, asks: str, found: str) -> str:
    return f"{rule_text(case.reader, asks)} for the reader; in the records it {found}"


def _may_lack_it(case: _Case) -> str | None:
    if case.spec.form != "fixed":
        return None
    asks = "be in every example"
    if case.free:
        return _says(case, asks, "may be missing, as nothing about it is checked")
    if case.record is None:
        return _says(case, asks, "is not there")
    return None if case.record.required else _says(case, asks, "may be missing")


def _may_be_of_any_type(case: _Case) -> str | None:
    asks = f"be {case.reader.kind}"
    if case.free:
        return _says(case, asks, "may have any type, as nothing about it is checked")
    if case.record is not None and case.record.kind is None:
        return _says(case, asks, "may have any type")
    return None


def _is_of_another_type(case: _Case) -> str | None:
    kind = None if case.record is None else case.record.kind
    if kind is None or _DTYPES.get(kind) == case.spec.dtype:
        return None
    return _says(case, f"be {case.reader.kind}", f"is {kind}")


def _may_be_of_another_length(case: _Case) -> str | None:
    record = case.record
    if case.spec.form != "fixed" or record is None:
        return None
    if record.min_values == record.max_values == case.reader.min_values:
        return None
    return _says(case, shape_text(case.reader), f"may {shape_text(record)}")


def _is_never_there(case: _Case) -> str | None:
    if case.record is not None or case.free:
        return None
    return _says(case, "be there", "is not, so that the reader always gets it empty")


def _may_be_missing(case: _Case) -> str | None:
    if case.record is None or not case.reader.required or case.record.required:
        return None
    return _says(case, "be in every example", "may be missing, so that the reader gets it empty")


def _is_of_another_shape(case: _Case) -> str | None:
    record = case.record
    if record is None or case.spec.form != "fixed" or record.shape is None:
        return None
    if case.reader.shape is None or record.shape == case.reader.shape:
        return None
    return _says(case, shape_text(case.reader), f"should {shape_text(record)}")


def _may_have_other_counts(case: _Case) -> str | None:
    record, reader = case.record, case.reader
    if record is None or case.spec.form == "fixed":
        return None
    high = reader.max_values
    fits = record.min_values >= reader.min_values
    fits &= high is None or (record.max_values is not None and record.max_values <= high)
    fits &= _divides(reader.multiple_of, record)
    return None if fits else _says(case, shape_text(reader), f"may {shape_text(record)}")


def _divides(number: int, record: FeatureRule) -> bool:
    if record.min_values == record.max_values:
        return record.min_values % number == 0
    return record.multiple_of % number == 0


def _may_have_other_values(case: _Case) -> str | None:
    if case.record is None or values_within(case.record, case.reader):
        return None
    return _says(case, values_text(case.reader), f"may {_held(case.record)}")


def _held(record: FeatureRule) -> str:
    if record.domain is None and not record.is_picture:
        return f"be any {record.kind}"
    if record.is_picture and record.max_bytes is None:
        return "hold pictures of any size"
    return values_text(record)


RULES: tuple[CompatibilityRule, ...] = (
    CompatibilityRule(
        "absent",
        SCH020,
        "The reader wants it in every example, and the records may lack it",
        _may_lack_it,
    ),
    CompatibilityRule(
        "any-type",
        SCH020,
        "The records may have it in any type, as their schema names none or does not check it",
        _may_be_of_any_type,
    ),
    CompatibilityRule(
        "other-type", SCH020, "The records have it in another type", _is_of_another_type
    ),
    CompatibilityRule(
        "other-length",
        SCH020,
        "The reader wants a fixed number of values, and the records may have another",
        _may_be_of_another_length,
    ),
    CompatibilityRule(
        "gone",
        SCH021,
        "The reader asks for it where there is any, and the records never have it",
        _is_never_there,
    ),
    CompatibilityRule(
        "optional",
        SCH021,
        "It was in every example by the reader's schema, and the records may lack it",
        _may_be_missing,
    ),
    CompatibilityRule(
        "other-shape", SCH021, "As many values, in another shape", _is_of_another_shape
    ),
    CompatibilityRule(
        "other-counts",
        SCH021,
        "The records may have more or fewer values than the reader's schema allows",
        _may_have_other_counts,
    ),
    CompatibilityRule(
        "other-values",
        SCH021,
        "The records may hold values outside the domain of the reader's schema",
        _may_have_other_values,
    ),
)
"""In the order in which they are asked; the first that fails a reader ends a feature."""
