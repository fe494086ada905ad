"""Names of classes, from a manifest or a file.

A file is a label map of TensorFlow's object detection (``item { id: 1 name: "raccoon" }``), or text
with one name per line, numbered from 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tfrecreg.errors import UsageError
from tfrecreg.storage.local import LocalStorage
from tfrecreg.text import safe

LabelMap = Mapping[int, str]
"""Class names by number; some numbers may have none."""

_MOST_FILE_BYTES = 1 << 24
_ITEM = re.compile(r"\bitem\s*:?\s*\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")
_STRING = r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'"
_ID = re.compile(r"\bid\s*:\s*(-?\d+)")
_NAMES = (
    re.compile(rf"\bname\s*:\s*(?:{_STRING})"),
    re.compile(rf"\bdisplay_name\s*:\s*(?:{_STRING})"),
)


def named_classes(names: Sequence[str]) -> LabelMap:
    """Class names by number, from the list of a manifest; empty names are omitted."""
    return {number: name for number, name in enumerate(names) if name}


def read_label_map(path: str) -> LabelMap:
    """Read a file of class names.

    Raises:
        UsageError: the file does not exist, or has no class names.
    """
    place = Path(path)
    storage = LocalStorage(place.parent)
    if storage.stat(place.name) is None:
        raise UsageError(
            f"there is no label map `{safe(path)}`",
            hint="the path is relative to the folder in which the command runs",
        )
    text = storage.read(place.name, limit=_MOST_FILE_BYTES).decode("utf-8", "surrogateescape")
    text = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    items = _ITEM.findall(text)
    found = dict(filter(None, map(_item, items))) if items else _lines(text)
    if not found:
        raise UsageError(
            f"the label map `{safe(path)}` names no class",
            hint='it has `item { id: 1 name: "cat" }` for each class, or one name per line',
        )
    return found


def _item(text: str) -> tuple[int, str] | None:
    number = _ID.search(text)
    name = next(filter(None, (pattern.search(text) for pattern in _NAMES)), None)
    if number is None or name is None:
        return None
    return int(number[1]), re.sub(r"\\(.)", r"\1", name[1] if name[1] is not None else name[2])


def _lines(text: str) -> LabelMap:
    return {number: line.strip() for number, line in enumerate(text.splitlines()) if line.strip()}


def class_name(names: Mapping[int, str], label: int) -> str:
    """A class in a message: its name, or its number if it has none."""
    name = names.get(label)
    return f"`{safe(name, limit=60)}`" if name else str(label)
