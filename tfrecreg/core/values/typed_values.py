"""Turns TOML or text of the command line into frozen dataclasses with typed values.

The annotations of a dataclass are the types of its keys:

- A simple type is ``str``, ``int``, ``float``, ``bool``, ``date``, an ``Enum`` or a ``Literal``.
  Numbers are finite, and :class:`msgspec.Meta` may limit values.
- A composed type is ``X | None``, ``tuple[X, ...]``, ``dict[str, X]`` or another dataclass.
- For ``Annotated[X, function]``, the value is the function's result. If the function raises a
  ``ValueError``, the text of this error is the message.

:func:`read_table` reads TOML. :func:`parse_options` reads the options of a source, whose values may
be texts. A ``bool`` is written as ``true``, ``yes`` or ``1``, or as ``false``, ``no`` or ``0``. An
``Enum`` is written as its value. For ``X | None``, ``none`` means None, so an optional text cannot
be "none". A tuple is written as ``a,b``, or as a JSON array of texts if an item contains a comma or
is empty.

The module also parses sizes and limits from text, for the command line and `tfrecreg.toml`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from tfrecreg.core.values.errors import ConfigError, PluginError, UsageError
from tfrecreg.core.values.text import did_you_mean, listed, safe

if TYPE_CHECKING:
    from fractions import Fraction

T = TypeVar("T")
Keys = tuple[str | int, ...]

_WORDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "`true` or `false`",
    date: "a date such as `2027-01-31`",
    dict: "a table",
}
_BOUNDS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<", "min_length": "with a length >="}
_BOOLS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class NoOptions:
    """For a plugin that takes no options."""


class KeyPath:
    """The path of a key in a file. Messages begin with it: `` `tfrecreg.toml`: `gates.mnist` ``."""

    def __init__(self, file: str, *keys: str | int) -> None:
        self.file = file
        self.keys = keys

    def __truediv__(self, key: str | int) -> KeyPath:
        return type(self)(self.file, *self.keys, key)

    def error(self, complaint: str, hint: str = "") -> UsageError:
        key = f" `{_dotted(self.keys)}`" if self.keys else ""
        return ConfigError(f"`{self.file}`:{key} {complaint}", hint=hint)


class _OptionPath(KeyPath):
    """The path of an option. Its `file` is the name of the plugin."""

    def error(self, complaint: str, hint: str = "") -> UsageError:
        hint = hint or f"`tfrecreg plugins show {self.file}` lists the options"
        if not self.keys:
            return UsageError(f"the options of `{self.file}` are invalid: {complaint}", hint=hint)
        option = _dotted(self.keys)
        return UsageError(f"the option `{option}` of `{self.file}` {complaint}", hint=hint)


def _dotted(keys: Keys) -> str:
    shown = ""
    for key in keys:
        if isinstance(key, int):
            shown += f"[{key}]"
        else:
            shown += f".{key}" if _BARE_KEY.fullmatch(key) else f'."{key}"'
    return shown.removeprefix(".")


def read_table(kind: type[T], table: Mapping[str, Any], path: KeyPath) -> T:
    made: T = _table(kind, _hints(kind), table, path)  # type: ignore[arg-type]
    return made


@cache
def _hints(kind: Any) -> dict[str, Any]:
    # The result is cached: it takes most of the time, and a registry may have a thousand datasets.
    return get_type_hints(kind, include_extras=True)


def _table(
    kind: type[Any],
    hints: Mapping[str, Any],
    given: Mapping[str, Any],
    path: KeyPath,
    *,
    text: bool = False,
    also: Iterable[str] = (),
) -> Any:
    known = {found.name: found for found in fields(kind) if found.init}
    for name in given:
        if name not in known:
            names = sorted({*known, *also})
            others = did_you_mean(name, names) or f"; known: {listed(names)}"
            raise (path / name).error(f"is not known{others}")
    values: dict[str, Any] = {}
    for name, found in known.items():
        if name in given:
            values[name] = _value(hints[name], given[name], path / name, text=text)
        elif is_required(found):
            expected = label(hints[name], text=text)
            raise (path / name).error(f"is missing: it should be {expected}")
    try:
        return kind(**values)
    except ValueError as error:
        raise path.error(str(error)) from error


def is_required(found: Field[Any]) -> bool:
    return found.default is MISSING and found.default_factory is MISSING


def _value(hint: Any, value: Any, path: KeyPath, *, text: bool = False) -> Any:
    expected = hint
    if (inner := _optional(hint)) is not None:
        if value is None or (text and value == "none"):
            return None
        hint = inner
    for function in filter(callable, getattr(hint, "__metadata__", ())):
        try:
            return function(value)
        except ValueError as error:
            raise path.error(f"{error}, found {_value_text(value)}") from None
    if is_dataclass(hint) and isinstance(hint, type):
        if isinstance(value, dict):
            return _table(hint, _hints(hint), value, path)
    elif get_origin(hint) is dict and isinstance(value, dict):
        inner = get_args(hint)[1]
        return {key: _value(inner, item, path / key) for key, item in value.items()}
    elif (inner := _item(hint)) is not None:
        items = _split(value) if text and isinstance(value, str) else value
        if isinstance(items, list | tuple):
            return tuple(
                _value(inner, item, path / number, text=text) for number, item in enumerate(items)
            )
    elif choices := _choices(hint):
        if _plain(value) in choices:
            return choices[_plain(value)]
    else:
        # The label of the type describes the expected value.
        with suppress(msgspec.ValidationError, ValueError, LookupError, TypeError):
            return _scalar(hint, value, text)
    raise path.error(f"should be {label(expected, text=text)}, found {_value_text(value)}")


def _scalar(hint: Any, value: Any, text: bool) -> Any:
    if hint is Any:
        return value
    text = text and isinstance(value, str)
    if isinstance(value, str):
        value.encode("utf-8")  # manifests cannot hold lone surrogates
    if text and hint is not str:
        value = value.strip()
    if text and hint is bool:
        return _BOOLS[value.lower()]
    if text and hint is int:
        if not _WHOLE.fullmatch(value):  # msgspec would also accept `3.0`
            raise ValueError
        return int(value)
    found = msgspec.convert(value, hint, strict=not text)
    if isinstance(found, float) and not math.isfinite(found):
        raise ValueError
    return found


def _optional(hint: Any) -> Any:
    """The type X of ``X | None``; None for any other type."""
    inner = [each for each in get_args(hint) if each is not NoneType]
    return inner[0] if get_origin(hint) in (Union, UnionType) and len(inner) == 1 else None


def _item(hint: Any) -> Any:
    """The type X of ``tuple[X, ...]``; None for any other type."""
    arguments = get_args(hint)
    is_list = get_origin(hint) is tuple and arguments[1:] == (Ellipsis,)
    return arguments[0] if is_list else None


def _choices(hint: Any) -> dict[str, Any]:
    """The values of a literal or an enumeration, by their texts; empty for any other type."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {_plain(member): member for member in hint}
    return {_plain(each): each for each in get_args(hint)} if get_origin(hint) is Literal else {}


