"""Two records, feature by feature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from blake3 import blake3

from tfrecreg.example import Example, Feature, Kind
from tfrecreg.operations.diff.payloads import Read
from tfrecreg.operations.diff.side import Side
from tfrecreg.schema import Feature as SchemaFeature
from tfrecreg.schema import IntDomain, StringDomain

__all__ = ["Labels", "RecordChange", "compare", "picture_digest", "pictures_of"]

PAYLOAD = ""
"""Stands for the whole payload, where one of two is no Example."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordChange:
    """What differs between two records."""

    added: tuple[str, ...] = ()
    """Features that only the second one has, by name, sorted."""
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Features whose kind or values differ. The empty name stands for the payload as a whole,
    where one of the two is no Example."""
    labels: tuple[tuple[str, str, str], ...] = ()
    """Feature, label before, label after."""

    @property
    def keeps_all(self) -> bool:
        """Whether all features of the first one are unchanged in the second."""
        return not self.removed and not self.changed


@dataclass(frozen=True, slots=True)
class Labels:
    """Which features are labels, and what their numbers are called on each side."""

    features: tuple[str, ...]
    before: Mapping[str, Sequence[str]]
    after: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, before: Side, after: Side) -> Labels:
        """Those that the schemas say are labels or classes, and those that have names."""
        names = {*before.manifest.labels, *after.manifest.labels}
        for side in (before, after):
            if side.schema is not None:
                names.update(side.schema.labels())
                names.update(each.name for each in side.schema.features if _is_class(each))
        return cls(tuple(sorted(names)), before.manifest.labels, after.manifest.labels)

    def changes(self, before: Example, after: Example) -> Iterator[tuple[str, str, str]]:
        """Feature, label before, label after, for each label that differs."""
        for name in self.features:
            old, new = before.get(name), after.get(name)
            if old is None or new is None or old == new:
                continue
            shown = _label(old, self.before.get(name, ())), _label(new, self.after.get(name, ()))
            yield name, *shown


def _is_class(feature: SchemaFeature) -> bool:
    domain = feature.domain
    return isinstance(domain, IntDomain | StringDomain) and domain.is_categorical


def _label(feature: Feature, names: Sequence[str]) -> str:
    """One value with its name, or how many values there are."""
    if feature.count != 1:
        return f"({feature.count} values)"
    (value,) = feature.values
    if isinstance(value, bytes):
        return value[:_LABEL_BYTES].decode("utf-8", "surrogateescape")
    if isinstance(value, int) and 0 <= value < len(names) and names[value] != str(value):
        return f"{value} ({names[value]})"
    return str(value)


_LABEL_BYTES = 100


def compare(before: Read, after: Read, labels: Labels) -> RecordChange:
    """What differs between two records.

    Args:
        before: the first one.
        after: the second one.
        labels: which features are labels.
    """
    old, new = before.example, after.example
    if old is None or new is None:
        return RecordChange(changed=(PAYLOAD,))
    return RecordChange(
        added=tuple(sorted(name for name in new if name not in old)),
        removed=tuple(sorted(name for name in old if name not in new)),
        changed=tuple(sorted(name for name in old if name in new and old[name] != new[name])),
        labels=tuple(labels.changes(old, new)),
    )


def pictures_of(before: Side, after: Side) -> tuple[str, ...]:
    """The features that hold encoded pictures on both sides, by their schemas, sorted."""
    if before.schema is None or after.schema is None:
        return ()
    return tuple(sorted({*before.schema.images()} & {*after.schema.images()}))


def picture_digest(read: Read, pictures: Sequence[str]) -> bytes | None:
    """16 bytes that name the pictures of a record; None where it has none.

    Args:
        read: the record.
        pictures: features that hold encoded pictures, sorted.
    """
    if read.example is None:
        return None
    hasher, found = blake3(), False
    for name in pictures:
        feature = read.example.get(name)
        if feature is None or feature.kind is not Kind.BYTES:
            continue
        for value in feature.values:
            if value:
                found = True
                hasher.update(len(value).to_bytes(8, "little"))
                hasher.update(value)
        hasher.update(b"\xff" * 8)
    return hasher.digest(16) if found else None
