"""The statistics of features in words, for tables: a line and a sparkline per feature."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tfrecreg.builtin.statistics.summary import NOT_UTF8, FeatureSummary, Image, Numbers, Texts
from tfrecreg.core.values.text import safe, si_bytes

STATS_COLUMNS = (
    *("feature", "type", "present", "values", "mean", "std", "min", "median", "max"),
    "histogram",
)
"""Headings of the texts of :func:`stats_row`."""

_BLOCKS = "▁▂▃▄▅▆▇█"
_BARS = 10
_TOP = 3
_SHOWN = 24
"""Maximum length of a shown value, in characters."""


def stats_row(feature: FeatureSummary) -> tuple[str, ...]:
    """A feature in words, a text for each of :data:`STATS_COLUMNS`; escaped."""
    examples = feature.present + feature.missing
    present = _percent(feature.present, examples)
    per_example = _span(feature.min_values, feature.max_values) if feature.present else ""
    return (
        safe(feature.name),
        "image" if feature.type == "picture" else feature.type,
        present,
        per_example,
        *_detail(feature),
        _histogram(feature),
    )


def _histogram(feature: FeatureSummary) -> str:
    """The sparkline and the words after it; no bars where no text is more frequent than others."""
    detail = feature.detail
    if isinstance(detail, Texts) and 1 < detail.unique == feature.values:
        return f"all {detail.unique:,} different"
    return "  ".join(filter(None, (sparkline(feature.histogram), _words(feature))))


def _detail(feature: FeatureSummary) -> tuple[str, str, str, str, str]:
    """mean, std, min, median, max."""
    detail = feature.detail
    if isinstance(detail, Numbers):
        values = (detail.mean, detail.std, detail.min, detail.median, detail.max)
        mean, std, low, median, high = (_number(value, feature.type) for value in values)
        return mean, std, low, median, high
    if isinstance(detail, Image):
        return si_bytes(detail.mean), "", si_bytes(detail.min), "", si_bytes(detail.max)
    if isinstance(detail, Texts) and feature.type == "bytes":
        return si_bytes(detail.mean_length), "", "", "", ""
    return "", "", "", "", ""


def _words(feature: FeatureSummary) -> str:
    """The text after the histogram."""
    detail = feature.detail
    if isinstance(detail, Numbers):
        return f"{_percent(detail.nan, feature.values)} NaN" if detail.nan else ""
    if not isinstance(detail, Texts) or not detail.unique:
        return ""
    shown = [
        f"{_quoted(value)} {_percent(frequency, feature.values)}"
        for value, frequency in detail.top[:_TOP]
    ]
    return ": ".join(filter(None, (f"{detail.unique:,} different", ", ".join(shown))))


def _quoted(value: str) -> str:
    return "bytes" if value == NOT_UTF8 else f'"{safe(value, limit=_SHOWN)}"'


def _number(value: float, kind: str) -> str:
    if kind == "int64" and math.isfinite(value) and value == round(value) and abs(value) < 1e9:
        return f"{int(value)}"
    return f"{value:.4g}"


def _span(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _percent(part: float, whole: float) -> str:
    """``12 %``. Never 0 % or 100 % unless the share is exactly that."""
    if not whole:
        return ""
    share = 100 * part / whole
    if 0 < share < 0.1:
        return "<0.1 %"
    if 99.9 < share < 100:
        return ">99.9 %"
    return f"{share:.0f} %" if share == round(share) or 1 <= share <= 99 else f"{share:.1f} %"


def sparkline(counts: Sequence[float]) -> str:
    """The first counts as blocks of one to eight eighths, relative to the largest.

    Nonzero values get at least the lowest visible block; zero is a space.
    """
    shown = counts[:_BARS]
    most = max(shown, default=0)
    if most <= 0:
        return ""
    last = len(_BLOCKS) - 1
    blocks = [_BLOCKS[round(each / most * last)] if each > 0 else " " for each in shown]
    return "".join(blocks)