def _split(text: str) -> list[str] | None:
    """The items of a list; None if the text is not a list."""
    if text.startswith("["):
        with suppress(ValueError, RecursionError):
            items: list[str] = json.loads(text)
            return items
        return None
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    return parts if all(parts) else None


def _value_text(value: object) -> str:
    if isinstance(value, dict):
        return "a table"
    return "a list" if isinstance(value, list | tuple) else f"`{safe(_plain(value), limit=60)}`"


def _plain(value: Any) -> str:
    value = value.value if isinstance(value, Enum) else value
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def label(hint: Any, *, text: bool = True) -> str:
    """The values of a type in words: ``a whole number >= 1``."""
    if (inner := _optional(hint)) is not None:
        return label(inner, text=text) + (", or `none`" if text else "")
    if (inner := _item(hint)) is not None:
        return f"a {'comma-separated ' if text else ''}list, each item {label(inner, text=text)}"
    if choices := _choices(hint):
        return listed(choices, word="or")
    metas = getattr(hint, "__metadata__", ())
    bare = get_args(hint)[0] if metas else hint
    bare = dict if is_dataclass(bare) else get_origin(bare) or bare
    bounds = [
        f"{sign} {getattr(meta, name)}"
        for meta in metas
        for name, sign in _BOUNDS.items()
        if getattr(meta, name, None) is not None
    ]
    return f"{_WORDS.get(bare, 'a value')} {' and '.join(bounds)}".rstrip()


