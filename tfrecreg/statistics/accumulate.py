"""TFDV's generators fed with record batches, and the most frequent values of features.

TFDV's exact generator of frequent values leaves the counting to Beam, in memory that grows with
the data. Its other generator works in process with sketches, and counts differently even where
there is little to count: everything that is not UTF-8 is one value. So values are counted here,
and where there are too many for memory, the feature that takes most of it is handed to TFDV's
sketches.
"""

from __future__ import annotations

import heapq
import pickle
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from blake3 import blake3

from tfrecreg.statistics.options import StatisticsOptions
from tfrecreg.statistics.tfdv import Tfdv, load_tfdv

MAX_BYTES = 32 << 20
"""About what the counted values of all features may take; beyond it the largest is sketched."""

_EACH = 128
"""Overhead of a value in bytes."""

_LONG = 256
_HEAD = 64

_MISRA_GRIES_BUCKETS = 1024
_KMV_BUCKETS = 16384
_LARGE_STRING = 1024
_LARGE_STRING_LABEL = "__LARGE_BYTES__"
# The numbers of `stats_impl` and of `TopKUniquesSketchStatsGenerator`.

_Value = bytes | int


class ValueCounts:
    """How often each value of each feature occurs. Picklable, mergeable.

    Args:
        options: how many values to tell of in the end.
        max_bytes: see :data:`MAX_BYTES`.
    """

    def __init__(self, options: StatisticsOptions, max_bytes: int = MAX_BYTES) -> None:
        self._options = options
        self._max_bytes = max_bytes
        self._counts: dict[str, dict[_Value, int]] = {}
        self._bytes: dict[str, int] = {}
        self._total = 0
        self._sketches: dict[str, tuple[Any, Any]] = {}
        """Sketches of features with too many values: most frequent values, and number of values."""

    @property
    def sketched(self) -> tuple[str, ...]:
        """The features whose values are counted by sketches, in order of their names."""
        return tuple(sorted(self._sketches))

    def add(self, feature: str, values: Any) -> None:
        """Count the values of an Arrow array of bytes or integers, without nulls."""
        counted = values.value_counts()
        pairs = zip(
            counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True
        )
        self._add(feature, ((_key(value), count) for value, count in pairs))

    def merge(self, other: ValueCounts) -> None:
        """Take in what another one counted, which is of no use any more."""
        for feature, sketches in other._sketches.items():
            if feature not in self._sketches:
                self._sketch(feature)
            for mine, more in zip(self._sketches[feature], sketches, strict=True):
                mine.Merge(more)
        for feature, counts in other._counts.items():
            self._add(feature, counts.items())

    def protos(self) -> Iterator[Any]:
        """`DatasetFeatureStatistics` of one feature each, to be merged with the others'."""
        tfdv = load_tfdv()
        options = self._options
        most = max(options.num_top_values, options.num_rank_histogram_buckets)
        for feature in sorted({*self._counts, *self._sketches}):
            path = (feature,)
            if feature in self._sketches:
                frequent, distinct = self._sketches[feature]
                pairs = [
                    (each["counts"], each["values"]) for each in frequent.Estimate().to_pylist()
                ]
                unique = distinct.Estimate()
            else:
                counts = self._counts[feature]
                pairs = [(count, value) for value, count in counts.items()]
                unique = len(counts)
            if not pairs:
                continue
            yield tfdv.topk.make_dataset_feature_stats_proto_topk_single(
                path,
                [
                    tfdv.topk.FeatureValueCount(value, count)
                    for count, value in heapq.nlargest(most, pairs)
                ],
                False,
                options.num_top_values,
                options.frequency_threshold,
                options.num_rank_histogram_buckets,
            )
            yield tfdv.topk.make_dataset_feature_stats_proto_unique_single(path, unique)

    def _add(self, feature: str, pairs: Iterable[tuple[_Value, int]]) -> None:
        if feature in self._sketches:
            _feed(load_tfdv(), self._sketches[feature], dict(pairs))
            return
        counts = self._counts.setdefault(feature, {})
        size = size_before = self._bytes.get(feature, 0)
        for value, count in pairs:
            before = counts.get(value)
            if before is None:
                counts[value] = count
                size += _EACH + (len(value) if isinstance(value, bytes) else 0)
            else:
                counts[value] = before + count
        self._bytes[feature] = size
        self._total += size - size_before
        while self._total > self._max_bytes:
            self._sketch(max(self._bytes, key=lambda name: (self._bytes[name], name)))

    def _sketch(self, feature: str) -> None:
        """Go over from counts to sketches."""
        tfdv = load_tfdv()
        options = self._options
        frequent = tfdv.sketches.MisraGriesSketch(
            num_buckets=max(
                _MISRA_GRIES_BUCKETS, options.num_top_values, options.num_rank_histogram_buckets
            ),
            large_string_threshold=_LARGE_STRING,
            large_string_placeholder=_LARGE_STRING_LABEL,
        )
        self._sketches[feature] = (frequent, tfdv.sketches.KmvSketch(_KMV_BUCKETS))
        self._total -= self._bytes.pop(feature, 0)
        _feed(tfdv, self._sketches[feature], self._counts.pop(feature, {}))


def _feed(tfdv: Tfdv, sketches: tuple[Any, Any], counts: dict[_Value, int]) -> None:
    if not counts:
        return
    pa = tfdv.pa
    numbers = isinstance(next(iter(counts)), int)
    values = pa.array(list(counts), type=pa.int64() if numbers else pa.large_binary())
    frequent, distinct = sketches
    frequent.AddValues(values, pa.array(list(counts.values()), type=pa.float32()))
    distinct.AddValues(values)


