"""The text form of a schema: the one place that knows protobuf, which is imported when it is used.

The text is that of `tensorflow.metadata.v0.Schema`, as TFX, TFDV and TFDS keep it in files named
``schema.pbtxt``. The message classes come from the package `tensorflow-metadata`; TensorFlow is
not needed.
"""

from __future__ import annotations

import importlib
import re
from functools import lru_cache
from importlib import metadata
from typing import Any, NoReturn

from tfrecreg.errors import SchemaError
from tfrecreg.schema.build import (
    build_examples,
    build_features,
    build_sparse,
    build_weighted,
)
from tfrecreg.schema.locate import Path, Places
from tfrecreg.schema.model import Schema
from tfrecreg.schema.rules import check_message
from tfrecreg.text import safe

__all__ = ["parse_schema", "render_schema", "schema_message"]

_MOST_CHARACTERS = 4 << 20
"""Of a schema's text: protobuf reads about one million a second, in a dozen steps a value."""
_MOST_MESSAGES = 50_000
"""Braces in it: a feature has one to five."""


def parse_schema(text: str | bytes, where: str = "schema") -> Schema:
    """Parse a schema and make sure that it does not contradict itself.

    Args:
        text: the file's text, or its bytes, which have to be UTF-8.
        where: the file's name, for messages.

    Raises:
        SchemaError: it does not parse, or contradicts itself: ``where:line:column: what``.
    """
    return _parsed(_decode(text, where) if isinstance(text, bytes) else text, where)


@lru_cache(maxsize=4)  # every validator asks for the schema of its target
def _parsed(text: str, where: str) -> Schema:
    message = _parse(text, where)
    places = Places(text)

    def fail(path: Path, what: str, hint: str) -> NoReturn:
        line, column = places.of(path)
        raise SchemaError(f"{safe(where)}:{line}:{column}: {what}", hint=hint)

    remarks = tuple(
        f"{safe(where)}:{places.of(path).line}: {what}"
        for path, what in check_message(message, fail)
    )
    return Schema(
        text=text,
        where=where,
        features=build_features(message),
        sparse=build_sparse(message),
        weighted=build_weighted(message),
        examples=build_examples(message),
        default_environments=tuple(message.default_environment),
        # Older releases of tensorflow-metadata do not know this field.
        ragged=bool(getattr(message, "represent_variable_length_as_ragged", False)),
        remarks=remarks,
    )


def render_schema(schema: Schema) -> str:
    """The schema's text as protobuf prints it: equal for texts that mean the same.

    Comments and layout are lost; what was not read into the values is kept.
    """
    text_format = importlib.import_module("google.protobuf.text_format")
    return str(text_format.MessageToString(_parse(schema.text, schema.where), as_utf8=True))


def schema_message(schema: Schema) -> Any:
    """The protobuf message of a schema, a new one each time."""
    return _parse(schema.text, schema.where)


def _decode(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise SchemaError(
            f"{safe(where)}:{line}:{column}: byte 0x{data[error.start]:02x} is not UTF-8",
            hint="a schema is protobuf's text form (`.pbtxt`), saved as UTF-8",
        ) from None


def _expect_small(text: str, where: str) -> None:
    size = len(text)
    messages = text.count("{") + text.count("<")
    if size > _MOST_CHARACTERS:
        found = f"{size:,} characters, and no more than {_MOST_CHARACTERS:,} are read"
    elif messages > _MOST_MESSAGES:
        found = f"{messages:,} messages, and no more than {_MOST_MESSAGES:,} are read"
    else:
        return
    raise SchemaError(
        f"{safe(where)}: the schema has {found}",
        hint="many features of one kind are one feature with a shape; a long list of values is "
        "a range of numbers, or no part of a schema",
    )


def _parse(text: str, where: str) -> Any:
    _expect_small(text, where)
    text_format = importlib.import_module("google.protobuf.text_format")
    # Merlin keeps a `Struct` in the metadata of annotations; unpacking it needs its descriptor.
    importlib.import_module("google.protobuf.struct_pb2")
    schema_pb2 = importlib.import_module("tensorflow_metadata.proto.v0.schema_pb2")
    try:
        return text_format.Parse(text.removeprefix("\ufeff"), schema_pb2.Schema())
    except text_format.ParseError as error:
        raise _unparsable(error, where) from None
    except RecursionError:
        raise SchemaError(
            f"{safe(where)}: messages are nested too deeply to be a schema",
            hint="a `struct_domain` in a `struct_domain` is as deep as schemas go",
        ) from None


def _unparsable(error: Any, where: str) -> SchemaError:
    line, column = error.GetLine(), error.GetColumn()
    # protobuf repeats the place, and often the whole line, in front of what it has to say.
    what = re.sub(r"^\d+:\d+ : ('.*': )?", "", str(error), flags=re.DOTALL).rstrip(".")
    what = re.sub(r'"([\w.]+|[{}])"', r"`\1`", what.replace("tensorflow.metadata.v0.", ""))
    place = safe(where) if line is None else f"{safe(where)}:{line}:{column}"
    hint = "a schema is protobuf's text form of `tensorflow.metadata.v0.Schema` (`.pbtxt`)"
    if "no field named" in what:
        version = metadata.version("tensorflow-metadata")
        hint = f"a misspelt name, or one that tensorflow-metadata {version} does not know"
        if "generate_legacy_feature_spec" in what:
            hint = "tensorflow-metadata has dropped this field, and so may you: it meant a default"
    return SchemaError(f"{place}: {safe(what)}", hint=hint)
