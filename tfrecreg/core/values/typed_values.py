"""Typed values: from TOML, or from text of the command line, to frozen dataclasses.

The annotations of a dataclass are the types of its keys:

- ``str``, ``int``, ``float``, ``bool``, ``date``, an ``Enum`` or a ``Literal``, constrained by
  :class:`msgspec.Meta`; numbers are finite
- ``X | None``, ``tuple[X, ...]``, ``dict[str, X]``, other dataclasses
- ``Annotated[X, function]``: the result of the function; its ``ValueError`` is the error message

:func:`read_table` reads TOML. :func:`parse_options` reads the options of a source, and these may be
text: ``true``, ``yes``, ``1`` or ``false``, ``no``, ``0`` for a ``bool``; the value of an ``Enum``;
``none`` for ``X | None``, so text that may be None cannot be "none"; ``a,b`` for a tuple, or a JSON
array of texts if an item holds a comma or is empty.

Sizes and limits as text, for the command line and `tfrecreg.toml`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from tfrecreg.core.values.errors import ConfigError, PluginError, UsageError
from tfrecreg.core.values.text import DOCS, did_you_mean, listed, safe

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
    """The options of a plugin that has none."""


class KeyPath:
    """A key in a file, the start of messages: `` `tfrecreg.toml`: `gates.mnist` ``."""

    def __init__(self, file: str, *keys: str | int) -> None:
        self.file = file
        self.keys = keys

    def __truediv__(self, key: str | int) -> KeyPath:
        return KeyPath(self.file, *self.keys, key)

    def error(self, complaint: str, *, hint: str = "") -> ConfigError:
        """An error about the value of this key."""
        key = f" `{_dotted(self.keys)}`" if self.keys else ""
        return ConfigError(f"`{safe(self.file)}`:{key} {complaint}", hint=hint)


def _dotted(keys: Keys) -> str:
    shown = ""
    for key in keys:
        if isinstance(key, int):
            shown += f"[{key}]"
        else:
            part = safe(key)
            shown += f".{part}" if _BARE_KEY.fullmatch(key) else f'."{part}"'
    return shown.removeprefix(".")


class _Mismatch(Exception):
    """A value does not fit its type; `keys` lead to it."""

    def __init__(self, complaint: str, keys: Keys, *, hint: str = "") -> None:
        self.complaint = complaint
        self.keys = keys
        self.hint = hint


def read_table(kind: type[T], table: object, path: KeyPath, *, hint: str = "") -> T:
    """Create a dataclass from a TOML table."""
    try:
        made: T = _table(kind, table, ())
    except _Mismatch as error:
        where = KeyPath(path.file, *path.keys, *error.keys)
        raise where.error(error.complaint, hint=error.hint or hint) from None
    return made


def _table(kind: type[Any], table: object, keys: Keys) -> Any:
    if not isinstance(table, dict):
        raise _Mismatch(f"should be a table, found {_value_text(table)}", keys)
    hints = _hints(kind)  # type: ignore[arg-type]  # mypy takes no class for hashable
    values = _fields(kind, hints, table, keys)
    try:
        return kind(**values)
    except ValueError as error:
        raise _Mismatch(str(error), keys) from None


@cache
def _hints(kind: Any) -> dict[str, Any]:
    # Resolving the hints takes the most time, and a registry may have a thousand datasets.
    return get_type_hints(kind, include_extras=True)


def _fields(
    kind: type[Any],
    hints: Mapping[str, Any],
    given: Mapping[str, Any],
    keys: Keys = (),
    *,
    text: bool = False,
    also: Iterable[str] = (),
) -> dict[str, Any]:
    """Values by field, for the given fields."""
    known = {found.name: found for found in fields(kind) if found.init}
    for name in given:
        if name not in known:
            names = sorted({*known, *also})
            raise _Mismatch(
                f"is not known{did_you_mean(name, names)}",
                (*keys, name),
                hint=f"known: {', '.join(names)}" if names else "there are none",
            )
    values: dict[str, Any] = {}
    for name, found in known.items():
        if name in given:
            values[name] = _value(hints[name], given[name], (*keys, name), text=text)
        elif is_required(found):
            hint = f"it should be {label(hints[name], text=text)}"
            raise _Mismatch("is missing", (*keys, name), hint=hint)
    return values


def is_required(found: Field[Any]) -> bool:
    """Whether a field has no default."""
    return found.default is MISSING and found.default_factory is MISSING


def _value(hint: Any, value: Any, keys: Keys, *, text: bool = False) -> Any:
    """Convert a value to a type."""
    expected = hint
    if (inner := _optional(hint)) is not None:
        if value is None or (text and value == "none"):
            return None
        hint = inner
    for function in filter(callable, getattr(hint, "__metadata__", ())):
        try:
            return function(value)
        except ValueError as error:
            raise _Mismatch(f"{error}, found {_value_text(value)}", keys) from None
    if is_dataclass(hint) and isinstance(hint, type):
        return _table(hint, value, keys)
    if get_origin(hint) is dict and isinstance(value, dict):
        inner = get_args(hint)[1]
        return {key: _value(inner, item, (*keys, key)) for key, item in value.items()}
    if (inner := _item(hint)) is not None:
        items = _split(value) if text and isinstance(value, str) else value
        if isinstance(items, list | tuple):
            return tuple(
                _value(inner, item, (*keys, number), text=text) for number, item in enumerate(items)
            )
    elif choices := _choices(hint):
        if _plain(value) in choices:
            return choices[_plain(value)]
    else:
        try:
            return _scalar(hint, value, text)
        except (msgspec.ValidationError, ValueError, LookupError, TypeError):
            pass  # the label of the type describes the expected value
    raise _Mismatch(f"should be {label(expected, text=text)}, found {_value_text(value)}", keys)


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
        if not _WHOLE.fullmatch(value):  # msgspec also accepts `3.0`
            raise ValueError
        return int(value)
    found = msgspec.convert(value, hint, strict=not text)
    if isinstance(found, float) and not math.isfinite(found):
        raise ValueError
    return found


def _optional(hint: Any) -> Any:
    """X of ``X | None``, else None."""
    inner = [each for each in get_args(hint) if each is not NoneType]
    return inner[0] if get_origin(hint) in (Union, UnionType) and len(inner) == 1 else None


def _item(hint: Any) -> Any:
    """X of ``tuple[X, ...]``, else None."""
    arguments = get_args(hint)
    is_list = get_origin(hint) is tuple and arguments[1:] == (Ellipsis,)
    return arguments[0] if is_list else None


def _choices(hint: Any) -> dict[str, Any]:
    """Value by text, for a literal or an enumeration; else empty."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {_plain(member): member for member in hint}
    return {_plain(each): each for each in get_args(hint)} if get_origin(hint) is Literal else {}


