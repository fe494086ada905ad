"""Reading TOML, and changing values in it while keeping comments and order."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tfrecreg.core.values.errors import ConfigError
from tfrecreg.core.values.suggest import listed
from tfrecreg.core.values.text import safe

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
