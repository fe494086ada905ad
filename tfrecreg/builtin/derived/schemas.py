"""Merges the class names and schemas of several parents, and changes records accordingly."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from tfrecreg.builtin.derived.parents import Ancestor, renames
from tfrecreg.core.example.model import Example, Feature, Kind
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.schema.labels import AnnotationsOptions, labels_of
from tfrecreg.core.schema.proto import canonical_text, parse_schema, schema_message
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import did_you_mean, safe

_OF_CLASS = "class/label"


class UnfitRecord(Exception):
    """A record whose classes cannot be changed. The text is the reason."""


@dataclass(frozen=True, slots=True)
class ClassChange:
    """The changes to the class numbers in one feature of one parent. Picklable."""

    feature: str
    text: str | None
    """The feature with the class names; None if it is unknown."""
    objects: str
    """The prefix of all features of objects, such as ``image/object/``; empty if the classes belong
    to whole records.
    """
    numbers: Mapping[int, int | None]
    """The new number for each old number; None if the class is left out."""
    texts: Mapping[bytes, bytes]
    """The new name for each old name that changes."""
    same: bool
    """Whether all class numbers stay the same."""

    def mapped(self, feature: Feature) -> list[int | None]:
        """The new class number of each value. Negative numbers have no names and do not change."""
        found: list[int | None] = []
        for number in feature.values:
            if number >= 0 and number not in self.numbers:
                raise UnfitRecord(
                    f"`{safe(self.feature)}` is {number}, which the label map does not name"
                )
            found.append(self.numbers[number] if number >= 0 else number)
        return found


@dataclass(frozen=True, slots=True)
class Classes:
    """The label maps of a dataset, and the class changes for each parent's records. Picklable."""

    labels: Mapping[str, Sequence[str]]
    by_parent: tuple[tuple[ClassChange, ...], ...] = field(repr=False)
    """For each parent in order, the changes to its features with class numbers."""


def merge_classes(parents: Sequence[Ancestor], asked: tuple[str, ...]) -> Classes:
    """Merge label maps: classes with the same name become one class.

    The first parent's numbers are kept, and further classes follow. If a class is renamed or left
    out, all classes are renumbered in this order, from the first number of the first parent.
    """
    changed = {old: new or "" for old, new in renames("classes", asked, alone=False).items()}
    features = {name: None for each in parents for name in each.labels if name in each.features}
    known = {
        name for each in parents for feature in features for name in each.labels.get(feature, ())
    }
    for old in changed:
        if old not in known:
            raise UsageError(
                f"`classes` names `{old}`, which no parent has{did_you_mean(old, known)}"
            )
    labels: dict[str, Sequence[str]] = {}
    for feature in features:
        _expect_named(feature, parents)
        lists = [each.labels[feature] for each in parents if feature in each.labels]
        labels[feature] = _merged(lists, changed)
    by_parent = tuple(
        tuple(
            _change(each, feature, labels[feature], changed)
            for feature in features
            if feature in each.labels
        )
        for each in parents
    )
    labels.update(_others(parents, labels, by_parent))
    return Classes(labels, by_parent)


def _expect_named(feature: str, parents: Sequence[Ancestor]) -> None:
    """Refuse class numbers that have names in one parent but not in another."""
    for each in parents:
        if feature in each.features and feature not in each.labels:
            named = next(other for other in parents if feature in other.labels)
            raise UsageError(
                f"`{feature}` has class names in the parent `{named.name}`, but none in "
                f"`{each.name}`"
            )


def _merged(lists: Sequence[Sequence[str]], changed: Mapping[str, str]) -> list[str]:
    if changed.keys().isdisjoint(name for names in lists for name in names):
        merged = list(lists[0])
        for names in lists[1:]:
            merged += [name for name in dict.fromkeys(names) if name and name not in merged]
        return merged
    first = lists[0]
    start = next((number for number, name in enumerate(first) if name), 0)
    kept = (changed.get(name, name) for names in lists for name in names)
    return [""] * start + list(dict.fromkeys(filter(None, kept)))


