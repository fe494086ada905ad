"""Arrow's types to features, and their part of the schema. ``docs/sources/huggingface.md`` has the
rule.

Columns are taken apart into leaves: a field of a struct is one of its own, and a list has as many
values as it has. So each leaf is one value, a list of values, or lists of lists, whose values are
joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from tfrecreg.api import RawDataError, feature_schema, image_schema, listed, safe
from tfrecreg_huggingface.data_files import Footers
from tfrecreg_huggingface.hub_types import HubType, HubTypes, TypePath

Form = Literal["value", "bytes", "image", "media", "class"]
SchemaType = Literal["BYTES", "FLOAT", "INT"]
_TEXT = "natural_language_domain {}"
LIST, FIXED = "[]", "[#]"
"""Steps into lists: of any length, of one length."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One kind of values of a column. Picklable."""

    column: str
    steps: tuple[str, ...]
    """How to get there from the column: ``.NAME`` for a field of a struct, ``[]`` for a list,
    ``[#]`` for one of fixed length."""
    form: Form
    kind: SchemaType
    name: str
    """The feature, or what the names of its features begin with."""
    is_text: bool = False
    row_lengths: bool = False
    """Whether the lengths of inner lists are a feature, since they vary."""
    names: tuple[str, ...] = ()
    """Names of classes."""
    is_complete: bool = False
    """Whether each row has a value, for all that is known."""
    is_named: bool = False
    """Whether each class has a name: none is -1, for all that is known."""

    @property
    def is_list(self) -> bool:
        """Whether a row has any number of values."""
        return bool({LIST, FIXED} & {*self.steps})

    @property
    def features(self) -> list[str]:
        """The names of all features, the main one first."""
        parts = {
            "image": ["/encoded", "/format", "/height", "/width", "/filename"],
            "media": ["/encoded", "/filename"],
            "class": ["/label", "/text"],
        }
        some = parts.get(self.form, ["", "/row_lengths"] if self.row_lengths else [""])
        return [self.name + part for part in some]

    def schema(self) -> str:
        """The schema of its features."""
        others: Literal["optional", "list"] = "list" if self.is_list else "optional"
        count: Literal["one", "optional", "list"] = others
        if self.is_complete and not self.is_list:
            count = "one"
        names = self.features
        if self.form == "image":
            text = image_schema(self.name, count)
            return text + feature_schema(names[-1], "BYTES", others, _TEXT)
        if self.form == "media":
            text = feature_schema(names[0], "BYTES", count)
            return text + feature_schema(names[-1], "BYTES", others, _TEXT)
        if self.form == "class":
            lowest = 0 if self.is_named else -1
            bounds = f"min: {lowest} max: {len(self.names) - 1} " if self.names else ""
            text = feature_schema(
                names[0], "INT", count, f"int_domain {{ {bounds}is_categorical: true }}"
            )
            return text + feature_schema(
                names[1], "BYTES", count if self.is_named else others, _TEXT
            )
        text = feature_schema(self.name, self.kind, count, _TEXT if self.is_text else "")
        if self.row_lengths:
            text += feature_schema(names[1], "INT", "list", "int_domain { min: 0 }")
        return text


class _NoFeature(Exception):
    """A type that no feature holds."""


def plan_columns(
    footers: Footers, types: HubTypes, chosen: Sequence[str]
) -> tuple[tuple[Leaf, ...], Mapping[str, str]]:
    """The leaves of all columns, and the columns that are left out with the reason."""
    names: list[str] = footers.schema.names
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise _unusable(f"the column `{safe(twice)}` occurs twice")
    unknown = [name for name in chosen if name not in names]
    if unknown:
        raise RawDataError(
            f"there is no column `{safe(unknown[0])}`",
            hint=f"the columns are {listed(names, most=20)}",
        )
    drafts: list[Leaf] = []
    left_out: dict[str, str] = {}
    for column in footers.schema:
        if chosen and column.name not in chosen:
            left_out[column.name] = "is not among those of the option `columns`"
            continue
        try:
            drafts += list(_leaves(column.name, column.type, (column.name,), (), types))
        except _NoFeature as error:
            left_out[column.name] = str(error)
    if not drafts:
        raise _unusable("no column can become a feature")
    leaves = [_with_statistics(leaf, footers) for leaf in drafts]
    usual = [*_usual_names(leaves)]
    found = usual if _clash(usual) is None else leaves
    clash = _clash(found)
    if clash is not None:
        raise _unusable(
            f"the columns `{safe(clash[0])}` and `{safe(clash[1])}` make the same feature "
            f"`{safe(clash[2])}`"
        )
    return tuple(found), left_out


