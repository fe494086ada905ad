"""Names of classes by their numbers."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from tfrecreg.core.values.text import safe

LabelMap = Mapping[int, str]
"""Class names by number; some numbers may have none."""


def named_classes(names: Sequence[str]) -> LabelMap:
    """Class names by number, from the list of a manifest; empty names are omitted."""
    return {number: name for number, name in enumerate(names) if name}


def class_name(names: Mapping[int, str], label: int) -> str:
    """A class in a message: its name, or its number if it has none."""
    name = names.get(label)
    return f"`{safe(name, limit=60)}`" if name else str(label)


def collision(names: Iterable[str]) -> str:
    """Two names that differ only by case or by Unicode normal form, in words; empty if none do.

    One of them is nearly always a mistake, made on a system that takes them for the same.
    """
    seen: dict[str, str] = {}
    for name in names:
        composed = unicodedata.normalize("NFC", name)
        other = seen.setdefault(unicodedata.normalize("NFC", composed.casefold()), name)
        if other != name:
            same_case = unicodedata.normalize("NFC", other) == composed
            how = "Unicode normal form" if same_case else "case"
            return f"differ only by {how}: `{_as_ascii(other)}` and `{_as_ascii(name)}`"
    return ""


def _as_ascii(name: str) -> str:
    """The name with everything beyond ASCII escaped, so that the difference is visible."""
    return safe(name.encode("ascii", "backslashreplace").decode("ascii")).replace("\\\\", "\\")
