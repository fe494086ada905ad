"""How often each class is there, and what records call it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from tfrecreg.text import safe
from tfrecreg.validators.annotations.label_map import LabelMap

__all__ = ["ClassCounts", "Names", "class_name", "histogram"]

_MOST_CLASSES = 100_000
_MOST_SHOWN = 1000
_MOST_NAMES = 10_000
_MOST_BYTES = 256


class ClassCounts:
    """Objects or records of each class. Mergeable; at most 100,000 classes."""

    # Packed, as there is one for every shard: see tfrecreg.scan.codec.Plain.
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
        name = name[:_MOST_BYTES]
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
