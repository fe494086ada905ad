"""How two schemas differ, for people."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from rich.console import Console

from tfrecreg.core.terminal.console import line
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.core.schema.differ import SchemaChange, Value

_SHOWN = 8
"""The number of values shown of a list; the others are counted."""


def print_changes(console: Console, changes: Iterable[SchemaChange], *, indent: int = 0) -> None:
    """The fields that differ, below their feature."""
    before = " " * indent
    for (part, name), fields in groupby(changes, key=lambda each: (each.part, each.name)):
        shown = f" {safe(name)}" if name else ""
        console.print(line(before, (f"{part.replace('_', ' ')}{shown}", "bold")))
        for change in fields:
            console.print(line(f"{before}  {_change(change)}"))


def _change(change: SchemaChange) -> str:
    if not change.field:
        if change.expected is None:
            return f"expected nothing, found {_value(change.found)}"
        return f"expected {_value(change.expected)}, found nothing"
    old, new = change.expected, change.found
    if isinstance(old, tuple) and isinstance(new, tuple) and set(old) != set(new):
        before, after = set(old), set(new)
        gone = tuple(each for each in old if each not in after)
        more = tuple(each for each in new if each not in before)
        pieces = [f"expected also {_value(gone)}"] if gone else []
        pieces += [f"found also {_value(more)}"] if more else []
        return f"{safe(change.field)}: {'; '.join(pieces)}"
    return f"{safe(change.field)}: expected {_value(old)}, found {_value(new)}"


def _value(value: Value | None) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return safe(value)
    shown = ", ".join(safe(each) for each in value[:_SHOWN])
    more = len(value) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