def _split(text: str) -> list[str] | None:
    """The items of a list; None if the text is not one."""
    if text.startswith("["):
        try:
            parts = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return parts if isinstance(parts, list) else None
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
    """A type in words: ``a whole number >= 1``."""
    if (inner := _optional(hint)) is not None:
        return label(inner, text=text) + (", or `none`" if text else "")
    if (inner := _item(hint)) is not None:
        return f"a list, {'with commas, ' if text else ''}each {label(inner, text=text)}"
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
    of: str = "",
    hint: str = "",
    also: Iterable[str] = (),
) -> T:
    """Create the options of a source or an engine."""
    owner = _owner(of)
    hint = hint or f"`tfrecreg plugins show {safe(of) or 'SOURCE'}` lists the options"
    given = pairs if isinstance(pairs, Mapping) else pairs_of(pairs, of)
    try:
        return kind(**_fields(kind, _option_types(kind), given, text=True, also=also))
    except _Mismatch as error:
        raise UsageError(
            f"the option `{_dotted(error.keys)}`{owner} {error.complaint}", hint=error.hint or hint
        ) from None
    except ValueError as error:
        raise UsageError(f"the options{owner} do not fit: {safe(str(error))}", hint=hint) from error


def _owner(of: str) -> str:
    return f" of `{safe(of)}`" if of else ""


