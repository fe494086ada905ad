"""What numbers of classes are called: from a manifest, or from a file.

A file is a label map of TensorFlow's object detection (``item { id: 1 name: "raccoon" }``), or text
with one name a line, of which the first has number 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tfrecreg.errors import UsageError
from tfrecreg.storage import LocalStorage
from tfrecreg.text import safe

__all__ = ["LabelMap", "named_classes", "read_label_map"]

LabelMap = Mapping[int, str]
"""Number to name, for those numbers that have one."""

_MOST_BYTES = 1 << 24
_ITEM = re.compile(r"\bitem\s*:?\s*\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")
_STRING = r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'"
_ID = re.compile(r"\bid\s*:\s*(-?\d+)")
_NAMES = (
    re.compile(rf"\bname\s*:\s*(?:{_STRING})"),
    re.compile(rf"\bdisplay_name\s*:\s*(?:{_STRING})"),
)


def named_classes(names: Sequence[str]) -> LabelMap:
    """From the list of a manifest: names in order of their numbers, empty for numbers without."""
    return {number: name for number, name in enumerate(names) if name}


def read_label_map(path: str) -> LabelMap:
    """Read a file of class names.

    Raises:
        UsageError: there is none, or it names no class.
        StorageError: it cannot be read.
    """
    place = Path(path)
    storage = LocalStorage(place.parent)
    if storage.stat(place.name) is None:
        raise UsageError(
            f"there is no label map `{safe(path)}`",
            hint="the path of a label map is one from where the command runs",
        )
    text = storage.read(place.name, limit=_MOST_BYTES).decode("utf-8", "surrogateescape")
    text = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    items = _ITEM.findall(text)
    found = dict(filter(None, map(_item, items))) if items else _lines(text)
    if not found:
        raise UsageError(
            f"the label map `{safe(path)}` names no class",
            hint='it has `item { id: 1 name: "cat" }` for each class, or a name a line',
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