def exported_columns(footers: Footers, chosen: Sequence[str]) -> tuple[Leaf, ...]:
    """The leaves of columns that `tfrecreg export` wrote: a feature each, under the same name."""
    found: list[Leaf] = []
    for column in footers.schema:
        if column.name in chosen:
            try:
                found += _leaves(column.name, column.type, (column.name,), (), {})
            except _NoFeature as error:
                raise _unusable(f"the column `{safe(column.name)}` {error}") from None
    if [leaf.column for leaf in found] != list(chosen):
        raise _unusable("they are not those of an export")
    return tuple(
        replace(leaf, form="value" if leaf.form == "value" else "bytes", row_lengths=False)
        for leaf in found
    )


def _leaves(
    column: str, kind: Any, path: TypePath, steps: tuple[str, ...], types: HubTypes
) -> Iterator[Leaf]:
    if isinstance(kind, pa.ExtensionType):
        kind = kind.storage_type
    hint = types.get(path)
    is_struct = pa.types.is_struct(kind)
    fields = [kind.field(number) for number in range(kind.num_fields)] if is_struct else []
    is_media = {each.name for each in fields} == {"bytes", "path"}
    if hint is None and not steps and is_media:
        words = ("image", "img", "picture", "photo")
        is_image = any(word in column.lower() for word in words)
        hint = HubType("image" if is_image else "media")
    form = hint.form if hint is not None else "value"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        step = FIXED if pa.types.is_fixed_size_list(kind) else LIST
        yield from _leaves(column, kind.value_type, path, (*steps, step), types)
        return
    if is_struct and form not in ("image", "media"):
        for each in fields:
            inner = (*steps, f".{each.name}")
            yield from _leaves(column, each.type, (*path, each.name), inner, types)
        return
    lists = [step for step in steps if step in (LIST, FIXED)]
    ragged = lists[1:].count(LIST)
    if form == "array":
        form, ragged = "value", 0  # of one shape, which the metadata has
    if ragged > 1:
        raise _NoFeature(f"has lists in lists in lists ({kind})")
    name = "/".join(path)
    if form in ("image", "media"):
        if ragged:
            raise _NoFeature("has images or sounds in lists of lists")
        if not (is_media or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
            raise _NoFeature(f"should be {form} data, and is {kind}")
        yield Leaf(column, steps, "image" if form == "image" else "media", "BYTES", name)
    elif hint is not None and form == "class" and pa.types.is_integer(kind):
        yield Leaf(column, steps, "class", "INT", name, names=hint.names)
    else:
        found, is_text = _value_kind(kind)
        yield Leaf(column, steps, "value", found, name, is_text, row_lengths=ragged == 1)


def _with_statistics(leaf: Leaf, footers: Footers) -> Leaf:
    # As `path_in_schema` writes it; inside of lists it has other names.
    path = "".join((leaf.column, *leaf.steps))
    complete = footers.is_complete.get(path, False)
    if leaf.form in ("image", "media"):
        complete = footers.is_complete.get(f"{path}.bytes", complete)
    named = leaf.form == "class" and footers.is_positive.get(path, False)
    return replace(leaf, is_complete=complete, is_named=named)


def _usual_names(leaves: Sequence[Leaf]) -> Iterator[Leaf]:
    """The leaves, the only image and the only class beside it by the names that tools know."""
    images = [each for each in leaves if each.form == "image" and not each.is_list]
    classes = [each for each in leaves if each.form == "class" and not each.is_list]
    for each in leaves:
        if [each] == images:
            yield replace(each, name="image")
        elif [each] == classes and len(images) == 1:
            yield replace(each, name="image/class")
        else:
            yield each


def _clash(leaves: Sequence[Leaf]) -> tuple[str, str, str] | None:
    """Two columns and the feature that both make; None if there are none."""
    made_by: dict[str, str] = {}
    for leaf in leaves:
        for feature in leaf.features:
            if feature in made_by:
                return made_by[feature], leaf.column, feature
            made_by[feature] = leaf.column
    return None


def _value_kind(kind: Any) -> tuple[SchemaType, bool]:
    """The kind of a feature, and whether it is text."""
    types = pa.types
    if types.is_dictionary(kind):
        return _value_kind(kind.value_type)
    if types.is_boolean(kind) or types.is_integer(kind):
        return "INT", False
    if types.is_temporal(kind) and str(kind) != "month_day_nano_interval":
        return "INT", False
    if types.is_floating(kind):
        return "FLOAT", False
    if types.is_string(kind) or types.is_large_string(kind) or types.is_decimal(kind):
        return "BYTES", True
    if str(kind) == "string_view":  # a type that pyarrow 10 does not have
        return "BYTES", True
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return "BYTES", False
    raise _NoFeature(f"has the type {kind}")


def _unusable(why: str) -> RawDataError:
    return RawDataError(
        f"the columns cannot become features: {why}",
        hint="choose columns: `--option columns=NAME,NAME`",
    )
