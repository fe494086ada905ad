"""Draws charts as SVG from plain data, and makes the style sheet of all documents.

The callers escape strings from data with :func:`tfrecreg.core.values.text.safe`. This module
escapes these strings for HTML.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from markupsafe import Markup, escape

from tfrecreg.core.images.drawing import COLORS, INK
from tfrecreg.core.values.text import si_bytes

_WIDTH = 480
_LABELS = 150
"""Width of the column of labels."""
_NUMBERS = 66
"""Width of the column of numbers."""
_ROW, _BAR = 20, 14
_LABEL_CHARACTERS = 20
_COLORS = 6
"""Classes `s0` to `s5` of the styles."""
_PLOT, _MARGIN = 260, 44
"""Height of a scatter chart, and the space for its axes."""
_COLUMNS, _TALL = 240, 64
"""Width and height of a histogram."""
_LINE = 16
"""Height of a line of text above or below the histogram."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """A bar chart."""

    heading: str
    unit: str
    """The counted unit: ``records``, or ``B`` for bytes."""
    labels: tuple[str, ...]
    """One per bar."""
    series: tuple[tuple[str, tuple[int, ...]], ...]
    """The name and the numbers, one per label, of each split or of each compared version."""
    note: str = ""
    colors: tuple[int, ...] = ()
    """Color of each label's class; empty if labels do not name classes."""

    def svg(self) -> Markup:
        """Horizontal bars, one row for each label and series."""
        most = max((value for _, values in self.series for value in values), default=0) or 1
        height = _ROW * len(self.labels) * len(self.series) + 4
        return _svg(height, self.heading, "".join(self._rows(most)))

    def _rows(self, most: int) -> Iterator[str]:
        room = _WIDTH - _LABELS - _NUMBERS
        for at, label in enumerate(self.labels):
            top = _ROW * at * len(self.series)
            is_long = len(label) > _LABEL_CHARACTERS
            shown = label[: _LABEL_CHARACTERS - 1] + "…" if is_long else label
            end = _LABELS - (24 if self.colors else 8)
            yield _text("label", end, top + _BAR, shown, anchor="end")
            if self.colors:
                yield (
                    f'<rect class="key c{self.colors[at]}" x="{_LABELS - 18}" y="{top + 4}" '
                    'width="11" height="11"/>'
                )
            for number, (name, values) in enumerate(self.series):
                value = values[at]
                width = round(room * value / most, 1)
                # A chart shows bytes with a unit, and other numbers in full.
                text = si_bytes(value) if self.unit == "B" else f"{value:,}"
                yield (
                    f"<g><title>{escape(f'{label}, {name}: {text}')}</title>"
                    f'<rect class="s{number % _COLORS}" x="{_LABELS}" y="{top + 3}" '
                    f'width="{max(width, 0.5 if value else 0)}" height="{_BAR}"/>'
                    f"{_text('number', _LABELS + width + 6, top + _BAR, text)}</g>"
                )
                top += _ROW


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Images by width and height."""

    heading: str
    points: tuple[tuple[int, int, int], ...]
    """Width and height in pixels, and the number of such images."""
    note: str = ""

    def svg(self) -> Markup:
        """Points on logarithmic axes. A point has a larger area if it stands for more images."""
        most = max(point[2] for point in self.points)
        across = _Axis([point[0] for point in self.points], _WIDTH - 2 * _MARGIN, gap=48)
        down = _Axis([point[1] for point in self.points], _PLOT - 2 * _MARGIN, gap=20)
        base, right = _PLOT - _MARGIN, _WIDTH - _MARGIN
        parts = [f'<path class="axis" d="M{_MARGIN} {base}H{right}M{_MARGIN} {base}V{_MARGIN}"/>']
        for tick in across.ticks():
            x = _MARGIN + across.at(tick)
            parts.append(_text("number", x, base + 24, tick, anchor="middle"))
        for tick in down.ticks():
            y = round(base - down.at(tick) + 4, 1)
            parts.append(_text("number", _MARGIN - 14, y, tick, anchor="end"))
        parts.append(_text("number", right, base + 40, "width in pixels", anchor="end"))
        parts.append(_text("number", 4, 14, "height in pixels"))
        for width, height, count in self.points:
            radius = round(3 + 9 * math.sqrt(count / most), 1)
            parts.append(
                f'<circle class="s0 point" cx="{_MARGIN + across.at(width)}" '
                f'cy="{round(base - down.at(height), 1)}" r="{radius}">'
                f"<title>{width} × {height} pixels: {count:,}</title></circle>"
            )
        return _svg(_PLOT, f"{self.heading}, width across, height up", "".join(parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """How many values of a feature are in each range. All columns have equal width."""

    heading: str
    columns: tuple[tuple[str, int], ...]
    """For each column, the range of its values as text, and the number of values in it."""
    ends: tuple[str, str]
    """The lowest value and the highest value, as text."""

    def svg(self) -> Markup:
        """Columns side by side. The title of a column shows its range and its number of values."""
        most = max((count for _, count in self.columns), default=0) or 1
        width = round(_COLUMNS / max(len(self.columns), 1), 2)
        columns = ""
        for at, (values, count) in enumerate(self.columns):
            height = max(round(_TALL * count / most, 1), 1.0 if count else 0.0)
            columns += (
                f'<g><title>{escape(values)}: {count:,}</title><rect class="s0" '
                f'x="{round(at * width, 1)}" y="{round(_TALL - height, 1)}" '
                f'width="{round(width - 1, 1)}" height="{height}"/></g>'
            )
        below = _TALL + _LINE - 2
        content = (
            f'<g transform="translate(0 {_LINE})">{columns}'
            f'<path class="axis" d="M0 {_TALL + 0.5}H{_COLUMNS}"/>'
            f"{_text('number', 0, below, self.ends[0])}"
            f"{_text('number', _COLUMNS, below, self.ends[1], anchor='end')}</g>"
            f"{_text('number', 0, 11, f'up to {most:,} values')}"
        )
        return _svg(_TALL + 2 * _LINE, self.heading, content, _COLUMNS)


def _text(style: str, x: float, y: float, text: object, *, anchor: str = "") -> str:
    anchored = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text class="{style}" x="{x}" y="{y}"{anchored}>{escape(text)}</text>'


class _Axis:
    """A logarithmic axis in pixels, with at least `gap` pixels between its ticks."""

    def __init__(self, values: Sequence[int], length: int, gap: int) -> None:
        self._low, self._high = min(values), max(values)
        self._length, self._gap = length, gap
        low, high = math.log(self._low), math.log(self._high)
        if high - low < 1e-9:
            low, high = low - 0.5, high + 0.5
        self._start, self._scale = low, length / (high - low)

    def at(self, value: int) -> float:
        """Pixels from the start of the axis."""
        return round((math.log(value) - self._start) * self._scale, 1)

    def ticks(self) -> list[int]:
        """The lowest and the highest value, and powers of two between them."""
        step = math.ceil(self._gap / (self._scale * math.log(2)))
        inner = self._length - self._gap
        between = [
            2**power for power in range(0, 31, step) if self._gap <= self.at(2**power) <= inner
        ]
        return sorted({self._low, self._high, *between})


def _svg(height: int, label: str, content: str, width: int = _WIDTH) -> Markup:
    """An image. `content` is SVG in which strings are already escaped."""
    return Markup(
        f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(label)}">{content}</svg>'
    )


@cache
def tokens() -> str:
    """CSS for light and dark documents. It defines colors: `--page`, `--text` and so on, `--c0` to
    `--c7` for classes of objects, and `--ink` for text on these. It also has the class `overlay`.

    The reader's preference makes a document light or dark, unless its root has `data-theme`.
    """
    text = (resources.files("tfrecreg.core.images") / "tokens.css").read_text(encoding="utf-8")
    colors = " ".join(f"--c{number}: {color};" for number, color in enumerate(COLORS))
    return f":root {{ --ink: {INK}; {colors} }}\n{text}"
