"""Parses and prints schemas in protobuf's text form. Imports protobuf only when it is used.

The text is a `tensorflow.metadata.v0.Schema`, as in the files ``schema.pbtxt`` of TFX, TFDV and
TFDS. Its message classes come from the package `tensorflow-metadata`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from io import StringIO
from typing import Any

from tfrecreg.core.schema.consistency import contradictions, stage_of, type_of
from tfrecreg.core.schema.definition import (
    BoolDomain,
    Domain,
    FloatDomain,
    ImageDomain,
    IntDomain,
    OtherDomain,
    Schema,
    SchemaFeature,
    SparseFeature,
    StringDomain,
    StructDomain,
    TimeDomain,
    ValueCount,
    WeightedFeature,
)
from tfrecreg.core.values.errors import SchemaError

_MAX_CHARACTERS, _MAX_MESSAGES = 4 << 20, 50_000
"""Maximum number of characters and of messages (opening braces) in a schema. Protobuf reads a
million characters per second, and a feature has one to five messages."""
_CATEGORICAL_YES = 1
"""Value of the proto's `StringDomain.Categorical`."""

_STRING = r"""(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
_PRINTED = re.compile(rf"^(?P<block>\w+) {{\n  name: {_STRING}$", re.MULTILINE)
"""A named message of the schema, as protobuf prints it."""
_MARK = re.compile(
    rf"(?P<name>\bname\s*:\s*)?{_STRING}|(?P<block>\w*)\s*:?\s*[{{<]"
    r"|(?P<close>[}>])|(?P<comment>#.*)"
)


def parse_schema(text: str | bytes, where: str = "schema") -> Schema:
    """Parse a schema and make sure that it does not contradict itself.

    Args:
        text: the file's text, or its bytes, which must be UTF-8.

    Raises:
        SchemaError: it does not parse, or contradicts itself: ``where:line: what``.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise SchemaError(f"{where}: {error}") from None
    return _parsed(text, where)


@lru_cache(maxsize=4)  # every validator asks for the schema of its target
def _parsed(text: str, where: str) -> Schema:
    if len(text) > _MAX_CHARACTERS or text.count("{") + text.count("<") > _MAX_MESSAGES:
        most = f"{_MAX_CHARACTERS:,} characters and {_MAX_MESSAGES:,} messages"
        raise SchemaError(f"{where}: the schema has more than {most}")
    message = _parse(text, where)
    for name, what in contradictions(message):
        found = re.search(rf"""\bname\s*:\s*["']{re.escape(name)}["']""", text)
        line = f":{text.count(chr(10), 0, found.start()) + 1}" if found is not None else ""
        raise SchemaError(f"{where}{line}: {what}")
    constraints = message.dataset_constraints
    named = {
        domain.name: _domain(group, domain)
        for group in ("int_domain", "float_domain", "string_domain")
        for domain in getattr(message, group)
    }
    return Schema(
        text=text,
        where=where,
        features=_features(message.feature, named),
        sparse=tuple(
            SparseFeature(
                name=each.name,
                indices=tuple(index.name for index in each.index_feature),
                values=each.value_feature.name,
                shape=_shape(each.dense_shape) if each.HasField("dense_shape") else None,
                is_sorted=each.is_sorted,
                min_fraction=each.presence.min_fraction,
                min_count=each.presence.min_count,
                stage=stage_of(each),
            )
            for each in _unique(message.sparse_feature)
        ),
        weighted=tuple(
            WeightedFeature(
                name=each.name,
                # A path of several steps leads into a STRUCT, which no example has.
                feature="/".join(each.feature.step),
                weight="/".join(each.weight_feature.step),
                stage=stage_of(each),
            )
            for each in _unique(message.weighted_feature)
        ),
        examples=_bounds(constraints, "min_examples_count", "max_examples_count"),
        default_environments=tuple(message.default_environment),
        ragged=bool(_given(message, "represent_variable_length_as_ragged")),
    )


def render_schema(schema: Schema) -> str:
    """Print a schema as protobuf does. Schemas with the same meaning give the same text.

    Comments and layout are lost; fields that :class:`Schema` leaves out are kept.
    """
    return canonical_text(schema_message(schema), "")


def canonical_text(message: Any, before: str) -> str:
    """The text that protobuf prints for a message, with comments copied from an earlier text.

    It keeps comments at the head and the end of the text, above a feature or domain, and on the
    line of its name. Other comments inside a feature or domain are lost.
    """
    text_format = importlib.import_module("google.protobuf.text_format")
    head, comments, end = _comments(before.removeprefix("\ufeff"))

    def commented(match: re.Match[str]) -> str:
        above, behind = comments.pop((match["block"], _unquoted(match["string"])), ("", ""))
        return f"{above}{match[0]}{behind}"

    printed = text_format.MessageToString(message, as_utf8=True)
    return head + _PRINTED.sub(commented, printed) + end