def _change(
    parent: Ancestor, feature: str, merged: Sequence[str], changed: Mapping[str, str]
) -> ClassChange:
    names = parent.labels[feature]
    places = {name: number for number, name in reversed(list(enumerate(merged))) if name}
    numbers: dict[int, int | None] = {}
    for number, name in enumerate(names):
        if name:
            new = changed.get(name, name)
            numbers[number] = places[new] if new else None
        elif number < len(merged) and not merged[number]:
            numbers[number] = number
    same = list(names) == list(merged)
    prefix = feature.removesuffix(_OF_CLASS) if feature.endswith(f"/{_OF_CLASS}") else ""
    is_of_objects = f"{prefix}bbox/xmin" in parent.features
    return ClassChange(
        feature=feature,
        text=dict(labels_of(AnnotationsOptions(), [feature]))[feature],
        objects=prefix if prefix and is_of_objects else "",
        numbers={number: number for number in range(len(names))} if same else numbers,
        texts={old.encode(): new.encode() for old, new in changed.items() if new},
        same=same and changed.keys().isdisjoint(names),
    )


def _others(
    parents: Sequence[Ancestor],
    merged: Collection[str],
    by_parent: tuple[tuple[ClassChange, ...], ...],
) -> Iterator[tuple[str, Sequence[str]]]:
    """The label maps of other features, such as names of keypoints or original ids of classes."""
    moved = {each.feature for changes in by_parent for each in changes if not each.same}
    for name in dict.fromkeys(name for each in parents for name in each.labels):
        if name in merged:
            continue
        label = f"{name.removesuffix('/id')}/label"
        if name.endswith("/id") and label in merged:
            owners = [each for each in parents if label in each.labels]
            if label in moved or any(
                each.labels.get(name) != owners[0].labels.get(name) for each in owners
            ):
                continue  # the ids belong to other numbers
        first = next(each for each in parents if name in each.labels)
        for each in parents:
            if name in each.labels and list(each.labels[name]) != list(first.labels[name]):
                raise UsageError(
                    f"the parents `{first.name}` and `{each.name}` have different label maps for "
                    f"`{name}`"
                )
        yield name, first.labels[name]


def classes_in(example: Example, changes: Sequence[ClassChange]) -> set[tuple[str, int]] | None:
    """The classes that a record has after the changes, each as a feature and a class number. None
    if the record is left out, because the changes leave out all classes of the whole record. If
    only objects are left out, the record stays.
    """
    found: set[tuple[str, int]] = set()
    for change in changes:
        feature = example.get(change.feature)
        if feature is None or feature.kind is not Kind.INT64 or not feature.count:
            continue
        numbers = [change.numbers.get(number, number) for number in feature.values]
        if not change.objects and all(number is None for number in numbers):
            return None
        found.update((change.feature, number) for number in numbers if number is not None)
    return found


def change_classes(example: Example, changes: Sequence[ClassChange]) -> tuple[Example, int]:
    """The record with new class numbers and names, and the number of values left out."""
    made, left_out = dict(example), 0
    for change in changes:
        feature = made.get(change.feature)
        if change.same or feature is None or feature.kind is not Kind.INT64:
            continue
        numbers = change.mapped(feature)
        kept = [place for place, number in enumerate(numbers) if number is not None]
        here = len(numbers) - len(kept)
        left_out += here
        text = made.get(change.text) if change.text is not None else None
        if here and change.objects:
            texts = {change.text} if change.text is not None else set()
            others = {
                name: each
                for name, each in made.items()
                if name.startswith(change.objects) and name not in {change.feature, *texts}
            }
            made.update(_picked_objects(others, change.objects, len(numbers), kept))
        new = [number for number in numbers if number is not None]
        if list(feature.values) != new:
            made[change.feature] = int64_feature(new)
        if text is not None and text.kind is Kind.BYTES and change.text is not None:
            names = text.values
            if here and text.count:
                if text.count != len(numbers):
                    raise _other_lengths(change.text, text.count, len(numbers))
                names = tuple(names[place] for place in kept)
            names = tuple(change.texts.get(name, name) for name in names)
            if names != text.values:
                made[change.text] = bytes_feature(names)
    return made, left_out


