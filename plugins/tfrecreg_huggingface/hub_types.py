"""Images, sounds, class names and arrays among the columns, as Hugging Face's Datasets declares
them: in the metadata of a Parquet schema, or in the header of the README.

Only what Arrow's types do not say is taken from there. The path of a type has the names of columns
and of the fields of structs; lists add nothing to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tfrecreg.api import RawDataError, safe

TypePath = tuple[str, ...]
_MAX_DEPTH = 16
_MAX_NODES = 100_000
_MAX_CLASSES = 1_000_000


@dataclass(frozen=True, slots=True)
class HubType:
    """What a value means."""

    form: Literal["image", "media", "class", "array"]
    names: tuple[str, ...] = ()
    """Class names in order of their numbers."""


HubTypes = Mapping[TypePath, HubType]


def types_from_metadata(text: bytes) -> HubTypes:
    """The types in the metadata `huggingface` of a Parquet schema."""
    try:
        features = json.loads(text)["info"]["features"]
        return dict(_of_json((), features, _Budget()))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _unusable("the metadata `huggingface` of a Parquet file", error) from None


def types_from_readme(features: Any) -> HubTypes:
    """The types in the `features` of `dataset_info`."""
    try:
        return dict(_of_yaml((), features, _Budget()))
    except (ValueError, KeyError, TypeError) as error:
        raise _unusable("`features` of `dataset_info` in README.md", error) from None


class _Budget:
    """Bounds depth and number of what is walked over."""

    def __init__(self) -> None:
        self._nodes = 0

    def spend(self, path: TypePath, depth: int) -> None:
        self._nodes += 1
        if depth > _MAX_DEPTH:
            raise ValueError(f"`{safe('.'.join(path), limit=60)}` is nested too deep")
        if self._nodes > _MAX_NODES:
            raise ValueError(f"it has more than {_MAX_NODES} types")


def _of_json(
    path: TypePath, node: Any, budget: _Budget, depth: int = 0
) -> Iterator[tuple[TypePath, HubType]]:
    budget.spend(path, depth)
    if isinstance(node, list):  # how a list was written formerly
        for each in node[:1]:
            yield from _of_json(path, each, budget, depth + 1)
        return
    if not isinstance(node, dict):
        raise ValueError(f"`{safe('.'.join(path), limit=60)}` has no type")
    kind = node.get("_type")
    if not isinstance(kind, str):  # a struct
        for name, each in node.items():
            yield from _of_json((*path, name), each, budget, depth + 1)
    elif kind in ("Sequence", "List", "LargeList"):
        yield from _of_json(path, node["feature"], budget, depth + 1)
    elif kind == "Image":
        yield path, HubType("image")
    elif kind in ("Audio", "Video", "Pdf"):
        yield path, HubType("media")
    elif kind == "ClassLabel":
        yield path, HubType("class", _names(node.get("names")))
    elif kind in ("Array2D", "Array3D", "Array4D", "Array5D"):
        yield path, HubType("array")


def _of_yaml(
    path: TypePath, nodes: Any, budget: _Budget, depth: int = 0
) -> Iterator[tuple[TypePath, HubType]]:
    if isinstance(nodes, dict):  # one type without a name
        nodes = [nodes]
    if isinstance(nodes, str):
        nodes = [{"dtype": nodes}]
    if not isinstance(nodes, list):
        raise ValueError("expected a list of features")
    for node in nodes:
        if not isinstance(node, dict):
            raise ValueError("expected a feature with a name and a type")
        here = (*path, str(node["name"])) if "name" in node else path
        budget.spend(here, depth)
        for inner in ("sequence", "list", "struct", "large_list"):
            if inner in node:
                yield from _of_yaml(here, node[inner], budget, depth + 1)
        dtype = node.get("dtype", node if "class_label" in node else None)
        if dtype == "image":
            yield here, HubType("image")
        elif dtype in ("audio", "video", "pdf"):
            yield here, HubType("media")
        elif isinstance(dtype, dict) and "class_label" in dtype:
            yield here, HubType("class", _names(dtype["class_label"]["names"]))
        elif isinstance(dtype, dict) and any(str(each).startswith("array") for each in dtype):
            yield here, HubType("array")


def _names(found: Any) -> tuple[str, ...]:
    """Class names: a list, or a mapping from numbers, which YAML and JSON write as texts."""
    if isinstance(found, dict):
        numbers = {int(number): name for number, name in found.items()}
        if sorted(numbers) != list(range(len(numbers))):
            raise ValueError("class names have numbers with gaps")
        found = [numbers[number] for number in range(len(numbers))]
    if found is None:
        return ()
    if not isinstance(found, list) or len(found) > _MAX_CLASSES:
        raise ValueError("class names should be a list")
    return tuple(str(each) for each in found)


def _unusable(what: str, error: Exception) -> RawDataError:
    why = f"`{error.args[0]}` is missing" if isinstance(error, KeyError) else str(error)
    return RawDataError(
        f"{what} cannot be used: {safe(why, limit=200)}",
        hint="write the files with Hugging Face's `datasets`, or without that metadata",
    )
