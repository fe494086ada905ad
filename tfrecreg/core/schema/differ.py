"""The difference between two schemas, feature by feature and field by field.

Every field of the text is compared, also those that are never checked (comparators, annotations).
Comments, order and layout are not: two texts that mean the same do not differ.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableSequence
from dataclasses import dataclass
from typing import Any

from tfrecreg.core.schema.definition import Schema
from tfrecreg.core.schema.proto import schema_message

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
            tuple(_text(descriptor, each) for each in value)
            if repeated
            else _text(descriptor, value),
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


def _text(descriptor: Any, value: Any) -> str:
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