def _picked_objects(
    features: Example, prefix: str, count: int, kept: Sequence[int]
) -> Iterator[tuple[str, Feature]]:
    """Yield the features below `prefix`, reduced to the values of the kept objects.

    In a feature, every object has the same number of values. Only polygons differ: the parts of an
    object, and the points of a part, vary in number.
    """
    polygon = f"{prefix}polygon/"
    parts, points = features.get(f"{polygon}parts"), features.get(f"{polygon}points")
    nested: dict[str, tuple[int, Sequence[int]]] = {}
    if parts is not None and points is not None and parts.count == count:
        kept_parts = _places(parts.values, kept)
        kept_points = _places(points.values, kept_parts)
        nested[f"{polygon}points"] = sum(parts.values), kept_parts
        nested |= {f"{polygon}{axis}": (sum(points.values), kept_points) for axis in "xy"}
    for name, feature in features.items():
        whole, places = nested.get(name, (count, kept))
        if not feature.count:
            continue
        each, rest = divmod(feature.count, whole) if whole else (0, 1)
        if rest or not each or (name in nested and each != 1):
            raise _other_lengths(name, feature.count, whole)
        yield name, _picked(feature, [place * each + at for place in places for at in range(each)])


def _places(counts: Sequence[int], kept: Sequence[int]) -> list[int]:
    """The places of the values of kept objects. `counts` has the number of values per object."""
    ends = list(accumulate(counts))
    return [place for each in kept for place in range(ends[each] - counts[each], ends[each])]


def _picked(feature: Feature, places: Sequence[int]) -> Feature:
    if feature.kind is Kind.FLOAT:
        bits = feature.packed_floats
        return float_feature(b"".join(bits[4 * place : 4 * place + 4] for place in places))
    values = feature.values
    chosen = [values[place] for place in places]
    return bytes_feature(chosen) if feature.kind is Kind.BYTES else int64_feature(chosen)


def _other_lengths(name: str, found: int, expected: int) -> UnfitRecord:
    return UnfitRecord(f"`{safe(name)}` has {found} values for {expected} objects")


_WIDENED = ("presence", "int_domain", "float_domain", "string_domain", "value_count")
"""Fields of a feature's declaration that are widened if parents differ."""
_BOUNDS = {"min_fraction": min, "min_count": min, "min": min, "max": max}
"""Fields of these fields, and the function that finds the wider of two bounds."""


def merge_schemas(parents: Sequence[Ancestor], classes: Classes, chosen: Mapping[str, str]) -> str:
    """The text of the merged schema. If all parents have the same schema and nothing changes, its
    text is kept.
    """
    texts = {each.schema for each in parents}
    changed = any(not each.same for changes in classes.by_parent for each in changes)
    as_is = all(old == new for old, new in chosen.items())
    messages = [schema_message(parse_schema(each.schema, each.name)) for each in parents]
    declared = {feature.name for message in messages for feature in message.feature}
    if len(texts) == 1 and not changed and as_is and declared <= chosen.keys():
        return parents[0].schema
    merged = messages[0]
    by_name = {feature.name: feature for feature in merged.feature}
    first = dict.fromkeys(by_name, parents[0])
    for parent, message in zip(parents[1:], messages[1:], strict=True):
        here = {feature.name: feature for feature in message.feature}
        for name, feature in here.items():
            if name not in chosen:
                continue
            if name in by_name:
                _widen(by_name[name], feature, (first[name], parent))
            else:
                by_name[name] = merged.feature.add()
                by_name[name].CopyFrom(feature)
                by_name[name].ClearField("presence")
                first[name] = parent
        for name in by_name.keys() - here.keys():
            by_name[name].ClearField("presence")
        _add_domains(merged, message, parent)
    _renumber(by_name.values(), classes)
    kept = [feature for feature in merged.feature if feature.name in chosen]
    for feature in kept:
        feature.name = chosen[feature.name]
    # A sparse or weighted feature is kept if all its parts are kept under their old names.
    same = {old for old, new in chosen.items() if old == new}
    sparse = [
        each
        for each in merged.sparse_feature
        if {each.value_feature.name, *(index.name for index in each.index_feature)} <= same
    ]
    weighted = [
        each
        for each in merged.weighted_feature
        if {"/".join(each.feature.step), "/".join(each.weight_feature.step)} <= same
    ]
    # The constraints describe the records of the parents.
    for group in ("feature", "sparse_feature", "weighted_feature", "dataset_constraints"):
        merged.ClearField(group)
    merged.feature.extend(kept)
    merged.sparse_feature.extend(sparse)
    merged.weighted_feature.extend(weighted)
    return canonical_text(merged, "")


