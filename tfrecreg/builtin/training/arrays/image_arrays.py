"""Features of encoded images, decoded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tfrecreg.core.images.pixels import Resizing
from tfrecreg.core.values.errors import RefusedError
from tfrecreg.core.values.text import safe

DecodeAsIs = Callable[[str, bytes], npt.NDArray[Any]]
"""Decodes a value of a feature; raises a ValueError for one that is damaged."""


class Decode(Protocol):
    """The same; with `fit`, an image gets the size that this says."""

    def __call__(
        self, feature: str, data: bytes, fit: Resizing | None = None, /
    ) -> npt.NDArray[Any]: ...


def image_array(feature: str, value: Any, decode: DecodeAsIs, *, single: bool) -> Any:
    """What a feature has in an element where its values are decoded."""
    if isinstance(value, bytes):
        return _decoded(feature, value, decode)
    if isinstance(value, list):
        return [image_array(feature, each, decode, single=True) for each in value]
    if not isinstance(value, np.ndarray) or value.dtype != object:
        raise RefusedError(
            f"has numbers in `{safe(feature)}`, which cannot be decoded as an image",
            hint="`decode=[…]` names features that hold encoded images",
        )
    if single and value.size == 1:
        return _decoded(feature, value.reshape(-1)[0], decode)
    images = np.empty(value.shape, object)
    for at, each in np.ndenumerate(value):
        images[at] = _decoded(feature, each, decode)
    return images


def _decoded(feature: str, data: bytes, decode: DecodeAsIs) -> npt.NDArray[Any]:
    try:
        return decode(feature, data)
    except ValueError as error:
        raise RefusedError(
            f"has an image in `{safe(feature)}` that does not decode: {error}",
            hint="`tfrecreg check` with the validator `images` finds all such images",
        ) from error.__cause__
