"""Charts as data: :mod:`tfrecreg.core.images.drawing.svg` draws them.

Strings that come from data are escaped by :func:`tfrecreg.core.values.text.safe`, not for HTML.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Numbers of one split, or of the data before and after."""

    name: str
    values: tuple[int, ...]
    """One per bar of its chart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """A bar chart."""

    heading: str
    unit: str
    """What is counted: ``records``, or ``B`` for bytes."""
    labels: tuple[str, ...]
    """One per bar."""
    series: tuple[Series, ...]
    note: str = ""
    colors: tuple[int, ...] = ()
    """Color of the class that each label names; empty where labels name no classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Images by width and height."""

    heading: str
    points: tuple[tuple[int, int, int], ...]
    """Width and height in pixels, and the number of images."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """How often the values of a feature occur, as columns of equal width."""

    heading: str
    columns: tuple[tuple[str, int], ...]
    """The values of each column in words, and their number."""
    ends: tuple[str, str]
    """The lowest and the highest value in words."""