def pairs_of(pairs: Sequence[str], of: str = "") -> dict[str, str]:
    """Value by name, from ``NAME=VALUE`` strings."""
    owner = _owner(of)
    given: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UsageError(
                f"the option `{safe(pair, limit=60)}`{owner} is not of the form `NAME=VALUE`",
                hint="as in `--option verify=decode`",
            )
        if name in given:
            raise UsageError(
                f"the option `{safe(name, limit=60)}`{owner} is given twice", hint="give it once"
            )
        given[name] = value
    return given


def _option_types(kind: type[Any]) -> dict[str, Any]:
    """Type by option; each type is one that options can have."""
    name = f"`{safe(kind.__qualname__)}`"
    try:
        hints = get_type_hints(kind)
    except (NameError, TypeError, AttributeError) as error:
        raise PluginError(
            f"the types of the options {name} cannot be found: {safe(str(error))}",
            hint="import them at the top of the module, outside `if TYPE_CHECKING`",
        ) from error
    found = {each.name: hints[each.name] for each in fields(kind) if each.init}
    for option, hint in found.items():
        inner = _optional(hint) or hint
        inner = _item(inner) or inner
        if not (inner in (str, int, float, bool) or _choices(inner)):
            raise PluginError(
                f"the option `{safe(option)}` of {name} has a type that options cannot have",
                hint=f"this is an error in the plugin: {DOCS}/plugins.md lists the types",
            )
    return found


def options_as_text(instance: object) -> dict[str, str]:
    """All options, including defaults, as :func:`parse_options` accepts them; in order of name."""
    names = sorted(_option_types(type(instance)))
    return {name: as_text(getattr(instance, name)) for name in names}


def as_text(value: Any) -> str:
    """The text that is parsed as the same value of an option."""
    if value is None:
        return "none"
    if not isinstance(value, tuple):
        return _plain(value)
    parts = [as_text(item) for item in value]
    text = ",".join(parts)
    if not text.startswith("[") and text != "none" and _split(text) == parts:
        return text
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)?", re.IGNORECASE)
_UNITS = {"": 1, "b": 1}
_UNITS |= {unit: 1000 ** (power + 1) for power, unit in enumerate(("kb", "mb", "gb", "tb"))}
_UNITS |= {unit: 1024 ** (power + 1) for power, unit in enumerate(("kib", "mib", "gib", "tib"))}
_COUNT = re.compile(r"\d+")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")


def parse_size(value: int | str) -> int:
    """A size in bytes: ``1048576``, ``"256MiB"``, ``"1.5 GB"`` (MB is 10^6, MiB is 2^20)."""
    from fractions import Fraction  # here and below: few commands need it

    match = _SIZE.fullmatch(str(value).strip()) if _is_amount(value) else None
    size = Fraction(match[1]) * _UNITS[(match[2] or "").lower()] if match else Fraction(0)
    if size < 1:
        raise ValueError("expected a size such as `256MiB`, `1.5GB` or a number of bytes")
    return int(size)


@dataclass(frozen=True, slots=True)
class SkipLimit:
    """The limit on skipped items of a build: a count, or a share of all items."""

    share: Fraction | None
    """Share of all items, 0 to 1; None if `count` applies."""
    count: int = 0

    @classmethod
    def parse(cls, value: int | str) -> SkipLimit:
        """``100`` or ``"100"`` items, or ``"0.5%"`` of them."""
        from fractions import Fraction

        text = str(value).strip() if _is_amount(value) else ""
        if _COUNT.fullmatch(text):
            return cls(None, int(text))
        percent = _PERCENT.fullmatch(text)
        if percent is None or Fraction(percent[1]) > 100:
            raise ValueError("expected a number of items such as `10`, or a share such as `0.5%`")
        return cls(Fraction(percent[1]) / 100)

    def allows(self, skipped: int, items: int) -> bool:
        """Whether `skipped` of `items` are within the limit. Exact: no rounding."""
        return skipped <= (self.count if self.share is None else self.share * items)

    def __str__(self) -> str:
        if self.share is None:
            return str(self.count)
        percent = self.share * 100
        # Percentages are written as decimals, so this division is exact.
        exact = Decimal(percent.numerator) / Decimal(percent.denominator)
        return f"{exact.normalize():f}%"


def _is_amount(value: object) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)
