"""Classes of the records: how often each occurs, and the names beside their numbers."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tfrecreg.core.values.label_maps import LabelMap
from tfrecreg.core.values.text import safe_value

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
    """Objects or records by number and name of their class, in order of the numbers."""
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
    """Up to three names by number: the first in the order of their bytes, in any reading order."""
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
