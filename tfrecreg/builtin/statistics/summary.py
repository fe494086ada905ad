"""Converts statistics to and from bytes, and to text and plain values. Needs no TFDV.

A table shows each feature in a line that ends with a sparkline.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tfrecreg.core.values.text import safe, si_bytes

DatasetFeatureStatisticsList = Any
"""The message of `tensorflow_metadata.proto.v0.statistics_pb2`."""


def parse_proto(data: bytes) -> DatasetFeatureStatisticsList:
    message_error = importlib.import_module("google.protobuf.message").DecodeError
    try:
        return messages().DatasetFeatureStatisticsList.FromString(data)
    except message_error as error:
        raise ValueError(str(error)) from error


def render_proto(proto: DatasetFeatureStatisticsList) -> str:
    """The text that `tfdv.load_stats_text` reads. Every release of protobuf gives the same text."""
    text_format = importlib.import_module("google.protobuf.text_format")
    return str(text_format.MessageToString(proto, as_utf8=True))


def named(
    statistics: Iterable[tuple[str, DatasetFeatureStatisticsList]],
) -> DatasetFeatureStatisticsList:
    """Join several lists into one. TFDV treats the name of each dataset as that of a slice."""
    together = messages().DatasetFeatureStatisticsList()
    for name, proto in statistics:
        for dataset in proto.datasets:
            together.datasets.add().CopyFrom(dataset)
            together.datasets[-1].name = name
    return together


def messages() -> Any:
    """The module of TensorFlow Metadata that defines the messages of statistics."""
    return importlib.import_module("tensorflow_metadata.proto.v0.statistics_pb2")


Type = Literal["int64", "float", "bytes", "picture"]

_TYPES: tuple[Type, ...] = ("int64", "float", "bytes", "picture")
"""Types, indexed by TFDV's enum. BYTES means bytes with an image domain. STRING means any other
bytes."""


NOT_UTF8 = "__BYTES_VALUE__"
"""The text that stands for values that are not UTF-8."""
_BARS = 10
"""Number of frequent values in a histogram, and number of buckets in a histogram of numbers."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Statistics of numbers. Only `nan` counts NaN; the other fields ignore it."""

    mean: float
    std: float
    min: float
    median: float
    max: float
    zeros: int
    nan: int
    quantiles: tuple[float, ...] = ()
    """Bounds that split the numbers into ten parts of equal count, from `min` to `max`."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Statistics of bytes, or of numbers that are categories."""

    unique: int
    mean_length: float
    """Mean length in bytes. For numbers, the mean length of their text in characters."""
    not_utf8: int
    top: tuple[tuple[str, float], ...]
    """The most frequent values with their counts, the most frequent first. They are not escaped,
    and ``__BYTES_VALUE__`` stands for values that are not UTF-8.
    """


@dataclass(frozen=True, slots=True)
class Image:
    """Sizes in bytes of the values of a feature with an image domain."""

    mean: float
    min: float
    max: float


@dataclass(frozen=True, slots=True)
class FeatureSummary:
    """One feature of one split."""

    name: str
    """Not escaped."""
    type: Type
    present: int
    """Number of examples in which the feature has a list of values, even an empty one."""
    missing: int
    values: int
    """Number of values in all examples."""
    min_values: int
    mean_values: float
    max_values: int
    """Maximum number of values per example that has the feature."""
    detail: Numbers | Texts | Image | None
    """The statistics of the values; None if there are no values."""
    histogram: tuple[float, ...]
    """Number of values in each bucket of equal width, or how often each of the ten most frequent
    values occurs. May be empty.
    """


def summarize(proto: Any) -> Iterator[FeatureSummary]:
    """The features of all datasets of a `DatasetFeatureStatisticsList`, in their order."""
    for dataset in proto.datasets:
        for feature in dataset.features:
            # Sparse and weighted features have statistics only for their parts.
            if feature.WhichOneof("stats"):
                yield _summary(feature)


def number_buckets(proto: Any, names: Collection[str]) -> dict[str, list[Any]]:
    """Histograms of numeric features by name, with TFDV's buckets of equal width."""
    return {
        _name(feature): [
            bucket
            for histogram in feature.num_stats.histograms
            if histogram.type == histogram.STANDARD
            for bucket in histogram.buckets
        ]
        for dataset in proto.datasets
        for feature in dataset.features
        if _name(feature) in names
    }


def _name(feature: Any) -> str:
    return ".".join(feature.path.step)


def _summary(feature: Any) -> FeatureSummary:
    common = getattr(feature, feature.WhichOneof("stats")).common_stats
    detail, histogram = _detail(feature, common.tot_num_values)
    return FeatureSummary(
        name=_name(feature),
        type=_TYPES[feature.type],
        present=int(common.num_non_missing),
        missing=int(common.num_missing),
        values=int(common.tot_num_values),
        min_values=int(common.min_num_values),
        mean_values=float(common.avg_num_values),
        max_values=int(common.max_num_values),
        detail=detail,
        histogram=histogram,
    )


