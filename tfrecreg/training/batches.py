"""Elements joined to batches of NumPy arrays, as JAX takes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def stack(
    elements: Sequence[Mapping[str, Any]], fixed: Collection[str], images: Collection[str]
) -> dict[str, Any]:
    """Join elements of one form.

    Args:
        elements: at least one.
        fixed: features whose shape the schema fixes: their values become one array.
        images: features that were decoded: an array, if all images of the batch have one shape.

    Returns:
        Each feature with an array, whose first side is the batch; or with a list of the values.
    """
    return {
        name: _stack([element[name] for element in elements])
        if name in fixed and (name not in images or _have_one_shape(elements, name))
        else [element[name] for element in elements]
        for name in elements[0]
    }


def _have_one_shape(elements: Sequence[Mapping[str, Any]], name: str) -> bool:
    return len({np.shape(element[name]) for element in elements}) == 1


def _stack(values: list[Any]) -> npt.NDArray[Any]:
    if isinstance(values[0], bytes):
        found = np.empty(len(values), object)
        found[:] = values
        return found
    return np.stack(values)
