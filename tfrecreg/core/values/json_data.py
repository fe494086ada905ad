"""Results as JSON-able data, by the fields of their records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any


def json_data(value: object) -> Any:
    """A result as JSON has it.

    A record becomes an object with its fields, without those that its `repr` leaves out. A record
    whose document has other words than its fields has a method `to_json`, which returns the
    document, with records in it. JSON has no NaN and no infinity: null for NaN, a word for
    infinity. Anything else is its text.
    """
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {key: json_data(each) for key, each in value.items()}
    own = getattr(value, "to_json", None)
    if own is not None:
        return json_data(own())
    if hasattr(value, "__struct_fields__"):
        import msgspec  # not needed to start

        return json_data(msgspec.to_builtins(value))
    if is_dataclass(value):
        shown = (each.name for each in fields(value) if each.repr)
        return {name: json_data(getattr(value, name)) for name in shown}
    if isinstance(value, Iterable):
        return [json_data(each) for each in value]
    return str(value)
