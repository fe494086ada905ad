"""Names of classes by their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfrecreg.text import safe

LabelMap = Mapping[int, str]
"""Class names by number; some numbers may have none."""


def named_classes(names: Sequence[str]) -> LabelMap:
    """Class names by number, from the list of a manifest; empty names are omitted."""
    return {number: name for number, name in enumerate(names) if name}


def class_name(names: Mapping[int, str], label: int) -> str:
    """A class in a message: its name, or its number if it has none."""
    name = names.get(label)
    return f"`{safe(name, limit=60)}`" if name else str(label)