def parse_options(
    kind: type[T],
    pairs: Mapping[str, Any] | Sequence[str],
    *,
    of: str = "SOURCE",
    also: Iterable[str] = (),
) -> T:
    given = pairs if isinstance(pairs, Mapping) else pairs_of(pairs)
    made: T = _table(kind, _option_types(kind), given, _OptionPath(of), text=True, also=also)
    return made


def pairs_of(pairs: Sequence[str], option: str = "--option") -> dict[str, str]:
    """Parse texts of the form ``NAME=VALUE``. Returns the values by name."""
    given: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UsageError(f"`{option} {pair}` should be `{option} NAME=VALUE`")
        if name in given:
            raise UsageError(f"`{option} {name}=` is given twice")
        given[name] = value
    return given


def _option_types(kind: type[Any]) -> dict[str, Any]:
    name = f"`{kind.__qualname__}`"
    hints = get_type_hints(kind)
    found = {each.name: hints[each.name] for each in fields(kind) if each.init}
    for option, hint in found.items():
        inner = _optional(hint) or hint
        inner = _item(inner) or inner
        if not (inner in (str, int, float, bool) or _choices(inner)):
            raise PluginError(
                f"the option `{option}` of {name} has a type that options cannot have"
            )
    return found


def options_as_text(instance: object) -> dict[str, str]:
    """All options, including defaults, as texts that :func:`parse_options` accepts, in order of
    name.
    """
    names = sorted(_option_types(type(instance)))
    return {name: as_text(getattr(instance, name)) for name in names}


def as_text(value: Any) -> str:
    """The text that a user would write to set an option to this value."""
    if value is None:
        return "none"
    if not isinstance(value, tuple):
        return _plain(value)
    parts = [as_text(item) for item in value]
    text = ",".join(parts)
    if not text.startswith("[") and text != "none" and _split(text) == parts:
        return text
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE | re.ASCII)
_COUNT = re.compile(r"\d+")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")


def expect_one_of(name: str, value: object, known: Sequence[object]) -> None:
    """Refuse a value that is not in `known`."""
    if value not in known:
        raise UsageError(f"`{name}` should be one of {listed(map(str, known))}, found `{value}`")


def parse_size(value: int | str) -> int:
    """Parse a size in bytes, such as ``1048576``, ``"256MiB"`` or ``"1.5 GB"`` (M and MB mean 10^6,
    Mi and MiB mean 2^20).
    """
    from fractions import Fraction  # imported here and below, because few commands need it

    match = _SIZE.fullmatch(str(value).strip())
    size = Fraction(0)
    if match and (match[2] or not match[3]):
        power = " kmgt".index(match[2].lower() or " ")
        size = Fraction(match[1]) * (1024 if match[3] else 1000) ** power
    if size < 1:
        raise ValueError("expected a size such as `256MiB`, `1.5GB` or a number of bytes")
    return int(size)


@dataclass(frozen=True, slots=True)
class SkipLimit:
    """The limit on skipped items of a build: a count, or a share of all items."""

    share: Fraction | None
    """The limit as a share of all items, 0 to 1; None if `count` is the limit."""
    count: int = 0

    @classmethod
    def parse(cls, value: int | str) -> SkipLimit:
        """The limit in a text or number: ``100`` or ``"100"`` items, or ``"0.5%"`` of all items."""
        from fractions import Fraction

        text = str(value).strip()
        if _COUNT.fullmatch(text):
            return cls(None, int(text))
        percent = _PERCENT.fullmatch(text)
        if percent is None or Fraction(percent[1]) > 100:
            raise ValueError("expected a number of items such as `10`, or a share such as `0.5%`")
        return cls(Fraction(percent[1]) / 100)

    def allows(self, skipped: int, items: int) -> bool:
        """Whether the limit allows `skipped` items out of `items`. Nothing is rounded."""
        return skipped <= (self.count if self.share is None else self.share * items)

    def __str__(self) -> str:
        if self.share is None:
            return str(self.count)
        percent = self.share * 100
        # The user wrote the percentage as a decimal number, so this division is exact.
        exact = Decimal(percent.numerator) / Decimal(percent.denominator)
        return f"{exact.normalize():f}%"
