"""What the numbers in records stand for: names of classes, and how a schema says values are read.

Equal records that are read otherwise are other examples to whoever trains on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tfrecreg.operations.diff.side import Side
from tfrecreg.schema.differ import compare_schemas
from tfrecreg.validators.annotations.label_map import named_classes

__all__ = ["Meaning", "compare_meaning"]

_UNITS = ("time_domain.", "time_of_day_domain.")
"""Fields of a feature that say what its numbers count."""
_COMPOSITES = ("sparse_feature", "weighted_feature")
_TENSORS = "tensor_representation_group["


class Meaning(NamedTuple):
    """What is read otherwise, and what has a meaning that had none; a reason each."""

    losses: tuple[str, ...] = ()
    gains: tuple[str, ...] = ()


def compare_meaning(before: Side, after: Side) -> Meaning:
    """What the records of two sides stand for, whether or not they are the same.

    Args:
        before: the first side.
        after: the second side.
    """
    losses, gains = list[str](), list[str]()
    old_maps, new_maps = before.manifest.labels, after.manifest.labels
    for feature in sorted({*old_maps, *new_maps}):
        old, new = _names(old_maps.get(feature, ())), _names(new_maps.get(feature, ()))
        other = sorted(number for number, name in old.items() if new.get(number) != name)
        more = len(new.keys() - old.keys())
        if other:
            losses.append(_lost(feature, old, new, other))
        elif more and old:
            gains.append(f"`{feature}` has {more} {'class' if more == 1 else 'classes'} more")
        elif more:
            gains.append(f"the classes of `{feature}` have names now")
    return Meaning((*losses, *_read_otherwise(before, after)), tuple(gains))


def _names(names: Sequence[str]) -> Mapping[int, str]:
    """The names by number, without those that only repeat the number."""
    return {number: name for number, name in named_classes(names).items() if name != str(number)}


def _lost(
    feature: str, old: Mapping[int, str], new: Mapping[int, str], other: Sequence[int]
) -> str:
    if not new:
        return f"the names of the classes of `{feature}` are gone"
    first = other[0]
    now = f"is `{new[first]}` now" if first in new else "has no name now"
    rest = f", and {len(other) - 1} more changed" if len(other) > 1 else ""
    return f"class {first} of `{feature}` was `{old[first]}` and {now}{rest}"


def _read_otherwise(before: Side, after: Side) -> Iterator[str]:
    """What both schemas say, differently, of how values are read.

    A schema that says less than before leaves the old examples what they were.
    """
    if before.schema is None or after.schema is None:
        return
    for change in compare_schemas(before.schema, after.schema):
        old, new = change.expected, change.found
        if old is None or new is None:
            continue
        shape = change.part == "feature" and change.field == "shape"
        fixed = "?" not in old and "?" not in new
        if (
            (shape and fixed)
            or change.part in _COMPOSITES
            or (change.field.startswith(_UNITS if change.part == "feature" else _TENSORS))
        ):
            what = f"`{change.name}`" if change.name else "the tensors"
            yield f"{what} should be read otherwise: `{change.field}` was {old} and is {new}"