def _detail(feature: Any, values: int) -> tuple[Numbers | Texts | Image | None, tuple[float, ...]]:
    kind = feature.WhichOneof("stats")
    if not values:
        return None, ()
    if kind == "num_stats":
        stats = feature.num_stats
        standard = next(each for each in stats.histograms if each.type == each.STANDARD)
        nan = int(standard.num_nan)
        if nan == values:
            none = math.nan
            return Numbers(none, none, none, none, none, 0, nan), ()
        numbers = Numbers(
            *(stats.mean, stats.std_dev, stats.min, stats.median, stats.max, stats.num_zeros, nan),
            quantiles=tuple(
                bound
                for each in stats.histograms
                if each.type == each.QUANTILES and each.buckets
                for bound in (each.buckets[0].low_value, *(b.high_value for b in each.buckets))
            ),
        )
        return numbers, tuple(each.sample_count for each in standard.buckets)
    if kind == "bytes_stats":
        sizes = feature.bytes_stats
        return Image(sizes.avg_num_bytes, sizes.min_num_bytes, sizes.max_num_bytes), ()
    text = feature.string_stats
    top = tuple((each.value, each.frequency) for each in text.top_values)
    ranks = tuple(each.sample_count for each in text.rank_histogram.buckets[:_BARS])
    return Texts(text.unique, text.avg_length, text.invalid_utf8_count, top), ranks


STATS_COLUMNS = (
    *("feature", "type", "present", "values", "mean", "std", "min", "median", "max"),
    "histogram",
)
"""Headings of the columns of :func:`stats_row`."""

_BLOCKS = "▁▂▃▄▅▆▇█"
_TOP = 3
_SHOWN = 24
"""Maximum length of a shown value, in characters."""


def stats_row(feature: FeatureSummary) -> tuple[str, ...]:
    """The row of a feature: an escaped text for each column of :data:`STATS_COLUMNS`."""
    examples = feature.present + feature.missing
    present = _percent(feature.present, examples)
    per_example = ""
    if feature.present:
        per_example = f"{feature.min_values:,}"
        if feature.max_values > feature.min_values:
            per_example += f" to {feature.max_values:,}"
    detail = feature.detail
    # The sparkline and the words after it; no bars if all texts are equally frequent.
    histogram = "  ".join(filter(None, (sparkline(feature.histogram), _words(feature))))
    if isinstance(detail, Texts) and 1 < detail.unique == feature.values:
        histogram = f"all {detail.unique:,} different"
    return (
        safe(feature.name),
        "image" if feature.type == "picture" else feature.type,
        present,
        per_example,
        *_rows_detail(feature),
        histogram,
    )


def _rows_detail(feature: FeatureSummary) -> tuple[str, str, str, str, str]:
    """The texts of the columns mean, std, min, median and max."""
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
    """The text after the sparkline."""
    detail = feature.detail
    if isinstance(detail, Numbers):
        return f"{_percent(detail.nan, feature.values)} NaN" if detail.nan else ""
    if not isinstance(detail, Texts) or not detail.unique:
        return ""
    shown = []
    for value, frequency in detail.top[:_TOP]:
        quoted = "bytes" if value == NOT_UTF8 else f'"{safe(value, limit=_SHOWN)}"'
        shown.append(f"{quoted} {_percent(frequency, feature.values)}")
    return ": ".join(filter(None, (f"{detail.unique:,} different", ", ".join(shown))))


def _number(value: float, kind: str) -> str:
    if kind == "int64" and math.isfinite(value) and value == round(value) and abs(value) < 1e9:
        return f"{int(value)}"
    return f"{value:.4g}"


def _percent(part: float, whole: float) -> str:
    """``12 %``. The result is 0 % or 100 % only if the share is exactly 0 or 1."""
    if not whole:
        return ""
    share = 100 * part / whole
    if 0 < share < 0.1:
        return "<0.1 %"
    if 99.9 < share < 100:
        return ">99.9 %"
    return f"{share:.0f} %" if share == round(share) or 1 <= share <= 99 else f"{share:.1f} %"


def sparkline(counts: Sequence[float]) -> str:
    """Draw the first ten counts with block characters. The height of a block is relative to the
    largest count.

    A space stands for zero. Every other count is drawn with at least the lowest block.
    """
    shown = counts[:_BARS]
    most = max(shown, default=0)
    if most <= 0:
        return ""
    last = len(_BLOCKS) - 1
    blocks = [_BLOCKS[round(each / most * last)] if each > 0 else " " for each in shown]
    return "".join(blocks)
