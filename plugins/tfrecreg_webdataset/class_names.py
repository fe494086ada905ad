"""The names of classes in a file of the raw folder: one per line, or JSON."""

from __future__ import annotations

import json
from typing import Any

from tfrecreg.api import RawDataError, Storage, safe

_MAX_BYTES = 16 << 20
_MAX_CLASSES = 1_000_000


def read_class_names(raw: Storage, path: str) -> tuple[str, ...]:
    """The names in order of their numbers; a number without a name has the empty one.

    A file `*.json` holds a list of names, or an object from names to numbers or from numbers to
    names. Any other has a name in each line.
    """
    found = raw.stat(path, follow="all")
    if found is None or found.kind != "file":
        raise _unusable(path, "there is no such file in the raw folder")
    if found.size > _MAX_BYTES:
        raise _unusable(path, f"it has {found.size} bytes, at most {_MAX_BYTES} are read")
    try:
        text = raw.read(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unusable(path, f"it is not UTF-8 at byte {error.start}") from None
    if path.lower().endswith(".json"):
        try:
            names = _from_json(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise _unusable(path, safe(str(error), limit=200)) from None
    else:
        names = [line.strip() for line in text.rstrip().split("\n")]
    if not any(names):
        raise _unusable(path, "it has no names")
    return tuple(names)


def _from_json(found: Any) -> list[str]:
    if isinstance(found, list):
        if not all(isinstance(each, str) for each in found):
            raise ValueError("expected a list of texts")
        return found
    if not isinstance(found, dict):
        raise ValueError("expected a list of names, or an object of names and numbers")
    numbers: dict[int, str] = {}
    for key, value in found.items():
        number, name = (value, key) if type(value) is int else (key, value)
        if isinstance(number, str):
            if not (number.isdecimal() and len(number) < 8):
                raise ValueError(f"`{safe(key)}` has no number")
            number = int(number)
        if not (isinstance(name, str) and 0 <= number < _MAX_CLASSES):
            raise ValueError(f"`{safe(key)}` is not a name with a number below {_MAX_CLASSES}")
        if number in numbers:
            raise ValueError(f"the number {number} has two names")
        numbers[number] = name
    return [numbers.get(number, "") for number in range(max(numbers, default=-1) + 1)]


def _unusable(path: str, why: str) -> RawDataError:
    return RawDataError(
        f"`{safe(path)}` cannot be read as class names: {why}",
        hint="a name in each line, or JSON: a list of names, or an object of names and numbers",
    )