def _widen(feature: Any, other: Any, parents: tuple[Ancestor, Ancestor]) -> None:
    """Widen a declaration so that it also accepts what another declaration accepts."""
    fixed = feature.HasField("shape") and other.HasField("shape")
    rest = [deepcopy(each) for each in (feature, other)]
    for copy in rest:
        for name in (*_WIDENED, *(() if fixed else ("shape",))):
            copy.ClearField(name)
    if rest[0] != rest[1]:
        raise UsageError(
            f"the schemas of the parents `{parents[0].name}` and `{parents[1].name}` declare "
            f"`{feature.name}` differently: `--option features={feature.name}=` leaves it out"
        )
    if not fixed:  # one declaration allows several numbers of values
        feature.ClearField("shape")
    for name in _WIDENED:
        if not (feature.HasField(name) and other.HasField(name)):
            feature.ClearField(name)
            continue
        mine, others = getattr(feature, name), getattr(other, name)
        if name == "string_domain":
            mine.value.extend(each for each in others.value if each not in mine.value)
        for bound in _BOUNDS.keys() & mine.DESCRIPTOR.fields_by_name.keys():
            if mine.HasField(bound) and others.HasField(bound):
                wider = _BOUNDS[bound](getattr(mine, bound), getattr(others, bound))
                setattr(mine, bound, wider)
            else:
                mine.ClearField(bound)
        for flag in ("disallow_nan", "disallow_inf") if name == "float_domain" else ():
            if not getattr(others, flag):
                mine.ClearField(flag)


def _add_domains(merged: Any, message: Any, parent: Ancestor) -> None:
    """Add a schema's other declarations: named domains, sparse and weighted features."""
    groups = ("string_domain", "int_domain", "float_domain", "sparse_feature", "weighted_feature")
    for group in groups:
        known = {each.name: each for each in getattr(merged, group)}
        for each in getattr(message, group):
            if each.name not in known:
                getattr(merged, group).add().CopyFrom(each)
            elif known[each.name] != each:
                raise UsageError(
                    f"the schemas of `{parent.name}` and of an earlier parent declare the {group} "
                    f"`{each.name}` differently"
                )


def _renumber(features: Iterable[Any], classes: Classes) -> None:
    """Adapt the domains of class numbers and names to the merged label maps."""
    lengths: dict[str, int] = {}  # numbers without a name count
    texts: dict[str, tuple[Mapping[bytes, bytes], set[str]]] = {}
    for changes in classes.by_parent:
        for change in changes:
            lengths[change.feature] = len(classes.labels[change.feature])
            if change.text is not None:
                texts[change.text] = change.texts, set(classes.labels[change.feature])
    for feature in features:
        if feature.name in lengths and feature.int_domain.HasField("max"):
            feature.int_domain.max = max(lengths[feature.name] - 1, 0)
        if feature.name in texts and feature.HasField("string_domain"):
            renamed, known = texts[feature.name]
            before = [each.encode() for each in feature.string_domain.value]
            names = dict.fromkeys(renamed.get(each, each).decode() for each in before)
            del feature.string_domain.value[:]
            feature.string_domain.value.extend(each for each in names if each in known)