def _comments(text: str) -> tuple[str, dict[tuple[str, str], tuple[str, str]], str]:
    """The comments of a schema's text: at its head, at each named block, and at its end."""
    comments: dict[tuple[str, str], tuple[str, str]] = {}
    head: str | None = None
    above = before_block = block = ""
    depth = 0
    for line in StringIO(text.replace("\r\n", "\n")):
        if not line.strip() or line.lstrip().startswith("#"):
            above += line
            continue
        if head is None:
            head, above = above, ""
        named = ""
        for mark in _MARK.finditer(line):
            if mark["block"] is not None:
                if not depth:
                    block, before_block = mark["block"], above
                depth += 1
            elif mark["close"]:
                depth -= 1
            elif mark["name"] and depth == 1:
                named = _unquoted(mark["string"])
                comments[block, named] = before_block, ""
            elif mark["comment"] and (block, named) in comments:
                comments[block, named] = before_block, f"  {mark[0].rstrip()}"
        above = ""
    return ("", comments, above) if head is None else (head, comments, above)


def _unquoted(string: str) -> str:
    text_encoding = importlib.import_module("google.protobuf.text_encoding")
    return str(text_encoding.CUnescape(string[1:-1]).decode("utf-8", "replace"))


def schema_message(schema: Schema) -> Any:
    """The protobuf message of a schema. Each call makes a new message."""
    return _parse(schema.text, schema.where)


def _parse(text: str, where: str) -> Any:
    text_format = importlib.import_module("google.protobuf.text_format")
    # Merlin keeps a `Struct` in the metadata of annotations; unpacking it needs its descriptor.
    importlib.import_module("google.protobuf.struct_pb2")
    schema_pb2 = importlib.import_module("tensorflow_metadata.proto.v0.schema_pb2")
    try:
        return text_format.Parse(text.removeprefix("\ufeff"), schema_pb2.Schema())
    except text_format.ParseError as error:
        line, column = error.GetLine(), error.GetColumn()
        # protobuf puts the position, and often the whole line, in front of its message.
        what = re.sub(r"^\d+:\d+ : ('.*': )?", "", str(error), flags=re.DOTALL).rstrip(".")
        place = where if line is None else f"{where}:{line}:{column}"
        raise SchemaError(f"{place}: {what}") from None
    except RecursionError:
        raise SchemaError(f"{where}: messages are nested too deeply to be a schema") from None


# From the message to plain values. The message was checked before.


def _given(message: Any, field: str) -> Any:
    """Value of an optional field, None if it is not set."""
    try:
        return getattr(message, field) if message.HasField(field) else None
    except ValueError:  # older releases of tensorflow-metadata do not know the field
        return None


def _bounds(message: Any, low: str = "min", high: str = "max") -> ValueCount:
    return ValueCount(_given(message, low), _given(message, high))


def _unique(messages: Iterable[Any]) -> Iterable[Any]:
    # The checks ensure that a second declaration of a name has the same content.
    return {message.name: message for message in messages}.values()


def _features(messages: Iterable[Any], named: Mapping[str, Domain]) -> tuple[SchemaFeature, ...]:
    return tuple(_feature(message, named) for message in _unique(messages))


def _feature(message: Any, named: Mapping[str, Domain]) -> SchemaFeature:
    which = message.WhichOneof("domain_info")
    domain: Domain | None = None
    if which == "domain":
        domain = named.get(message.domain)
    elif which == "struct_domain":
        domain = StructDomain(_features(message.struct_domain.feature, named))
    elif which is not None:
        domain = _domain(which, getattr(message, which))
    kind = type_of(message)
    levels = message.value_counts.value_count
    count = levels[0] if levels else message.value_count
    has_count = len(levels) == 1 or message.HasField("value_count")
    counts_distinct = kind in ("INT", "BYTES") and message.HasField("unique_constraints")
    return SchemaFeature(
        name=message.name,
        type=kind,
        min_fraction=message.presence.min_fraction,
        min_count=message.presence.min_count,
        shape=_shape(message.shape) if message.HasField("shape") else None,
        value_count=_bounds(count) if has_count else None,
        levels=tuple(map(_bounds, levels)) if len(levels) > 1 else (),
        domain=domain,
        domain_name=message.domain,
        min_domain_mass=_given(message.distribution_constraints, "min_domain_mass"),
        distinct=_bounds(message.unique_constraints) if counts_distinct else None,
        stage=stage_of(message),
        in_environment=tuple(message.in_environment),
        not_in_environment=tuple(message.not_in_environment),
        tags=tuple(message.annotation.tag),
        comments=tuple(message.annotation.comment),
    )


def _shape(message: Any) -> tuple[int | None, ...]:
    return tuple(_given(dim, "size") for dim in message.dim)


def _domain(kind: str, message: Any) -> Domain:
    if kind == "int_domain":
        return IntDomain(_given(message, "min"), _given(message, "max"), message.is_categorical)
    if kind == "float_domain":
        return FloatDomain(
            _given(message, "min"),
            _given(message, "max"),
            _given(message, "disallow_nan"),
            _given(message, "disallow_inf"),
            bool(_given(message, "is_categorical")),
        )
    if kind == "string_domain":
        return StringDomain(tuple(message.value), message.is_categorical == _CATEGORICAL_YES)
    if kind == "bool_domain":
        return BoolDomain(_given(message, "true_value"), _given(message, "false_value"))
    if kind == "image_domain":
        return ImageDomain(
            _given(message, "minimum_supported_image_fraction"),
            _given(message, "max_image_byte_size"),
        )
    if kind in ("time_domain", "time_of_day_domain"):
        unit = ""
        if message.HasField("integer_format"):
            formats = message.DESCRIPTOR.fields_by_name["integer_format"].enum_type
            unit = formats.values_by_number[message.integer_format].name
        return TimeDomain(kind, message.string_format, unit)
    return OtherDomain(kind)
