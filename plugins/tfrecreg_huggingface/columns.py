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

from tfrecreg.api import RawDataError, feature_schema, image_schema, safe
from tfrecreg_huggingface.arrow import arrow
from tfrecreg_huggingface.data_files import Footers
from tfrecreg_huggingface.hub_types import HubType, HubTypes, TypePath

Form = Literal["value", "bytes", "image", "media", "class"]
SchemaType = Literal["BYTES", "FLOAT", "INT"]
_MAX_LEAVES = 10_000
_MAX_DEPTH = 16
_TEXT = "natural_language_domain {}"
_BINARY_FIELDS = {"bytes", "path"}
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
    label: str = ""
    """The feature of a class, and of its name."""
    text: str = ""
    is_complete: bool = False
    """Whether each row has a value, for all that is known."""
    is_named: bool = False
    """Whether each class has a name: none is -1, for all that is known."""

    @property
    def is_list(self) -> bool:
        """Whether a row has any number of values."""
        return any(step.startswith("[") for step in self.steps)

    def features(self) -> list[str]:
        """The names of all features."""
        if self.form == "image":
            parts = ("encoded", "format", "height", "width", "filename")
            return [f"{self.name}/{part}" for part in parts]
        if self.form == "media":
            return [f"{self.name}/encoded", f"{self.name}/filename"]
        if self.form == "class":
            return [self.label, self.text]
        return [self.name, *([f"{self.name}/row_lengths"] if self.row_lengths else [])]

    def schema(self) -> str:
        """The schema of its features."""
        count: Literal["one", "optional", "list"] = "list" if self.is_list else "optional"
        if self.is_complete and not self.is_list:
            count = "one"
        others: Literal["optional", "list"] = "list" if self.is_list else "optional"
        if self.form == "image":
            return image_schema(self.name, count) + feature_schema(
                f"{self.name}/filename", "BYTES", others, _TEXT
            )
        if self.form == "media":
            return feature_schema(f"{self.name}/encoded", "BYTES", count) + feature_schema(
                f"{self.name}/filename", "BYTES", others, _TEXT
            )
        if self.form == "class":
            lowest = 0 if self.is_named else -1
            bounds = f"min: {lowest} max: {len(self.names) - 1} " if self.names else ""
            domain = f"int_domain {{ {bounds}is_categorical: true }}"
            named = count if self.is_named else others
            return feature_schema(self.label, "INT", count, domain) + feature_schema(
                self.text, "BYTES", named, _TEXT
            )
        text = feature_schema(self.name, self.kind, count, _TEXT if self.is_text else "")
        if self.row_lengths:
            lengths = f"{self.name}/row_lengths"
            text += feature_schema(lengths, "INT", "list", "int_domain { min: 0 }")
        return text


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """The leaves of all columns, and the columns that are left out with the reason."""

    leaves: tuple[Leaf, ...]
    left_out: Mapping[str, str]


def plan_columns(footers: Footers, types: HubTypes, chosen: Sequence[str]) -> ColumnPlan:
    """The leaves of the columns."""
    schema = footers.schema
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise _unusable(f"the column `{safe(name)}` occurs twice")
    unknown = [name for name in chosen if name not in schema.names]
    if unknown:
        found = ", ".join(f"`{safe(name)}`" for name in schema.names[:20])
        raise RawDataError(
            f"there is no column `{safe(unknown[0])}`", hint=f"the columns are {found}"
        )
    drafts: list[Leaf] = []
    left_out: dict[str, str] = {}
    for column in schema:
        if chosen and column.name not in chosen:
            left_out[column.name] = "is not among those of the option `columns`"
            continue
        try:
            made = list(_leaves(column.name, column.type, (column.name,), (), types, 0))
        except _NoFeature as error:
            left_out[column.name] = str(error)
            continue
        drafts += made
        if len(drafts) > _MAX_LEAVES:
            raise _unusable(f"there are more than {_MAX_LEAVES} values in a row")
    if not drafts:
        raise _unusable("no column can become a feature")
    leaves = tuple(_named(drafts, footers, usual=True))
    if _clash(leaves) is not None:
        leaves = tuple(_named(drafts, footers, usual=False))
    clash = _clash(leaves)
    if clash is not None:
        raise _unusable(
            f"the columns {safe(clash[0])} and {safe(clash[1])} make the same feature "
            f"`{safe(clash[2])}`"
        )
    return ColumnPlan(leaves, left_out)


def exported_columns(footers: Footers, chosen: Sequence[str]) -> tuple[Leaf, ...]:
    """The leaves of columns that `tfrecreg export` wrote: a feature each, under the same name."""
    if not chosen:
        return ()
    found: list[Leaf] = []
    for column in footers.schema:
        if column.name in chosen:
            try:
                found += _leaves(column.name, column.type, (column.name,), (), {}, 0)
            except _NoFeature as error:
                raise _unusable(f"the column `{safe(column.name)}` {error}") from None
    if [leaf.column for leaf in found] != list(chosen):
        raise _unusable("they are not those of an export")
    return tuple(
        replace(leaf, form="value" if leaf.form == "value" else "bytes", row_lengths=False)
        for leaf in found
    )


