"""Images, sounds, class names and arrays among the columns, as Hugging Face's Datasets declares
them: in the metadata of a Parquet schema, or in the header of the README.

Only what Arrow's types do not say is taken from there. The path of a type has the names of columns
and of the fields of structs; lists add nothing to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from tfrecreg.api import RawDataError, safe

TypePath = tuple[str, ...]


class HubType(NamedTuple):
    """What a value means."""

    form: Literal["image", "media", "class", "array"]
    names: tuple[str, ...] = ()
    """Class names in order of their numbers."""


HubTypes = Mapping[TypePath, HubType]
_Found = Iterator[tuple[TypePath, HubType]]
_UNUSABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


def types_from_metadata(text: bytes) -> HubTypes:
    """The types in the metadata `huggingface` of a Parquet schema."""
    try:
        return dict(_of_json((), json.loads(text)["info"]["features"]))
    except _UNUSABLE as error:
        raise _unusable("the metadata `huggingface` of a Parquet file", error) from None


def types_from_readme(features: Any) -> HubTypes:
    """The types in the `features` of `dataset_info`."""
    try:
        return dict(_of_yaml((), features))
    except _UNUSABLE as error:
        raise _unusable("`features` of `dataset_info` in README.md", error) from None


def _of_json(path: TypePath, node: Any) -> _Found:
    if isinstance(node, list):  # how a list was written formerly
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
    if kind == "image":
        yield path, HubType("image")
    elif kind in ("audio", "video", "pdf"):
        yield path, HubType("media")
    elif kind == "classlabel":
        yield path, HubType("class", _names(node["names"]))
    elif kind.startswith("array"):
        yield path, HubType("array")


def _names(found: Any) -> tuple[str, ...]:
    """Class names: a list, or a mapping from numbers, which YAML and JSON write as texts."""
    if isinstance(found, dict):
        numbers = {int(number): name for number, name in found.items()}
        if sorted(numbers) != list(range(len(numbers))):
            raise ValueError("class names have numbers with gaps")
        found = [numbers[number] for number in range(len(numbers))]
    return tuple(str(each) for each in found or ())


def _unusable(what: str, error: Exception) -> RawDataError:
    why = f"`{error.args[0]}` is missing" if isinstance(error, KeyError) else str(error)
    return RawDataError(
        f"{what} cannot be used: {safe(why, limit=200)}",
        hint="write the files with Hugging Face's `datasets`, or without that metadata",
    )
