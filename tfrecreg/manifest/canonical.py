"""The canonical form of JSON for digests, RFC 8785 (JCS), and strict parsing of JSON.

Only objects, arrays, strings, integers, booleans and null are allowed: RFC 8785's rules for numbers
are those of ECMAScript doubles, and manifests do not need fractions.
"""

from __future__ import annotations

import json
import math
from typing import Any

_SAFE_INTEGER = 2**53 - 1
_MOST_DIGITS = 1000


def canonical_json(value: object) -> bytes:
    """`value` in the form of RFC 8785: keys sorted by UTF-16 code units, no white space, UTF-8.

    Raises:
        ValueError: a float, an integer beyond 2^53 - 1, a lone surrogate, an unknown type, or
            nesting that is too deep.
    """
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
    """Parse UTF-8 JSON without duplicate keys or ambiguous numbers.

    Raises:
        ValueError: not UTF-8, not JSON, duplicate keys, a number out of range, NaN or Infinity; the
            message has the place.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from None
    try:
        return json.loads(
            text,
            object_pairs_hook=_no_duplicates,
            parse_constant=_no_constant,
            parse_int=_bounded_int,
            parse_float=_finite_float,
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise ValueError(f"not JSON at {where}: {error.msg}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
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
