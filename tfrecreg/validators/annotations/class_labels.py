"""Classes: their names, from a manifest, a file or the records, and how often each occurs.

A file is a label map of TensorFlow's object detection (``item { id: 1 name: "raccoon" }``), or text
with one name per line, numbered from 0.
"""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tfrecreg.errors import UsageError
from tfrecreg.storage.local import LocalStorage
from tfrecreg.text import safe, safe_value

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


_MOST_CLASSES = 100_000
_MOST_SHOWN = 1000
_MOST_NAMES = 10_000
_NAMES_KEPT = 3
_MOST_NAME_BYTES = 256


@dataclass(slots=True)
class ClassCounts:
    """Objects or records by class. Mergeable; at most 100,000 classes."""

    counts: dict[int, int] = field(default_factory=dict)
    full: bool = False
    """Whether there were more classes: then the counts are not complete."""

    def add(self, label: int, times: int = 1) -> None:
        """Count a class `times` times."""
        known = self.counts.get(label)
        if known is not None:
            self.counts[label] = known + times
        elif len(self.counts) < _MOST_CLASSES:
            self.counts[label] = times
        else:
            self.full = True

    def merge(self, other: ClassCounts) -> None:
        """Add the counts of another shard."""
        self.full |= other.full
        for label, times in other.counts.items():
            self.add(label, times)

    def proper(self) -> dict[int, int]:
        """The counts without negative numbers: -1 usually means "no label"."""
        return {label: times for label, times in self.counts.items() if label >= 0}


def histogram(counts: Mapping[int, int], names: LabelMap) -> dict[str, int]:
    """Objects or records by number and name of their class, in order of the numbers.

    Args:
        counts: objects or records by class number.
        names: the known names; two classes may have the same one.

    Returns:
        Empty if there are too many classes to read.
    """
    if len(counts) > _MOST_SHOWN:
        return {}
    shown = {label: names.get(label, "") for label in sorted(counts)}
    return {
        f"{label} {name}" if name not in ("", str(label)) else str(label): counts[label]
        for label, name in shown.items()
    }


@dataclass(slots=True)
class ClassNames:
    """The names that records give to class numbers, without a label map. Mergeable; bounded."""

    names: dict[int, list[bytes]] = field(default_factory=dict)
    """Up to three names by number: the first in the order of their bytes, whoever is read first."""
    full: bool = False
    """Whether there were more names: then these are not complete."""

    def add(self, label: int, name: bytes) -> None:
        """Note the name that a record gives to the class `label`."""
        name = name[:_MOST_NAME_BYTES]
        known = self.names.get(label)
        if known is None:
            if len(self.names) >= _MOST_NAMES:
                self.full = True
                return
            self.names[label] = [name]
        elif name not in known:
            insort(known, name)
            del known[_NAMES_KEPT:]

    def merge(self, other: ClassNames) -> None:
        """Add the names of another shard."""
        self.full |= other.full
        for label, names in other.names.items():
            for name in names:
                self.add(label, name)

    def conflicts(self) -> Iterator[str]:
        """Messages about numbers with two names and names with two numbers, in order."""
        numbers: dict[bytes, int] = {}
        for label, names in sorted(self.names.items()):
            if len(names) > 1:
                first, second = (safe_value(name) for name in names[:2])
                yield f"{label} is called `{first}` and `{second}`"
            for name in names:
                other = numbers.setdefault(name, label)
                if other != label:
                    yield f"{other} and {label} are both called `{safe_value(name)}`"

    def as_map(self) -> LabelMap:
        """The first name of each number."""
        return {label: names[0].decode("utf-8", "replace") for label, names in self.names.items()}


def class_name(names: Mapping[int, str], label: int) -> str:
    """A class in a message: its name, or its number if it has none."""
    name = names.get(label)
    return f"`{safe(name, limit=60)}`" if name else str(label)
