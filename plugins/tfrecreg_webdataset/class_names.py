"""The names of classes in a file of the raw folder: one per line, or JSON."""

from __future__ import annotations

import json
from typing import Any

from tfrecreg.api import RawDataError, Storage, safe

_MAX_CLASSES = 1_000_000


def read_class_names(raw: Storage, path: str) -> tuple[str, ...]:
    """The names in order of their numbers; a number without a name has the empty one.

    A file `*.json` holds a list of names, or an object from names to numbers or from numbers to
    names. Any other has a name in each line.
    """
    found = raw.stat(path, follow="all")
    try:
        if found is None or found.kind != "file":
            raise ValueError("there is no such file in the raw folder")
        text = raw.read(path, limit=16 << 20).decode("utf-8-sig")
        if path.lower().endswith(".json"):
            names = _from_json(json.loads(text))
        else:
            names = [line.strip() for line in text.rstrip().split("\n")]
        if not any(names):
            raise ValueError("it has no names")
    except (ValueError, TypeError, RecursionError) as error:
        raise RawDataError(
            f"`{safe(path)}` cannot be read as class names: {safe(str(error), limit=200)}",
            hint="a name in each line, or JSON: a list of names, or an object of names and numbers",
        ) from None
    return tuple(names)


def _from_json(found: Any) -> list[str]:
    if isinstance(found, list) and all(isinstance(each, str) for each in found):
        return found
    if not isinstance(found, dict):
        raise ValueError("expected a list of names, or an object of names and numbers")
    numbers: dict[int, str] = {}
    for key, value in found.items():
        number, name = (value, key) if type(value) is int else (int(key), value)
        if not isinstance(name, str) or not 0 <= number < _MAX_CLASSES or number in numbers:
            raise ValueError(f"`{safe(key)}` is not one name with one number")
        numbers[number] = name
    return [numbers.get(number, "") for number in range(max(numbers, default=-1) + 1)]
