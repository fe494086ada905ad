"""Columns: their types in Arrow and Hugging Face, their features, and the values of a row.

``docs/sources/tables.md`` has the rules for features.

Columns are split into leaves. Each field of a struct becomes a leaf, even if the struct is in a
list. So a leaf is one value, a list of values, or nested lists. The values of nested lists are
joined into one list.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from tfrecreg.api import (
    Example,
    RawDataError,
    SkipImage,
    bytes_feature,
    feature_schema,
    float_feature,
    image_schema,
    int64_feature,
    listed,
    read_header,
    safe,
    truncation_text,
)
from tfrecreg_huggingface.source import Listing, unusable_readme

TypePath = tuple[str, ...]


class HubType(NamedTuple):
    """The meaning of a value."""

    form: Literal["image", "media", "class", "array"]
    names: tuple[str, ...] = ()
    """Class names in order of their numbers."""


HubTypes = Mapping[TypePath, HubType]
_Found = Iterator[tuple[TypePath, HubType]]


def hub_types(metadata: Mapping[bytes, bytes], features: Any) -> HubTypes:
    """The types of images, sounds, class names and arrays, by path. A type in the schema's metadata
    replaces the type that the README's `features` give to the same path.

    These types supplement Arrow's types. A path consists of the name of the column and the names of
    the fields of structs. Lists add nothing to the path.
    """
    text = metadata.get(b"huggingface")
    try:
        found = dict(_of_yaml((), features))
        return found | dict(_of_json((), json.loads(text)["info"]["features"]) if text else ())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise unusable_readme(
            f"cannot read the features in the README or in the Parquet files: {error!r}"
        ) from None


def _of_json(path: TypePath, node: Any) -> _Found:
    if isinstance(node, list):  # an older notation for lists
        node = {"_type": "List", "feature": node[0]}
    kind = node.get("_type")
    if not isinstance(kind, str):  # a struct
        for name, each in node.items():
            yield from _of_json((*path, name), each)
    elif "feature" in node or kind == "Sequence":
        yield from _of_json(path, node["feature"])
    else:
        yield from _leaf(path, kind.lower(), node)


def _of_yaml(path: TypePath, nodes: Any) -> _Found:
    for node in nodes if isinstance(nodes, list) else [nodes]:
        if isinstance(node, str):
            yield from _leaf(path, node, {})
            continue
        here = (*path, str(node["name"])) if "name" in node else path
        for inner in ("sequence", "list", "struct", "large_list"):
            if inner in node:
                yield from _of_yaml(here, node[inner])
        dtype = node.get("dtype", node)
        if isinstance(dtype, str):
            yield from _leaf(here, dtype, {})
        for kind in dtype if isinstance(dtype, dict) else ():
            yield from _leaf(here, str(kind).replace("_", ""), dtype[kind])


def _leaf(path: TypePath, kind: str, node: Any) -> _Found:
    forms: dict[str, Literal["image", "media"]] = {"image": "image"}
    forms |= dict.fromkeys(("audio", "video", "pdf"), "media")
    if kind == "classlabel":
        yield path, HubType("class", _names(node["names"]))
    elif kind.startswith("array"):
        yield path, HubType("array")
    elif kind in forms:
        yield path, HubType(forms[kind])


def _names(found: Any) -> tuple[str, ...]:
    """Class names from a list, or from a mapping such as `{"0": "cat", "1": "dog"}`."""
    if isinstance(found, dict):
        numbers = {int(number): name for number, name in found.items()}
        found = [numbers[number] for number in range(len(numbers))]
    return tuple(str(each) for each in found or ())


Form = Literal["value", "bytes", "image", "media", "class"]
SchemaType = Literal["BYTES", "FLOAT", "INT"]
_TEXT = "natural_language_domain {}"
_TEXTS = ("string", "large_string", "string_view")
_BLOBS = ("binary", "large_binary", "binary_view")
"""Names of types. The types themselves are not used, because old versions of pyarrow lack some."""
LIST, FIXED = "[]", "[#]"
"""Two steps: into a list of any length, and into a list of fixed length."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf of the nested type of a column. Picklable."""

    column: str
    steps: tuple[str, ...]
    """The way from the column to the leaf: ``.NAME`` for a field of a struct, ``[]`` for a list,
    ``[#]`` for a list of fixed length."""
    form: Form
    kind: SchemaType
    name: str
    """The name of the feature, or the prefix of the names of its features."""
    is_text: bool = False
    row_lengths: bool = False
    """Whether inner lists vary in length. If so, their lengths become a feature."""
    names: tuple[str, ...] = ()
    is_complete: bool = False
    """Whether it is certain that each row has a value."""
    is_named: bool = False
    """Whether it is certain that each class has a name. If so, no value is -1."""

    @property
    def is_list(self) -> bool:
        """Whether a row may have any number of values."""
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
        others: Literal["optional", "list"] = "list" if self.is_list else "optional"
        count = "one" if self.is_complete and others == "optional" else others
        names = self.features
        if self.form in ("image", "media"):
            text = feature_schema(names[0], "BYTES", count)
            if self.form == "image":
                text = image_schema(self.name, count)
            return text + feature_schema(names[-1], "BYTES", others, _TEXT)
        if self.form == "class":
            lowest = 0 if self.is_named else -1
            bounds = f"min: {lowest} max: {len(self.names) - 1} " if self.names else ""
            domain = f"int_domain {{ {bounds}is_categorical: true }}"
            text = feature_schema(names[0], "INT", count, domain)
            named = count if self.is_named else others
            return text + feature_schema(names[1], "BYTES", named, _TEXT)
        text = feature_schema(self.name, self.kind, count, _TEXT if self.is_text else "")
        if self.row_lengths:
            text += feature_schema(names[1], "INT", "list", "int_domain { min: 0 }")
        return text


