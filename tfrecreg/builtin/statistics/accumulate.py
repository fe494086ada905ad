"""Computes the same statistics of features as TFDV, in the form of TFDV's message.

TFDV estimates quantiles and histograms. Here they are exact if a feature has at most a few thousand
distinct numbers; otherwise they are estimated: see :class:`.sketches.Quantiles`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfrecreg.builtin.statistics.sketches import (
    MAX_BYTES,
    CountedValue,
    Frequent,
    Quantiles,
    ValueCounts,
    ranked,
)
from tfrecreg.builtin.statistics.summary import NOT_UTF8, messages
from tfrecreg.core.example.model import Kind
from tfrecreg.core.schema.definition import BoolDomain, FloatDomain, IntDomain, OtherDomain, Schema
from tfrecreg.core.schema.proto import schema_message

_Ints = NDArray[np.int64]

_BUCKETS = 10
"""Number of buckets in each histogram of numbers."""
_TOP_VALUES = 20


class DerivedFeature(NamedTuple):
    """A feature of the schema that consists of other features."""

    name: str
    value: str
    """The feature with the values."""
    parts: tuple[str, ...]
    """If `sparse` is true, the features with the indices; otherwise the feature with the
    weights."""
    sparse: bool


def categories(schema: Schema) -> dict[str, Kind]:
    """The kind of each feature with categorical numbers, which are counted like strings."""
    found: dict[str, Kind] = {}
    for each in schema.features:
        domain = each.domain
        if each.domain_name:  # as in TFDV, only a domain inside the feature makes categories
            continue
        if each.type == "INT" and (
            isinstance(domain, BoolDomain)
            or (isinstance(domain, IntDomain) and domain.is_categorical)
            or domain == OtherDomain("natural_language_domain")
        ):
            found[each.name] = Kind.INT64
        elif each.type == "FLOAT" and isinstance(domain, FloatDomain) and domain.is_categorical:
            found[each.name] = Kind.FLOAT
    return found


def derived_features(schema: Schema) -> Iterator[DerivedFeature]:
    """The sparse and weighted features."""
    for sparse in schema.sparse:
        yield DerivedFeature(sparse.name, sparse.values, tuple(sorted({*sparse.indices})), True)
    # As in TFDV, a path of several steps is not the feature that `Schema` joins with `/`.
    for each in schema_message(schema).weighted_feature if schema.weighted else ():
        value, weight = (".".join(path.step) for path in (each.feature, each.weight_feature))
        yield DerivedFeature(each.name, value, (weight,), False)


class Values(NamedTuple):
    """The values of a feature in some examples."""

    kind: Kind
    per_example: _Ints
    """Number of values per example, for the examples in which the feature has a kind."""
    numbers: NDArray[Any]
    """The values if they are INT64 or FLOAT; for BYTES, their sizes in bytes."""
    keys: Sequence[bytes] = ()
    """The :func:`value_key` of each BYTES value; empty for images and other kinds."""


class ExampleColumns(NamedTuple):
    num_rows: int
    columns: Mapping[str, Values]
    """Values by feature. The kind is UNSET if the feature has no kind in any example."""
    lengths: Sequence[tuple[Mapping[str, int], int]] = ()
    """For derived features: how many values the features have, and in how many examples."""


class Accumulator:
    def __init__(self, schema: Schema, max_value_bytes: int = MAX_BYTES) -> None:
        self._images, self._categories = schema.images(), categories(schema)
        self._examples = 0
        self._features: dict[str, _Feature] = {}
        self._derived = {each: _Parts() for each in derived_features(schema)}
        self._values = ValueCounts(max_value_bytes)

    @property
    def sketched(self) -> tuple[str, ...]:
        """The features with too many values to count exactly."""
        return self._values.sketched

    def kinds(self) -> dict[str, Kind]:
        """The kind of each feature; UNSET if it has none in any example."""
        return {name: feature.kind for name, feature in self._features.items()}

    def add(self, rows: ExampleColumns) -> None:
        self._examples += rows.num_rows
        for name, values in rows.columns.items():
            feature = self._features.setdefault(name, _Feature())
            feature.add_counts(values)
            if not len(values.numbers):
                continue
            if values.kind is Kind.BYTES:
                feature.add_sizes(values.numbers)
                counted: Mapping[CountedValue, int] = Counter(values.keys)
                feature.not_utf8 += sum(
                    count for value, count in counted.items() if _text(value) is None
                )
            elif self._categories.get(name) is values.kind:
                counted, size = _categories(values.numbers)
                feature.size += size
            else:
                feature.add_numbers(values.numbers)
                continue
            self._values.add(name, counted.items())
        for derived, parts in self._derived.items():
            for lengths, times in rows.lengths:
                parts.add(derived, lengths, times)

    def merge(self, other: Accumulator) -> None:
        """Add another accumulator with the same schema. Do not use the other one afterwards."""
        self._examples += other._examples
        for name, feature in other._features.items():
            if name in self._features:
                self._features[name].merge(feature)
            else:
                self._features[name] = feature
        for each, parts in other._derived.items():
            self._derived[each].merge(parts)
        self._values.merge(other._values)

    def extract(self) -> Any:
        """The `DatasetFeatureStatisticsList`: one dataset, with its features sorted by name."""
        found = messages().DatasetFeatureStatisticsList()
        dataset = found.datasets.add(num_examples=self._examples)
        frequent = dict(self._values.features())
        for name, feature in sorted(self._features.items()):
            proto = dataset.features.add()
            proto.path.step.append(name)
            self._fill(proto, name, feature, frequent.get(name))
        for derived, parts in self._derived.items():
            proto = dataset.features.add()
            proto.path.step.append(derived.name)
            parts.fill(proto.custom_stats, derived)
        dataset.features.sort(key=lambda each: tuple(each.path.step))
        return found

    def _fill(self, proto: Any, name: str, feature: _Feature, frequent: Frequent | None) -> None:
        kind = feature.kind
        if kind in (Kind.UNSET, Kind.BYTES):
            proto.type = proto.BYTES if name in self._images else proto.STRING
        else:
            proto.type = proto.INT if kind is Kind.INT64 else proto.FLOAT
        if proto.type == proto.BYTES:
            stats = proto.bytes_stats
            feature.fill_sizes(stats)
        elif proto.type == proto.STRING or self._categories.get(name) is kind:
            stats = proto.string_stats
            stats.SetInParent()
            stats.invalid_utf8_count = feature.not_utf8
            if feature.values:
                stats.avg_length = feature.size / feature.values
            if frequent is not None:
                _fill_frequent(stats, frequent)
        else:
            stats = proto.num_stats
            feature.fill_numbers(stats)
        feature.fill_common(stats.common_stats, self._examples)


class _Feature:
    """The running statistics of one feature."""

    def __init__(self) -> None:
        self.kind = Kind.UNSET
        self.present = self.values = 0
        self.fewest, self.most = math.inf, 0
        """Smallest and largest number of values per example. Examples without the feature are left
        out."""
        self.size = 0
        """Total size of the values in bytes, or in characters if they are categorical numbers."""
        self.smallest, self.largest = math.inf, 0
        """Sizes in bytes of the smallest and of the largest value."""
        self.not_utf8 = 0
        self.nan = self.zeros = self.counted = 0
        self.mean = self.variance = 0.0
        """Mean and variance of the `counted` numbers that are not NaN."""
        self.low, self.high = math.inf, -math.inf
        self.quantiles, self.lengths = Quantiles(), Quantiles()
        """Quantiles of the feature's numbers, and quantiles of how many values each example has."""

    def add_counts(self, values: Values) -> None:
        self.kind = self.kind or values.kind
        counts = values.per_example
        if len(counts):
            self.present += len(counts)
            self.values += int(counts.sum())
            self.fewest = min(self.fewest, int(counts.min()))
            self.most = max(self.most, int(counts.max()))
            self.lengths.add(counts.astype(np.float64))

    def add_sizes(self, sizes: _Ints) -> None:
        self.size += int(sizes.sum())
        self.smallest = min(self.smallest, int(sizes.min()))
        self.largest = max(self.largest, int(sizes.max()))

    def add_numbers(self, values: NDArray[Any]) -> None:
        numbers = values.astype(np.float64)
        if values.dtype.kind == "f":
            is_nan = np.isnan(numbers)
            if is_nan.any():
                self.nan += int(is_nan.sum())
                numbers = numbers[~is_nan]
        if not len(numbers):
            return
        self.zeros += len(numbers) - int(np.count_nonzero(numbers))
        self.low = min(self.low, float(numbers.min()))
        self.high = max(self.high, float(numbers.max()))
        with np.errstate(all="ignore"):  # infinite values have no mean
            self._combine(len(numbers), float(numbers.mean()), float(numbers.var()))
        self.quantiles.add(numbers)

    def merge(self, other: _Feature) -> None:
        self.kind = self.kind or other.kind
        for name in ("present", "values", "size", "not_utf8", "nan", "zeros"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("fewest", "smallest", "low"):
            setattr(self, name, min(getattr(self, name), getattr(other, name)))
        for name in ("most", "largest", "high"):
            setattr(self, name, max(getattr(self, name), getattr(other, name)))
        self._combine(other.counted, other.mean, other.variance)
        self.quantiles.merge(other.quantiles)
        self.lengths.merge(other.lengths)

    def _combine(self, counted: int, mean: float, variance: float) -> None:
        """Update the mean and variance for more numbers, as Chan, Golub and LeVeque describe it."""
        total = self.counted + counted
        if not counted:
            return
        share, step = counted / total, mean - self.mean
        self.variance += share * (variance - self.variance + (1 - share) * step * step)
        self.mean += share * step
        self.counted = total

    def fill_common(self, stats: Any, examples: int) -> None:
        """Fill in `CommonStatistics`."""
        stats.num_non_missing = self.present
        stats.num_missing = examples - self.present
        stats.tot_num_values = self.values
        if self.present:
            stats.min_num_values, stats.max_num_values = int(self.fewest), self.most
            stats.avg_num_values = self.values / self.present
            ends = self.fewest, self.most
            _fill_equal_weight(stats.num_values_histogram, self.lengths, self.present, ends)

    def fill_sizes(self, stats: Any) -> None:
        """Fill in `BytesStatistics`."""
        stats.SetInParent()
        if self.values:
            stats.avg_num_bytes = self.size / self.values
            stats.min_num_bytes = self.smallest
            stats.max_num_bytes = stats.max_num_bytes_int = self.largest

    def fill_numbers(self, stats: Any) -> None:
        """Fill in `NumericStatistics`."""
        stats.SetInParent()
        if not self.counted:
            if self.nan:
                stats.histograms.add(type=messages().Histogram.STANDARD, num_nan=self.nan)
                stats.histograms.add(type=messages().Histogram.QUANTILES, num_nan=self.nan)
            return
        stats.mean, stats.num_zeros = self.mean, self.zeros
        stats.std_dev = math.sqrt(self.variance) if self.variance > 0 else 0.0
        stats.min, stats.max = self.low, self.high
        values, counts = self.quantiles.counts()
        stats.median = float(ranked(values, counts, 2)[1])
        standard = stats.histograms.add(type=messages().Histogram.STANDARD, num_nan=self.nan)
        ends = self.low, self.high
        for low, high, count in _equal_width(values, counts, ends):
            standard.buckets.add(low_value=low, high_value=high, sample_count=count)
        quantiles = stats.histograms.add(num_nan=self.nan)
        _fill_equal_weight(quantiles, self.quantiles, self.counted, ends)


class _Parts:
    """Compares the parts of a derived feature, in the examples that have at least one part."""

    def __init__(self) -> None:
        self.missing: Counter[str] = Counter()
        """For each part, the number of examples without it."""
        self.least: dict[str, int] = {}
        self.most: dict[str, int] = {}
        """For each part, the lowest and highest difference between two numbers of values in an
        example: the part's number minus the value feature's number.
        """

    def add(self, derived: DerivedFeature, lengths: Mapping[str, int], times: int) -> None:
        names = (derived.value, *derived.parts)
        if not any(name in lengths for name in names):
            return
        self.missing.update({name: times for name in names if name not in lengths})
        for name in derived.parts:
            more = lengths.get(name, 0) - lengths.get(derived.value, 0)
            self.least[name] = min(self.least.get(name, more), more)
            self.most[name] = max(self.most.get(name, more), more)

    def merge(self, other: _Parts) -> None:
        self.missing.update(other.missing)
        for name, more in other.least.items():
            self.least[name] = min(self.least.get(name, more), more)
        for name, more in other.most.items():
            self.most[name] = max(self.most.get(name, more), more)

    def fill(self, stats: Any, derived: DerivedFeature) -> None:
        """Fill in the `CustomStatistic`s."""
        if not derived.sparse:
            (weight,) = derived.parts
            stats.add(name="missing_weight", num=self.missing[weight])
            stats.add(name="missing_value", num=self.missing[derived.value])
            stats.add(name="min_weight_length_diff", num=self.least.get(weight, 0))
            stats.add(name="max_weight_length_diff", num=self.most.get(weight, 0))
            return
        stats.add(name="missing_value", num=self.missing[derived.value])
        numbers: Mapping[str, Mapping[str, int]] = {
            "missing_index": self.missing,
            "max_length_diff": self.most,
            "min_length_diff": self.least,
        }
        for name, by_part in numbers.items():
            histogram = stats.add(name=name).rank_histogram
            for part in derived.parts:
                histogram.buckets.add(label=part, sample_count=by_part.get(part, 0))


def _fill_equal_weight(
    histogram: Any, quantiles: Quantiles, total: int, ends: tuple[float, float]
) -> None:
    """Fill in a histogram whose buckets each have an equal share of the `total` numbers."""
    histogram.type = messages().Histogram.QUANTILES
    bounds = ranked(*quantiles.counts(), _BUCKETS)
    bounds[0], bounds[-1] = ends
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        histogram.buckets.add(low_value=low, high_value=high, sample_count=total / _BUCKETS)


def _categories(numbers: NDArray[Any]) -> tuple[dict[CountedValue, int], int]:
    """How often each number occurs, and the total length of all numbers if they are written as
    text.

    FLOAT numbers are counted as text, as in TFDV: `1.0` as `1`.
    """
    distinct, counts = np.unique(numbers, return_counts=True)
    names: list[CountedValue] = distinct.tolist()
    size = int(np.dot([len(str(number)) for number in names], counts))
    if distinct.dtype.kind == "f":
        names = [str(number).removesuffix(".0").encode() for number in distinct]
    return dict(zip(names, counts.tolist(), strict=True)), size


def _equal_width(
    values: NDArray[np.float64], counts: _Ints, ends: tuple[float, float]
) -> Iterator[tuple[float, float, float]]:
    """Bounds and counts of buckets of equal width. Infinite values get separate buckets."""
    finite = np.isfinite(values)
    below, above = (int(counts[values == bound].sum()) for bound in (-math.inf, math.inf))
    values, counts = values[finite], counts[finite]
    if below:
        yield -math.inf, -math.inf, below
    if len(values):
        low, high = (
            end if math.isfinite(end) else float(each)
            for end, each in zip(ends, (values[0], values[-1]), strict=True)
        )
        with np.errstate(over="ignore"):
            bounds = np.linspace(low, high, _BUCKETS + 1) if low < high else np.array([low, high])
        if np.isfinite(bounds).all():
            reached = np.concatenate(([0], np.cumsum(counts)))
            places = np.searchsorted(values, bounds)
            places[-1] = len(values)  # the last bucket has its upper bound
            found = np.diff(reached[places]).tolist()
            yield from zip(bounds[:-1].tolist(), bounds[1:].tolist(), found, strict=True)
    if above:
        yield math.inf, math.inf, above


def _fill_frequent(stats: Any, frequent: Frequent) -> None:
    """Fill in the most frequent values of `StringStatistics`."""
    stats.unique = frequent.unique
    for rank, (count, value) in enumerate(frequent.top):
        text = NOT_UTF8 if (shown := _text(value)) is None else shown
        if rank < _TOP_VALUES:
            stats.top_values.add(value=text, frequency=count)
        stats.rank_histogram.buckets.add(
            low_rank=rank, high_rank=rank, sample_count=count, label=text
        )


def _text(value: CountedValue) -> str | None:
    """The text of a value; None for bytes that are not UTF-8."""
    if isinstance(value, int):
        return str(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
