"""TOML text into frozen dataclasses, with the file and the key path in every complaint."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum, EnumMeta
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from tfrecreg.errors import ConfigError
from tfrecreg.suggest import did_you_mean, listed
from tfrecreg.text import safe

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Place", "read_table", "read_toml"]

T = TypeVar("T")

_TYPES = {
    "array": "an array",
    "bool": "true or false",
    "date": "a date",
    "float": "a number",
    "int": "a whole number",
    "object": "a table",
    "str": "text",
}

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_AT = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")

_DEEP = re.compile(r"""(?<![\w-])(?:(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){100}""")
"""A dotted key of more parts than that: the time to read one grows with the square of them."""


class Place:
    """Where in which file a value stands: what complaints begin with."""

    def __init__(self, where: str, path: str = "") -> None:
        self.where = where
        self.path = path

    def __truediv__(self, key: str | int) -> Place:
        if isinstance(key, int):
            return Place(self.where, f"{self.path}[{key}]")
        shown = safe(key) if _BARE.fullmatch(key) else f'"{safe(key)}"'
        return Place(self.where, f"{self.path}.{shown}" if self.path else shown)

    def error(self, complaint: str, *, hint: str = "") -> ConfigError:
        """An error about the value at this place."""
        at = f" `{self.path}`" if self.path else ""
        return ConfigError(f"`{safe(self.where)}`:{at} {complaint}", hint=hint)


def read_toml(text: str | bytes, where: str) -> dict[str, Any]:
    """Parse TOML.

    Args:
        text: the file's content.
        where: what messages call the file.

    Raises:
        ConfigError: it is not UTF-8 or no TOML; the message has line and column.
    """
    try:
        found = text if isinstance(text, str) else text.decode("utf-8")
        deep = _DEEP.search(found)
        if deep is not None:
            line = found.count("\n", 0, deep.start()) + 1
            raise ConfigError(
                f"`{safe(where)}` has a key of more than 100 parts in line {line}",
                hint="flatten it: `datasets.mnist.options.split` is as deep as keys go",
            )
        # A file read as bytes keeps its line ends; a byte order mark is what editors add.
        return tomllib.loads(found.removeprefix("\ufeff"))
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(
            f"`{safe(where)}` is not UTF-8 in line {line}", hint="save the file as UTF-8"
        ) from None
    except tomllib.TOMLDecodeError as error:
        complaint = str(error)
        at = _AT.search(complaint)
        line, column = (int(at[1]), int(at[2])) if at and at[1] else _end(found)
        what = safe(_AT.sub("", complaint))
        raise ConfigError(
            f"`{safe(where)}` is no TOML at line {line}, column {column}: {what}",
            hint="https://toml.io/en/v1.0.0 describes the format",
        ) from None
    except RecursionError:
        raise ConfigError(
            f"`{safe(where)}` is nested too deeply", hint="flatten it: a table is a list of rows"
        ) from None


def read_table(kind: type[T], value: object, place: Place) -> T:
    """Make a dataclass of a table; its annotations say what each key may hold.

    Fields are strings, numbers, booleans, dates, enumerations, literals, other dataclasses, or
    ``dict[str, X]`` and ``tuple[X, ...]`` of these. A field with ``metadata={"parse": function}``
    takes what that function makes of the value, one with ``metadata={"rest": True}`` (a
    ``dict[str, X]``) all keys that no other field has. A ``ValueError`` of such a function or of
    the class's ``__post_init__`` becomes the complaint.

    Raises:
        ConfigError: an unknown or missing key, or a value of another type.
    """
    if not isinstance(value, dict):
        raise place.error(f"expected a table, found {shown(value)}")
    known: dict[str, Field[Any]] = {found.name: found for found in fields(kind)}  # type: ignore[arg-type]  # only dataclasses come here
    hints = get_type_hints(kind, include_extras=True)
    rest = next((name for name, found in known.items() if found.metadata.get("rest")), None)
    if rest:
        del known[rest]
    others = {key: item for key, item in value.items() if key not in known}
    if others and not rest:
        key = next(iter(others))
        hint = f"known keys: {', '.join(sorted(known))}"
        raise (place / key).error(f"is not a known key{did_you_mean(key, known)}", hint=hint)
    made: dict[str, Any] = {rest: _value(hints[rest], others, place)} if rest else {}
    for name, found in known.items():
        if name in value:
            parse = found.metadata.get("parse")
            made[name] = (
                _parsed(parse, value[name], place / name)
                if parse
                else _value(hints[name], value[name], place / name)
            )
        elif found.default is MISSING and found.default_factory is MISSING:
            raise (place / name).error("is missing")
    try:
        return kind(**made)
    except ValueError as error:
        raise place.error(str(error)) from None


def shown(value: object) -> str:
    """A TOML value for a message, short and escaped."""
    if isinstance(value, str):
        return f"`{safe(value, limit=60)}`"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "an array"
    return f"`{str(value).lower() if isinstance(value, bool) else safe(str(value), limit=60)}`"


def _parsed(parse: Any, value: object, place: Place) -> Any:
    try:
        return parse(value)
    except ValueError as error:
        raise place.error(f"{error}, found {shown(value)}") from None


def _value(hint: Any, value: object, place: Place) -> Any:
    hint = _without_none(hint)
    if is_dataclass(hint) and isinstance(hint, type):
        return read_table(hint, value, place)
    if get_origin(hint) in (dict, Mapping) and isinstance(value, dict):
        inner = get_args(hint)[1]
        return {key: _value(inner, item, place / key) for key, item in value.items()}
    if get_origin(hint) is tuple and isinstance(value, list):
        inner = get_args(hint)[0]
        return tuple(_value(inner, item, place / number) for number, item in enumerate(value))
    choices = _choices(hint)
    if choices and not (isinstance(value, str) and value in choices):
        raise place.error(f"expected {listed(choices, word='or')}, found {shown(value)}")
    try:
        return msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        raise place.error(f"{_plain(str(error))}, found {shown(value)}") from None


def _without_none(hint: Any) -> Any:
    """X of ``X | None``: TOML has no null, so what is there is an X."""
    inner = [one for one in get_args(hint) if one is not NoneType]
    return inner[0] if get_origin(hint) in (Union, UnionType) and len(inner) == 1 else hint


def _choices(hint: Any) -> list[str]:
    if isinstance(hint, EnumMeta):
        members: list[Enum] = list(hint)
        return [str(member.value) for member in members]
    return list(get_args(hint)) if get_origin(hint) is Literal else []


def _plain(complaint: str) -> str:
    """What msgspec says, in words, without its own idea of the place and of what was found."""
    if "encoded date" in complaint:
        return "expected a date such as `2027-01-31`"
    complaint = complaint.split(" - at ")[0].split(", got ")[0]
    complaint = re.sub(r"`(\w+)`", lambda name: _TYPES.get(name[1], name[0]), complaint)
    return complaint[:1].lower() + complaint[1:]


def _end(text: str) -> tuple[int, int]:
    lines = text.split("\n")
    return len(lines), len(lines[-1]) + 1