class _NoFeature(Exception):
    """No feature can hold the type of a column."""


def plan_columns(
    listing: Listing, types: HubTypes, chosen: Sequence[str]
) -> tuple[tuple[Leaf, ...], Mapping[str, str]]:
    """The leaves of all columns, and the reason for each column that is left out."""
    names: list[str] = listing.arrow_schema.names
    unknown = [name for name in chosen if name not in names]
    if unknown or len({*names}) < len(names):
        wrong = f"there is no column `{safe(unknown[0])}`" if unknown else "two have the same name"
        raise _unusable(f"{wrong}; the columns are {listed(names, most=20)}")
    leaves: list[Leaf] = []
    left_out: dict[str, str] = {}
    for column in listing.arrow_schema:
        if chosen and column.name not in chosen:
            left_out[column.name] = "is not named in the option `columns`"
            continue
        try:
            found = list(_leaves(column.name, column.type, (column.name,), (), types))
        except _NoFeature as error:
            left_out[column.name] = str(error)
        else:
            leaves += [_with_statistics(leaf, listing) for leaf in found]
    if not leaves:
        raise _unusable("no column has a type that a feature can hold")
    for named in (list(_usual_names(leaves)), leaves):
        made = Counter(feature for leaf in named for feature in leaf.features)
        feature, times = made.most_common(1)[0]
        if times == 1:
            return tuple(named), left_out
    raise _unusable(f"two of them would be the same feature `{safe(feature)}`")


