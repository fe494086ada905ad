"""JSON files of this package: parsing, formats, digests, and errors about invalid files.

Digests cover the canonical form, RFC 8785 (JCS). Only objects, arrays, strings, integers, booleans
and null are allowed there: RFC 8785's rules for numbers are those of ECMAScript doubles, and
manifests do not need fractions.

Reading TOML, and changing values in it while keeping comments and order.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import msgspec
from blake3 import blake3

from tfrecreg.core.values.errors import ConfigError, NewerFormatError, TfrecregError, upgrade_hint
from tfrecreg.core.values.text import listed, safe

T = TypeVar("T")

_SAFE_INTEGER = 2**53 - 1
_MOST_DIGITS = 1000


@contextmanager
def refusing(error: type[TfrecregError], complaint: str, *, hint: str) -> Iterator[None]:
    """Raise `error` in place of a ValueError, whose text follows the complaint."""
    try:
        yield
    except (ValueError, RecursionError) as fault:
        reason = str(fault) if isinstance(fault, ValueError) else "nested too deeply"
        raise error(f"{complaint}: {safe(reason, limit=500)}", hint=hint) from None


def known_format(found: Any, newest: int, has: str, reads: str = "supports") -> dict[str, Any]:
    """A parsed document, whose format is not newer than the newest known one."""
    version = found.get("format_version") if isinstance(found, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError("it has no `format_version`")
    if version > newest:
        raise NewerFormatError(
            f"{has} {safe(str(version))}, this tfrecreg {reads} {newest}",
            hint=upgrade_hint(),
        )
    plain: dict[str, Any] = found
    return plain


def texts_of(plain: Mapping[str, Any], *names: str) -> dict[str, str]:
    """Fields of a document, by name."""
    for name in names:
        if not isinstance(plain.get(name), str):
            raise ValueError(f"it has no `{name}`")
    return {name: plain[name] for name in names}


def digest_apart(plain: Mapping[str, Any], *apart: str) -> str:
    """blake3, as hex, over the canonical JSON of all fields but some."""
    covered = {name: plain[name] for name in plain if name not in apart}
    return blake3(canonical_json(covered)).hexdigest()


def render_note(value: object) -> bytes:
    """A file that :func:`read_note` reads."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # a name that is not UTF-8, with surrogate escapes
        return json.dumps(msgspec.to_builtins(value)).encode("ascii")


def read_note(data: bytes, kind: type[T]) -> T:
    """A file for this package alone, such as the entry of a journal; large ones are read fast."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (ValueError, RecursionError):  # it knows no surrogate escapes
        return msgspec.convert(strict_json(data), kind)


def canonical_json(value: object) -> bytes:
    """`value` in the form of RFC 8785: keys sorted by UTF-16 code units, no white space, UTF-8."""
    try:
        text = json.dumps(
            _ordered(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False
        )
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("canonical JSON cannot hold a lone surrogate") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _ordered(value: object) -> object:
    # Strings first: most values are.
    if isinstance(value, str) or value is None or isinstance(value, bool):
        return value
    if isinstance(value, dict):
        try:
            ascii_only = "".join(value).isascii()
        except TypeError:
            raise ValueError("keys of a canonical JSON object are strings") from None
        # Of ASCII, the order of UTF-16 code units is that of Python, which sorts without a key.
        keys = sorted(value) if ascii_only else sorted(value, key=_utf_16)
        return {key: _ordered(value[key]) for key in keys}
    if isinstance(value, list | tuple):
        return [_ordered(item) for item in value]
    if isinstance(value, int):
        if abs(value) > _SAFE_INTEGER:
            raise ValueError(f"{value} is beyond the integers that every JSON reader keeps")
        return value
    raise ValueError(f"canonical JSON cannot hold a value of type {type(value).__name__}")


def _utf_16(key: str) -> bytes:
    return key.encode("utf-16-be")


def strict_json(data: bytes) -> Any:
    """Parse UTF-8 JSON without duplicate keys or ambiguous numbers."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from None
    try:
        return json.loads(
            text,
            object_pairs_hook=no_duplicates,
            parse_constant=_no_constant,
            parse_int=_bounded_int,
            parse_float=_finite_float,
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise ValueError(f"not JSON at {where}: {error.msg}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a document: readers differ in which value of a repeated key they take."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {json.dumps(name)} occurs twice")
        found[name] = value
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _bounded_int(digits: str) -> int:
    # Python itself refuses more digits, with a message about its own settings.
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits, at most {_MOST_DIGITS} are read")
    return int(digits)


def _finite_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is beyond the numbers that JSON readers keep")
    return number


_POSITION = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")


def read_toml(text: str | bytes, file: str) -> dict[str, Any]:
    """Parse TOML."""
    # Imported only here: a check of bare files mostly has no configuration.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        found = text if isinstance(text, str) else text.decode("utf-8")
        # A file that was read as bytes keeps its line ends; editors add byte order marks.
        return tomllib.loads(found.removeprefix("\ufeff"))
    except UnicodeDecodeError as error:
        number = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(
            f"`{safe(file)}` is not UTF-8 in line {number}", hint="save the file as UTF-8"
        ) from None
    except tomllib.TOMLDecodeError as error:
        complaint = str(error)
        at = _POSITION.search(complaint)
        lines = found.split("\n")
        end = str(len(lines)), str(len(lines[-1]) + 1)
        line, column = (at[1], at[2]) if at and at[1] else end
        reason = safe(_POSITION.sub("", complaint))
        raise ConfigError(
            f"`{safe(file)}` is not TOML at line {line}, column {column}: {reason}",
            hint="https://toml.io/en/v1.0.0 describes the format",
        ) from None
    except RecursionError:
        raise ConfigError(
            f"`{safe(file)}` is nested too deeply", hint="flatten it: a table is a list of rows"
        ) from None


def _same_values(one: object, other: object) -> bool:
    """Whether two values are the same TOML: 1 is neither true nor 1.0, a tuple is an array."""
    return _exact(one) == _exact(other)


def _exact(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _exact(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_exact(item) for item in value]
    return type(value), repr(value)


def update_toml(text: str, file: str, values: Mapping[str, Any]) -> str:
    """The text with keys set, added or removed; comments, order and line ends stay."""
    import tomlkit  # takes a tenth of a second, and reading does not need it

    before = read_toml(text, file)
    after = {**before, **values}
    after = {key: value for key, value in after.items() if value is not None}
    if _same_values(before, after):
        return text
    # Read the result again: no other value may have changed.
    with suppress(ValueError, LookupError, TypeError, AttributeError, ConfigError):
        document = tomlkit.parse(text)
        _set_values(document, values)
        result = tomlkit.dumps(document)
        if "\r\n" in text:
            result = result.replace("\r\n", "\n").replace("\n", "\r\n")
        if _same_values(read_toml(result, file), after):
            return result
    raise ConfigError(
        f"`{safe(file)}` cannot be edited automatically", hint=f"set {listed(values)} there by hand"
    )


def _set_values(table: Any, values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        there = table.get(key)
        plain = there.unwrap() if hasattr(there, "unwrap") else there
        if value is None:
            table.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(there, dict):
            gone = {name: None for name in there if name not in value}
            _set_values(there, {**gone, **value})
        elif not _same_values(plain, value):
            table[key] = _item(value)


def _item(value: Any) -> Any:
    import tomlkit

    if not isinstance(value, Mapping):
        return list(value) if isinstance(value, tuple) else value
    table = tomlkit.inline_table()
    for key, inner in value.items():
        table[key] = _item(inner)
    return table
