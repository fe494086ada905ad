"""Parses and renders JSON files of this package, computes their digests, and reports invalid files.

Digests are computed from the canonical form of RFC 8785 (JCS). Here, it has only objects, arrays,
strings, integers, booleans and null. It has no fractions, because manifests have none, and
because fractions would have to be formatted by the rules of ECMAScript.

The module also reads TOML, and changes values in it without losing comments and order.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from operator import methodcaller
from typing import Any, TypeVar

import msgspec

from tfrecreg.core.values.errors import ConfigError, NewerFormatError, TfrecregError, upgrade_hint
from tfrecreg.core.values.text import listed

T = TypeVar("T")

_SAFE_INTEGER = 2**53 - 1


@contextmanager
def refusing(error: type[TfrecregError], complaint: str, *, hint: str = "") -> Iterator[None]:
    """Turn a ValueError in the ``with`` block into `error`. The error's message is `complaint` and
    the text of the ValueError.
    """
    try:
        yield
    except (ValueError, RecursionError) as fault:
        reason = str(fault) if isinstance(fault, ValueError) else "nested too deeply"
        raise error(f"{complaint}: {reason}", hint=hint) from None


def known_format(found: Any, newest: int, has: str, reads: str = "supports") -> dict[str, Any]:
    """Return `found`, a parsed document. Raise an error if its format is newer than `newest`."""
    version = found.get("format_version") if isinstance(found, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError("it has no `format_version`")
    if version > newest:
        raise NewerFormatError(
            f"{has} {version}, this tfrecreg {reads} {newest}", hint=upgrade_hint()
        )
    plain: dict[str, Any] = found
    return plain


def texts_of(plain: Mapping[str, Any], *names: str) -> dict[str, str]:
    for name in names:
        if not isinstance(plain.get(name), str):
            raise ValueError(f"it has no `{name}`")
    return {name: plain[name] for name in names}


def render_note(value: object) -> bytes:
    """The content of a file that :func:`read_note` reads."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # a name that is not UTF-8 has surrogate escapes
        return json.dumps(msgspec.to_builtins(value)).encode("ascii")


def read_note(data: bytes, kind: type[T]) -> T:
    """Read a file that only this package uses, such as a journal's entry. Fast for large files."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (ValueError, RecursionError):  # msgspec does not accept surrogate escapes
        return msgspec.convert(strict_json(data), kind)


def canonical_json(value: object) -> bytes:
    """`value` in the form of RFC 8785: keys sorted by UTF-16 code units, no white space, UTF-8."""
    text = json.dumps(_ordered(value), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8")


def _ordered(value: object) -> object:
    # Strings come first, because most values are strings.
    if isinstance(value, str) or value is None or isinstance(value, bool):
        return value
    if isinstance(value, dict):
        ascii_only = "".join(value).isascii()
        # For ASCII, the order of UTF-16 code units is Python's own, which sorts without a key.
        order = None if ascii_only else methodcaller("encode", "utf-16-be")
        return {key: _ordered(value[key]) for key in sorted(value, key=order)}
    if isinstance(value, list | tuple):
        return [_ordered(item) for item in value]
    if isinstance(value, int):
        if abs(value) > _SAFE_INTEGER:
            raise ValueError(f"{value} is an integer that some JSON readers change")
        return value
    raise ValueError(f"canonical JSON cannot hold a value of type {type(value).__name__}")


def strict_json(data: bytes) -> Any:
    """Parse UTF-8 JSON without duplicate keys or ambiguous numbers."""
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=no_duplicates,
            parse_constant=_finite_float,
            parse_float=_finite_float,
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a document. Repeated keys are errors, because different parsers would take
    different values.
    """
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {json.dumps(name)} occurs twice")
        found[name] = value
    return found


def _finite_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is a value that some JSON readers refuse or change")
    return number


def read_toml(text: str | bytes, file: str) -> dict[str, Any]:
    # tomllib is imported here, because a check of bare files usually has no configuration.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        found = text if isinstance(text, str) else text.decode("utf-8")
        # Bytes have the file's line ends, and an editor may have added a byte order mark.
        return tomllib.loads(found.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"`{file}` is not TOML: {error}") from None


def _exact(value: object) -> object:
    """A form of `value` for comparisons. Two forms are equal only if the TOML is the same: 1, true
    and 1.0 differ. A tuple counts as an array.
    """
    if isinstance(value, Mapping):
        return {key: _exact(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_exact(item) for item in value]
    return type(value), repr(value)


def update_toml(text: str, file: str, values: Mapping[str, Any]) -> str:
    """Set, add or remove keys in a text. The comments, order and line endings are preserved."""
    import tomlkit  # the import takes a tenth of a second, and reading does not need it

    before = read_toml(text, file)
    after = {**before, **values}
    after = {key: value for key, value in after.items() if value is not None}
    if _exact(before) == _exact(after):
        return text
    # Read the result again to make sure that no other value changed.
    with suppress(ValueError, LookupError, TypeError, AttributeError, ConfigError):
        document = tomlkit.parse(text)
        _set_values(document, values)
        result = tomlkit.dumps(document)
        if "\r\n" in text:
            result = result.replace("\r\n", "\n").replace("\n", "\r\n")
        if _exact(read_toml(result, file)) == _exact(after):
            return result
    raise ConfigError(
        f"`{file}` cannot be edited automatically: set {listed(values)} there by hand"
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
        elif _exact(plain) != _exact(value):
            table[key] = _item(value)


def _item(value: Any) -> Any:
    import tomlkit

    if not isinstance(value, Mapping):
        return list(value) if isinstance(value, tuple) else value
    table = tomlkit.inline_table()
    for key, inner in value.items():
        table[key] = _item(inner)
    return table
