"""What numbers of classes are called: from a manifest, or from a file.

A file is a label map of TensorFlow's object detection (``item { id: 1 name: "raccoon" }``), or text
with one name a line, of which the first has number 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from tfrecreg.errors import UsageError
from tfrecreg.storage import LocalStorage
from tfrecreg.text import safe

__all__ = [
    "ClassCounts",
    "LabelMap",
    "Names",
    "class_name",
    "histogram",
    "named_classes",
    "read_label_map",
]


LabelMap = Mapping[int, str]
"""Number to name, for those numbers that have one."""

_MOST_FILE_BYTES = 1 << 24
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
    text = storage.read(place.name, limit=_MOST_FILE_BYTES).decode("utf-8", "surrogateescape")
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


_MOST_CLASSES = 100_000
_MOST_SHOWN = 1000
_MOST_NAMES = 10_000
_MOST_NAME_BYTES = 256


class ClassCounts:
    """Objects or records of each class. Mergeable; at most 100,000 classes."""

    # Packed, as there is one for every shard: see tfrecreg.scan.tally.Plain.
    plain_type = tuple[bool, bytes]

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.full = False
        """Whether there were more classes: then this says nothing."""

    def add(self, label: int, times: int = 1) -> None:
        """Count a class."""
        known = self.counts.get(label)
        if known is not None:
            self.counts[label] = known + times
        elif len(self.counts) < _MOST_CLASSES:
            self.counts[label] = times
        else:
            self.full = True

    def merge(self, other: ClassCounts) -> None:
        """Take in what was counted elsewhere."""
        self.full |= other.full
        for label, times in other.counts.items():
            self.add(label, times)

    def proper(self) -> dict[int, int]:
        """Without negative numbers, which are no classes: -1 mostly stands for no label."""
        return {label: times for label, times in self.counts.items() if label >= 0}

    def plain(self) -> tuple[bool, bytes]:
        return self.full, msgspec.msgpack.encode(self.counts)

    @classmethod
    def of_plain(cls, plain: tuple[bool, bytes]) -> ClassCounts:
        counts = cls()
        counts.full = plain[0]
        counts.counts = msgspec.msgpack.decode(plain[1], type=dict[int, int])
        return counts

    def __reduce__(self) -> tuple[object, ...]:
        return ClassCounts.of_plain, (self.plain(),)


def histogram(counts: Mapping[int, int], names: LabelMap) -> dict[str, int]:
    """Objects or records of each class by its number and name, in order of the numbers.

    Args:
        counts: number of a class to how often it was seen.
        names: what is known of the names; two classes may have the same one.

    Returns:
        empty where there are too many classes to look at.
    """
    if len(counts) > _MOST_SHOWN:
        return {}
    shown = {label: names.get(label, "") for label in sorted(counts)}
    return {
        f"{label} {name}" if name not in ("", str(label)) else str(label): counts[label]
        for label, name in shown.items()
    }


class Names:
    """What records call the numbers of classes, where nobody else says it. Mergeable; bounded."""

    plain_type = tuple[bool, bytes]

    def __init__(self) -> None:
        self._names: dict[int, list[bytes]] = {}
        self.full = False
        """Whether there were more: then not all is known."""

    def add(self, label: int, name: bytes) -> None:
        """Note that a record calls the class `label` so."""
        name = name[:_MOST_NAME_BYTES]
        known = self._names.get(label)
        if known is None:
            if len(self._names) >= _MOST_NAMES:
                self.full = True
                return
            self._names[label] = [name]
        elif name not in known and len(known) < 3:
            known.append(name)

    def merge(self, other: Names) -> None:
        """Take in what was noted elsewhere."""
        self.full |= other.full
        for label, names in other._names.items():
            for name in names:
                self.add(label, name)

    def conflicts(self) -> Iterator[str]:
        """One number with two names, or one name of two numbers; in order, for people."""
        numbers: dict[bytes, int] = {}
        for label, names in sorted(self._names.items()):
            if len(names) > 1:
                first, second = (_shown(name) for name in names[:2])
                yield f"{label} is called `{first}` and `{second}`"
            for name in names:
                other = numbers.setdefault(name, label)
                if other != label:
                    yield f"{other} and {label} are both called `{_shown(name)}`"

    def as_map(self) -> LabelMap:
        """Number to its first name."""
        return {label: names[0].decode("utf-8", "replace") for label, names in self._names.items()}

    def plain(self) -> tuple[bool, bytes]:
        return self.full, msgspec.msgpack.encode(self._names)

    @classmethod
    def of_plain(cls, plain: tuple[bool, bytes]) -> Names:
        names = cls()
        names.full = plain[0]
        names._names = msgspec.msgpack.decode(plain[1], type=dict[int, list[bytes]])
        return names

    def __reduce__(self) -> tuple[object, ...]:
        return Names.of_plain, (self.plain(),)


def _shown(name: bytes) -> str:
    return safe(name.decode("utf-8", "surrogateescape"), limit=60)


def class_name(names: Mapping[int, str], label: int) -> str:
    """A class for people: its name, or its number where it has none."""
    name = names.get(label)
    return f"`{safe(name, limit=60)}`" if name else str(label)
