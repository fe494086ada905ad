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


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The numbers of one split or, in a comparison, of one of the two versions."""

    name: str
    values: tuple[int, ...]
    """One value for each bar of the chart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """A bar chart."""

    heading: str
    unit: str
    """The counted unit: ``records``, or ``B`` for bytes."""
    labels: tuple[str, ...]
    """One per bar."""
    series: tuple[Series, ...]
    note: str = ""
    colors: tuple[int, ...] = ()
    """Color of each label's class; empty if labels do not name classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Images by width and height."""

    heading: str
    points: tuple[tuple[int, int, int], ...]
    """Width and height in pixels, and the number of such images."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """How many values of a feature are in each range. All columns have equal width."""

    heading: str
    columns: tuple[tuple[str, int], ...]
    """For each column, the range of its values as text, and the number of values in it."""
    ends: tuple[str, str]
    """The lowest value and the highest value, as text."""


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


def bar_chart(bars: Bars) -> Markup:
    """Horizontal bars, one row for each label and series."""
    most = max((value for each in bars.series for value in each.values), default=0) or 1
    rows = Markup("").join(_rows(bars, most))
    height = _ROW * len(bars.labels) * len(bars.series) + 4
    return _svg(height, bars.heading, rows)


def _rows(bars: Bars, most: int) -> Iterator[Markup]:
    room = _WIDTH - _LABELS - _NUMBERS
    for at, label in enumerate(bars.labels):
        top = _ROW * at * len(bars.series)
        is_long = len(label) > _LABEL_CHARACTERS
        yield Markup('<text class="label" x="{}" y="{}" text-anchor="end">{}</text>').format(
            _LABELS - (24 if bars.colors else 8),
            top + _BAR,
            label[: _LABEL_CHARACTERS - 1] + "…" if is_long else label,
        )
        if bars.colors:
            yield Markup('<rect class="key c{}" x="{}" y="{}" width="11" height="11"/>').format(
                bars.colors[at], _LABELS - 18, top + 4
            )
        for number, series in enumerate(bars.series):
            value = series.values[at]
            width = round(room * value / most, 1)
            title = f"{label}, {series.name}: {_number_of(value, bars.unit)}"
            yield Markup(
                '<g><title>{}</title><rect class="s{}" x="{}" y="{}" width="{}" height="{}"/>'
                '<text class="number" x="{}" y="{}">{}</text></g>'
            ).format(
                title,
                number % _COLORS,
                _LABELS,
                top + 3,
                max(width, 0.5 if value else 0),
                _BAR,
                _LABELS + width + 6,
                top + _BAR,
                _number_of(value, bars.unit),
            )
            top += _ROW


def _number_of(value: int, unit: str) -> str:
    """A number as a chart shows it: bytes with a unit, other numbers in full."""
    return si_bytes(value) if unit == "B" else f"{value:,}"


def column_chart(chart: Histogram) -> Markup:
    """Columns side by side between axes. The title of a column shows its range and its number of
    values."""
    most = max((count for _, count in chart.columns), default=0) or 1
    width = round(_COLUMNS / max(len(chart.columns), 1), 2)
    columns = []
    for at, (values, count) in enumerate(chart.columns):
        height = max(round(_TALL * count / most, 1), 1.0 if count else 0.0)
        columns.append(
            Markup(
                '<g><title>{}</title><rect class="s0" x="{}" y="{}" width="{}" height="{}"/></g>'
            ).format(
                f"{values}: {count:,}",
                round(at * width, 1),
                round(_TALL - height, 1),
                round(width - 1, 1),
                height,
            )
        )
    axes = Markup(
        '<g transform="translate(0 {})">{}<path class="axis" d="M0 {}H{}"/>'
        '<text class="number" x="0" y="{}">{}</text>'
        '<text class="number" x="{}" y="{}" text-anchor="end">{}</text></g>'
        '<text class="number" x="0" y="11">{}</text>'
    ).format(
        _LINE,
        Markup("").join(columns),
        _TALL + 0.5,
        _COLUMNS,
        _TALL + _LINE - 2,
        chart.ends[0],
        _COLUMNS,
        _TALL + _LINE - 2,
        chart.ends[1],
        f"up to {most:,} values",
    )
    return _svg(_TALL + 2 * _LINE, chart.heading, axes, _COLUMNS)


def scatter_chart(scatter: Scatter) -> Markup:
    """Points by width and height on logarithmic axes. A point has a larger area if it stands for
    more images."""
    widths = [point[0] for point in scatter.points]
    heights = [point[1] for point in scatter.points]
    most = max(point[2] for point in scatter.points)
    across = _Axis(widths, _WIDTH - 2 * _MARGIN, gap=48)
    down = _Axis(heights, _PLOT - 2 * _MARGIN, gap=20)
    base = _PLOT - _MARGIN
    parts = [
        Markup('<path class="axis" d="M{0} {1}H{2}M{0} {1}V{0}"/>').format(
            _MARGIN, base, _WIDTH - _MARGIN
        )
    ]
    for tick in across.ticks():
        parts.append(
            Markup('<text class="number" x="{}" y="{}" text-anchor="middle">{}</text>').format(
                _MARGIN + across.at(tick), base + 24, tick
            )
        )
    for tick in down.ticks():
        parts.append(
            Markup('<text class="number" x="{}" y="{}" text-anchor="end">{}</text>').format(
                _MARGIN - 14, round(base - down.at(tick) + 4, 1), tick
            )
        )
    parts.append(
        Markup(
            '<text class="number" x="{}" y="{}" text-anchor="end">width in pixels</text>'
            '<text class="number" x="4" y="14">height in pixels</text>'
        ).format(_WIDTH - _MARGIN, base + 40)
    )
    for width, height, count in scatter.points:
        title = f"{width} × {height} pixels: {count:,}"
        parts.append(
            Markup(
                '<circle class="s0 point" cx="{}" cy="{}" r="{}"><title>{}</title></circle>'
            ).format(
                _MARGIN + across.at(width),
                round(base - down.at(height), 1),
                round(3 + 9 * math.sqrt(count / most), 1),
                title,
            )
        )
    return _svg(_PLOT, f"{scatter.heading}, width across, height up", Markup("").join(parts))


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


def _svg(height: int, label: str, content: Markup, width: int = _WIDTH) -> Markup:
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    ).format(width, height, escape(label), content)


@cache
def tokens() -> str:
    """CSS for light and dark documents. It defines `--page`, `--text`, `--error` and so on, the
    colors of classes `--c0` to `--c7` with `--ink` for text on them, and the class `overlay`.

    The reader's preference makes a document light or dark, unless its root has `data-theme`.
    """
    text = (resources.files("tfrecreg.core.images") / "tokens.css").read_text(encoding="utf-8")
    colors = " ".join(f"--c{number}: {color};" for number, color in enumerate(COLORS))
    return f":root {{ --ink: {INK}; {colors} }}\n{text}"
