"""What a schema may not say of several features together, and of the dataset as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from tfrecreg.schema.build import stage_of, type_of
from tfrecreg.schema.locate import Path
from tfrecreg.schema.model import IGNORED_STAGES
from tfrecreg.suggest import did_you_mean
from tfrecreg.text import safe

__all__ = ["Fail", "check_bounds", "check_composites"]

Fail = Callable[[Path, str, str], NoReturn]
"""Raises the error for a place, a message and a hint."""

_DECLARE = "declare it as a `feature` too: it is what the examples hold"


def check_composites(message: Any, fail: Fail) -> None:
    """Check the sparse and weighted features of a `Schema` message, and its number of examples.

    Args:
        message: the protobuf message.
        fail: called for the first contradiction, raises.
    """
    features = {feature.name: feature for feature in message.feature}
    for number, sparse in enumerate(message.sparse_feature):
        _check_sparse(sparse, ("sparse_feature", number), features, fail)
    for number, weighted in enumerate(message.weighted_feature):
        path: Path = ("weighted_feature", number)
        subject = f"weighted feature `{safe(weighted.name)}`"
        for group in ("feature", "weight_feature"):
            name = "/".join(getattr(weighted, group).step)
            if name not in features:
                _undeclared((*path, group, 0), subject, name, features, fail)
    constraints = message.dataset_constraints
    bounds = ("min_examples_count", "max_examples_count")
    place: Path = ("dataset_constraints", 0)
    check_bounds(constraints, *bounds, place, "the schema", "the number of examples", fail)


def check_bounds(
    message: Any, low: str, high: str, place: Path, subject: str, what: str, fail: Fail
) -> None:
    """Refuse bounds that are negative or the wrong way round."""
    for bound in (low, high):
        if getattr(message, bound) < 0:
            fail((*place, bound, 0), f"{subject} has a negative `{bound}`", f"it is {what}")
    lowest, highest = getattr(message, low), getattr(message, high)
    if message.HasField(high) and lowest > highest:
        fail(
            place,
            f"{subject} has `{low}` {lowest} above `{high}` {highest}",
            "swap the two, or correct one of them",
        )


def _check_sparse(sparse: Any, path: Path, features: dict[str, Any], fail: Fail) -> None:
    subject = f"sparse feature `{safe(sparse.name)}`"
    for place, name in _parts(sparse, path):
        if name not in features:
            _undeclared(place, subject, name, features, fail)
    if stage_of(sparse) in IGNORED_STAGES:
        return
    if not sparse.index_feature:
        fail(path, f"{subject} has no index feature", "name one a dimension: `index_feature`")
    for number, index in enumerate(sparse.index_feature):
        kind = type_of(features[index.name])
        if kind not in ("INT", None):
            fail(
                (*path, "index_feature", number),
                f"{subject} has the index `{safe(index.name)}` of type {kind}, expected INT",
                "indices are whole numbers",
            )
    if not sparse.HasField("value_feature"):
        fail(path, f"{subject} has no value feature", "name it: `value_feature { name: … }`")
    dimensions = len(sparse.dense_shape.dim)
    if sparse.HasField("dense_shape") and dimensions != len(sparse.index_feature):
        fail(
            (*path, "dense_shape", 0),
            f"{subject} has {dimensions} dimensions and {len(sparse.index_feature)} indices",
            "one index feature a dimension",
        )


def _parts(sparse: Any, path: Path) -> Iterator[tuple[Path, str]]:
    for number, index in enumerate(sparse.index_feature):
        yield (*path, "index_feature", number), index.name
    if sparse.HasField("value_feature"):
        yield (*path, "value_feature", 0), sparse.value_feature.name


def _undeclared(
    place: Path, subject: str, name: str, features: dict[str, Any], fail: Fail
) -> NoReturn:
    fail(
        place,
        f"{subject} is made of the feature `{safe(name)}`, which is not declared"
        + did_you_mean(name, features),
        _DECLARE,
    )