def exported_columns(listing: Listing, chosen: Sequence[str]) -> tuple[Leaf, ...]:
    """The leaves of columns that `tfrecreg export` wrote: one feature each, with the same name."""
    return tuple(
        replace(leaf, form="value" if leaf.form == "value" else "bytes", row_lengths=False)
        for column in listing.arrow_schema
        if column.name in chosen
        for leaf in _leaves(column.name, column.type, (column.name,), (), {})
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
        form, ragged = "value", 0  # of one shape, which the metadata state
    if ragged > 1:
        raise _NoFeature(f"has lists nested more than two deep ({kind})")
    name = "/".join(path)
    if form in ("image", "media"):
        if ragged:
            raise _NoFeature("has images or sounds in lists of lists")
        if not (is_media or str(kind) in _BLOBS):
            raise _NoFeature(f"should be {form} data, but is {kind}")
        yield Leaf(column, steps, "image" if form == "image" else "media", "BYTES", name)
    elif hint is not None and form == "class" and pa.types.is_integer(kind):
        yield Leaf(column, steps, "class", "INT", name, names=hint.names)
    else:
        found, is_text = _value_kind(kind)
        yield Leaf(column, steps, "value", found, name, is_text, row_lengths=ragged == 1)


def _with_statistics(leaf: Leaf, listing: Listing) -> Leaf:
    # As `path_in_schema` writes it; inside of lists it has other names.
    path = "".join((leaf.column, *leaf.steps))
    complete = listing.is_complete.get(path, False)
    if leaf.form in ("image", "media"):
        complete = listing.is_complete.get(f"{path}.bytes", complete)
    named = leaf.form == "class" and listing.is_positive.get(path, False)
    return replace(leaf, is_complete=complete, is_named=named)


def _usual_names(leaves: Sequence[Leaf]) -> Iterator[Leaf]:
    """The leaves. A single image gets its usual name. Beside such an image, a single class gets its
    usual name as well.
    """
    images = [each for each in leaves if each.form == "image" and not each.is_list]
    classes = [each for each in leaves if each.form == "class" and not each.is_list]
    for each in leaves:
        if [each] == images:
            yield replace(each, name="image")
        elif [each] == classes and len(images) == 1:
            yield replace(each, name="image/class")
        else:
            yield each


def _value_kind(kind: Any) -> tuple[SchemaType, bool]:
    """The schema type for an Arrow type, and whether the values are text."""
    types = pa.types
    if types.is_dictionary(kind):
        return _value_kind(kind.value_type)
    if types.is_floating(kind):
        return "FLOAT", False
    is_time = types.is_temporal(kind) and str(kind) != "month_day_nano_interval"
    if types.is_boolean(kind) or types.is_integer(kind) or is_time:
        return "INT", False
    if str(kind) in _TEXTS or types.is_decimal(kind):
        return "BYTES", True
    if str(kind) in _BLOBS or types.is_fixed_size_binary(kind):
        return "BYTES", False
    raise _NoFeature(f"has the type {kind}, which no feature can hold")


def _unusable(why: str) -> RawDataError:
    return RawDataError(f"the columns cannot become features: {why}; `columns` selects columns")


def cell_features(leaf: Leaf, column: Any, at: int, rounds: bool) -> tuple[Example, str]:
    """The features of a leaf, and a remark if an image is cut short."""
    values, lengths = _values(leaf, column.slice(at, 1))
    if values is None:
        return {}, ""
    if leaf.form in ("image", "media", "bytes"):
        return _blobs(leaf, values)
    if leaf.form == "class":
        return _classes(leaf, _integers(leaf, values).tolist()), ""
    if leaf.kind == "FLOAT":
        features: Example = {leaf.name: float_feature(_floats(leaf, values, rounds))}
    elif leaf.kind == "INT":
        features = {leaf.name: int64_feature(_integers(leaf, values))}
    elif pa.types.is_decimal(values.type):
        features = {leaf.name: bytes_feature([str(each) for each in values.to_pylist()])}
    else:
        features = {leaf.name: bytes_feature(_bytes(leaf, values))}
    if leaf.row_lengths:
        features = {**features, f"{leaf.name}/row_lengths": int64_feature(lengths)}
    return features, ""


def _values(leaf: Leaf, cell: Any) -> tuple[Any, list[int]]:
    """All values of the row, and the lengths of inner lists; None if there is no value."""
    lengths: list[int] = []
    inside = False
    for step in (*leaf.steps, ""):
        if isinstance(cell, pa.ExtensionArray):
            cell = cell.storage
        if isinstance(cell, pa.DictionaryArray):
            cell = cell.dictionary_decode()
        if cell.null_count and not inside:
            return None, []
        if cell.null_count and not step.startswith("."):
            raise SkipImage("SRC113", f"`{safe(leaf.name)}` has a null in a list")
        if step in (LIST, FIXED):
            if inside and step == LIST and leaf.row_lengths:
                lengths = [len(each) for each in cell]
            inside = True
            cell = cell.flatten()
        elif step:
            cell = cell.flatten()[cell.type.get_field_index(step[1:])]
    return cell, lengths


def _bytes(leaf: Leaf, values: Any) -> list[bytes]:
    kind = str(values.type)
    if kind in _TEXTS:
        values = values.cast(pa.large_binary() if kind == "large_string" else pa.binary())
    found: list[bytes] = values.to_pylist()
    for each in found if leaf.is_text else ():
        try:
            each.decode()
        except UnicodeDecodeError as error:
            detail = f"`{safe(leaf.name)}` is not UTF-8 at byte {error.start}"
            raise SkipImage("SRC113", detail) from None
    return found


def _integers(leaf: Leaf, values: Any) -> Any:
    if pa.types.is_temporal(values.type):
        # Days, or units since the epoch, unchanged.
        values = values.view(pa.int64() if values.type.bit_width == 64 else pa.int32())
    elif pa.types.is_boolean(values.type):
        values = values.cast(pa.int64())
    found = values.to_numpy(zero_copy_only=False)
    if found.dtype == np.uint64 and found.size and int(found.max()) >= 2**63:
        detail = f"`{safe(leaf.name)}` is {int(found.max())}, which int64 cannot hold"
        raise SkipImage("SRC113", detail)
    return found.astype(np.int64)


def _floats(leaf: Leaf, values: Any, rounds: bool) -> Any:
    found = values.to_numpy(zero_copy_only=False)
    if found.dtype == np.float32:
        return found
    with np.errstate(all="ignore"):
        single = found.astype(np.float32)
    too_large = np.isinf(single) & ~np.isinf(found)
    lost = too_large if rounds or too_large.any() else ~((single == found) | np.isnan(found))
    if lost.any():
        raise RawDataError(
            f"float32 cannot hold {found[lost][0]} in the column `{leaf.column}` exactly",
            hint="leave out the column or, unless the number is too large, set "
            "--option float64=round",
        )
    return single


def _blobs(leaf: Leaf, values: Any) -> tuple[Example, str]:
    """The features of images, sounds or other bytes, and a remark. Paths become another feature."""
    paths: list[str] = []
    if pa.types.is_struct(values.type):
        parts = {values.type.field(at).name: each for at, each in enumerate(values.flatten())}
        paths = [each or "" for each in parts["path"].to_pylist()]
        values = parts["bytes"]
        if values.null_count:
            path = next(filter(None, paths), "")
            where = f"the path `{safe(path)}` but " if path else ""
            raise SkipImage("SRC112", f"`{safe(leaf.column)}` has {where}no bytes")
    data = _bytes(leaf, values)
    if leaf.form == "bytes":
        return {leaf.name: bytes_feature(data)}, ""
    found: Example = {f"{leaf.name}/encoded": bytes_feature(data)}
    remark = ""
    if leaf.form == "image":
        headers = [read_header(each) for each in data]
        found = {
            **found,
            f"{leaf.name}/format": bytes_feature([each.format for each in headers]),
            f"{leaf.name}/height": int64_feature([each.height for each in headers]),
            f"{leaf.name}/width": int64_feature([each.width for each in headers]),
        }
        remark = next(filter(None, map(truncation_text, data, headers)), "")
    if any(paths):
        found = {**found, f"{leaf.name}/filename": bytes_feature(paths)}
    return found, remark


def _classes(leaf: Leaf, labels: list[int]) -> Example:
    unknown = [label for label in labels if leaf.names and not -1 <= label < len(leaf.names)]
    if unknown:
        detail = f"`{safe(leaf.column)}` is {unknown[0]}, but there are {len(leaf.names)} classes"
        raise SkipImage("SRC113", detail)
    names = [leaf.names[label] if leaf.names and label >= 0 else "" for label in labels]
    found: Example = {f"{leaf.name}/label": int64_feature(labels)}
    if any(names) or leaf.is_list:
        found = {**found, f"{leaf.name}/text": bytes_feature(names)}
    return found
