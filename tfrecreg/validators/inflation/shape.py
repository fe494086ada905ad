"""Which sides a picture may have that a feature holds as pixels."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from tfrecreg.example import Example, Kind

__all__ = ["Sides", "declared_sides", "fitting"]

_SIDE = re.compile(r"(.*?)(height|rows|width|cols|columns|channels?|depth)$", re.IGNORECASE)
_MEANING = {
    "height": "height",
    "rows": "height",
    "width": "width",
    "cols": "width",
    "columns": "width",
    "channel": "channels",
    "channels": "channels",
    "depth": "channels",
}
_PICTURE = re.compile(r"image|img|pixel|picture|frame|digit", re.IGNORECASE)
"""In the name of a feature: only then may it hold the pixels of a square that nobody declares."""
_CHANNELS = (1, 3, 4)
_LEAST_SIDE = 8
_MOST_SIDE = 1 << 16


class Sides(NamedTuple):
    """Of a picture, in pixels."""

    height: int
    width: int
    channels: int
    """0 where it is not said."""


def declared_sides(example: Example) -> list[Sides]:
    """What features such as `image/height`, `image_width` and `channels` say, by their prefix."""
    found: dict[str, dict[str, int]] = {}
    for name, feature in example.items():
        match = _SIDE.fullmatch(name) if feature.kind is Kind.INT64 and feature.count == 1 else None
        if match is not None:
            value = feature.values[0]
            if 0 < value <= _MOST_SIDE:
                found.setdefault(match[1], {})[_MEANING[match[2].lower()]] = value
    return [
        Sides(sides["height"], sides["width"], sides.get("channels", 0))
        for _, sides in sorted(found.items())
        if "height" in sides and "width" in sides
    ]


def fitting(count: int, name: str, declared: list[Sides]) -> Iterator[Sides]:
    """The sides of pictures of so many values: declared ones, or those of a square.

    Args:
        count: how many values there are.
        name: of the feature; a square is only thought of where it sounds like a picture.
        declared: what the record says.
    """
    for height, width, channels in declared:
        for each in (channels,) if channels else _CHANNELS:
            if height * width * each == count and each in _CHANNELS:
                yield Sides(height, width, each)
    if not declared and _PICTURE.search(name):
        for channels in (1, 3):
            side = math.isqrt(count // channels)
            if side >= _LEAST_SIDE and side * side * channels == count:
                yield Sides(side, side, channels)