def _key(value: _Value) -> _Value:
    """The counted form of a value: itself, unless it is long and not text.

    A long value that is not UTF-8 is never shown, so that its start, which places it among values
    that are as frequent, and its digest do. 0xFF is in no UTF-8.
    """
    if isinstance(value, int) or len(value) <= _LONG:
        return value
    try:
        value.decode()
    except UnicodeDecodeError:
        return value[:_HEAD] + b"\xff" + blake3(value).digest(16)
    return value


class Accumulator:
    """Statistics in the making.

    Args:
        max_value_bytes: see :data:`MAX_BYTES`.

    Raises:
        MissingExtraError: TFDV is not installed.
        FailureError: there is none for this Python or this platform.
    """

    def __init__(self, options: StatisticsOptions, max_value_bytes: int = MAX_BYTES) -> None:
        self._tfdv = load_tfdv()
        self._plan = _plan(self._tfdv, options)
        self._generators = self._plan.generators
        self._partial = [generator.create_accumulator() for generator in self._generators]
        self._values = ValueCounts(options, max_value_bytes)

    @property
    def sketched(self) -> tuple[str, ...]:
        """The features whose values were too many to be counted exactly."""
        return self._values.sketched

    def add(self, batch: Any) -> None:
        """Take in a pyarrow `RecordBatch`, whose columns are lists or nulls."""
        # Infinite values have no mean, and NumPy need not say so.
        with np.errstate(all="ignore"):
            self._partial = [
                generator.add_input(partial, batch)
                for generator, partial in zip(self._generators, self._partial, strict=True)
            ]
        if self._plan.counts:
            self._count(batch)

    def dump(self) -> bytes:
        """All that was taken in, for :meth:`merge` in another process."""
        self._compact()
        return pickle.dumps((self._partial, self._values))

    def merge(self, dumped: bytes) -> None:
        """Take in what another accumulator of the same options dumped."""
        partial, values = pickle.loads(dumped)
        with np.errstate(all="ignore"):
            self._partial = [
                generator.merge_accumulators([mine, more])
                for generator, mine, more in zip(
                    self._generators, self._partial, partial, strict=True
                )
            ]
        self._values.merge(values)

    def extract(self) -> Any:
        """The `DatasetFeatureStatisticsList`: one dataset, its features in order of their names."""
        self._compact()
        merge_util = self._tfdv.stats_impl.merge_util
        with np.errstate(all="ignore"):
            outputs = [
                generator.extract_output(partial)
                for generator, partial in zip(self._generators, self._partial, strict=True)
            ]
        found = merge_util.merge_dataset_feature_statistics([*outputs, *self._values.protos()])
        # In TFDV's hands their order is that in which the batches happened to have them.
        found.datasets[0].features.sort(key=lambda feature: tuple(feature.path.step))
        return found

    def _compact(self) -> None:
        self._partial = [
            generator.compact(partial)
            for generator, partial in zip(self._generators, self._partial, strict=True)
        ]

    def _count(self, batch: Any) -> None:
        types = self._tfdv.pa.types
        images, categories = self._plan.images, self._plan.categories
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if types.is_null(column.type) or name in images:
                continue
            kind = column.type.value_type
            if types.is_large_binary(kind) or (types.is_integer(kind) and name in categories):
                self._values.add(name, self._tfdv.arrays.flatten_nested(column)[0])


class _Plan(NamedTuple):
    """Work to do on the columns."""

    generators: list[Any]
    """TFDV's generators that run without Beam."""
    counts: bool
    """Whether :class:`ValueCounts` is in the place of TFDV's generator that does not."""
    images: frozenset[str]
    """Features whose values are not counted."""
    categories: frozenset[str]
    """Integer features whose values are counted."""


def _plan(tfdv: Tfdv, options: StatisticsOptions) -> _Plan:
    schema = options.schema_proto()
    numbers: dict[Any, Any] = {}
    images: Iterable[Any] = ()
    if schema is not None:
        numbers = tfdv.schema_util.get_categorical_numeric_feature_types(schema)
        images = tfdv.schema_util.get_bytes_features(schema)
    sketches = options.use_sketch_based_topk_uniques or any(
        kind == tfdv.schema_pb2.FLOAT for kind in numbers.values()
    )
    its_options = tfdv.api.StatsOptions(
        schema=schema,
        num_top_values=options.num_top_values,
        frequency_threshold=options.frequency_threshold,
        num_rank_histogram_buckets=options.num_rank_histogram_buckets,
        num_values_histogram_buckets=options.num_values_histogram_buckets,
        num_histogram_buckets=options.num_histogram_buckets,
        num_quantiles_histogram_buckets=options.num_quantiles_histogram_buckets,
        epsilon=options.epsilon,
        use_sketch_based_topk_uniques=sketches,
    )
    generators = tfdv.stats_impl.get_generators(its_options)
    combiners = [each for each in generators if not isinstance(each, tfdv.transform)]
    for generator in combiners:
        generator.setup()
    integers = (path for path, kind in numbers.items() if kind == tfdv.schema_pb2.INT)
    return _Plan(combiners, not sketches, _names(images), _names(integers))


def _names(paths: Iterable[Any]) -> frozenset[str]:
    """Path of a feature, which in an Example has no parents."""
    return frozenset(path.steps()[0] for path in paths if len(path.steps()) == 1)