def _clash(leaves: Sequence[Leaf]) -> tuple[str, str, str] | None:
    """Two columns and the feature that both make; None if there are none."""
    made_by: dict[str, str] = {}
    for leaf in leaves:
        for feature in leaf.features():
            other = made_by.setdefault(feature, leaf.column)
            if other != leaf.column or leaf.features().count(feature) > 1:
                return f"`{other}`", f"`{leaf.column}`", feature
    return None


class _NoFeature(Exception):
    """A type that no feature holds."""


def _leaves(
    column: str,
    kind: Any,
    path: TypePath,
    steps: tuple[str, ...],
    types: HubTypes,
    depth: int,
) -> Iterator[Leaf]:
    pa = arrow()

    if depth > _MAX_DEPTH:
        raise _unusable(f"the column `{safe(column)}` is nested more than {_MAX_DEPTH} deep")
    if isinstance(kind, pa.ExtensionType):
        kind = kind.storage_type
    hint = types.get(path)
    if hint is None and depth == 0 and _is_media(pa, kind):
        hint = HubType("image" if _is_called_image(column) else "media")
    if _is_list(pa, kind):
        step = FIXED if pa.types.is_fixed_size_list(kind) else LIST
        yield from _leaves(column, kind.value_type, path, (*steps, step), types, depth + 1)
        return
    if pa.types.is_struct(kind) and not (hint and hint.form in ("image", "media")):
        for number in range(kind.num_fields):
            each = kind.field(number)
            inner = (*path, each.name)
            yield from _leaves(
                column, each.type, inner, (*steps, f".{each.name}"), types, depth + 1
            )
        return
    lists = [step for step in steps if step in (LIST, FIXED)]
    ragged = lists[1:].count(LIST)
    if hint is not None and hint.form == "array":
        ragged = 0  # of one shape, which the metadata has
    if ragged > 1:
        raise _NoFeature(f"has lists in lists in lists ({kind})")
    name = "/".join(path)
    if ragged and hint is not None and hint.form != "class":
        raise _NoFeature("has images or sounds in lists of lists")
    if hint is not None and hint.form in ("image", "media"):
        if not (_is_media(pa, kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
            raise _NoFeature(f"should be {hint.form} data, and is {kind}")
        form: Form = "image" if hint.form == "image" else "media"
        yield Leaf(column, steps, form, "BYTES", name)
        return
    if hint is not None and hint.form == "class" and pa.types.is_integer(kind):
        yield Leaf(column, steps, "class", "INT", name, names=hint.names)
        return
    found, is_text = _value_kind(pa, kind)
    yield Leaf(column, steps, "value", found, name, is_text, row_lengths=ragged == 1)


def _named(drafts: Sequence[Leaf], footers: Footers, usual: bool) -> Iterator[Leaf]:
    """The leaves with the names of their features."""
    images = [each for each in drafts if each.form == "image" and not each.is_list]
    classes = [each for each in drafts if each.form == "class" and not each.is_list]
    for each in drafts:
        # As `path_in_schema` writes it; inside of lists it has other names.
        path = "".join((each.column, *each.steps))
        complete = footers.is_complete.get(path, False)
        if each.form == "image":
            complete = footers.is_complete.get(f"{path}.bytes", complete)
            is_usual = usual and len(images) == 1 and each in images
            name = "image" if is_usual else each.name
            yield replace(each, name=name, is_complete=complete)
        elif each.form == "media":
            complete = footers.is_complete.get(f"{path}.bytes", complete)
            yield replace(each, is_complete=complete)
        elif each.form == "class":
            only = usual and len(images) == 1 == len(classes) and each in classes
            prefix = "image/class" if only else each.name
            yield replace(
                each,
                label=f"{prefix}/label",
                text=f"{prefix}/text",
                is_complete=complete,
                is_named=footers.is_positive.get(path, False),
            )
        else:
            yield replace(each, is_complete=complete)


def _value_kind(pa: Any, kind: Any) -> tuple[SchemaType, bool]:
    """The kind of a feature, and whether it is text."""
    types = pa.types
    if types.is_dictionary(kind):
        return _value_kind(pa, kind.value_type)
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_temporal(kind):
        if str(kind) == "month_day_nano_interval":
            raise _NoFeature(f"has the type {kind}")
        return "INT", False
    if types.is_floating(kind):
        return "FLOAT", False
    if types.is_string(kind) or types.is_large_string(kind) or types.is_decimal(kind):
        return "BYTES", True
    if str(kind) == "string_view":
        return "BYTES", True
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return "BYTES", False
    raise _NoFeature(f"has the type {kind}")


def _is_list(pa: Any, kind: Any) -> bool:
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_media(pa: Any, kind: Any) -> bool:
    """Whether the type is that of images and sounds: a struct of bytes and a path."""
    return bool(
        pa.types.is_struct(kind)
        and {kind.field(number).name for number in range(kind.num_fields)} == _BINARY_FIELDS
    )


def _is_called_image(column: str) -> bool:
    return any(word in column.lower() for word in ("image", "img", "picture", "photo"))


def _unusable(why: str) -> RawDataError:
    return RawDataError(
        f"the columns cannot become features: {why}",
        hint="choose columns: `--option columns=NAME,NAME`",
    )
