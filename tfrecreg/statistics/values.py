"""The most frequent values of a feature and the number of different ones: exact while they fit.

TFDV's own generator of these leaves the counting to Beam and is exact, in memory that grows with
the data. Its other generator works in process with sketches, and counts differently even where
there is little to count: all that is not UTF-8 as one value. So values are counted here, and when
there are too many for memory, the feature that takes most of it goes over to TFDV's sketches.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Any

from blake3 import blake3

from tfrecreg.statistics.options import StatisticsOptions
from tfrecreg.statistics.tfdv import Tfdv, load_tfdv

MAX_BYTES = 32 << 20
"""About what the counted values of all features may take; beyond it the largest is sketched."""

_EACH = 128
"""What a value takes besides its own bytes."""

_LONG = 256
_HEAD = 64

_MISRA_GRIES_BUCKETS = 1024
_KMV_BUCKETS = 16384
_LARGE_STRING = 1024
_LARGE_STRING_LABEL = "__LARGE_BYTES__"
# The numbers of `stats_impl` and of `TopKUniquesSketchStatsGenerator`.

Value = bytes | int


class ValueCounts:
    """How often each value of each feature occurs. Picklable, mergeable.

    Args:
        options: how many values to tell of in the end.
        max_bytes: see :data:`MAX_BYTES`.
    """

    def __init__(self, options: StatisticsOptions, max_bytes: int = MAX_BYTES) -> None:
        self._options = options
        self._max_bytes = max_bytes
        self._counts: dict[str, dict[Value, int]] = {}
        self._bytes: dict[str, int] = {}
        self._sketches: dict[str, tuple[Any, Any]] = {}
        """Of features with too many values: the most frequent, and how many."""

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

    def _add(self, feature: str, pairs: Iterable[tuple[Value, int]]) -> None:
        if feature in self._sketches:
            _feed(load_tfdv(), self._sketches[feature], dict(pairs))
            return
        counts = self._counts.setdefault(feature, {})
        size = self._bytes.get(feature, 0)
        for value, count in pairs:
            before = counts.get(value)
            if before is None:
                counts[value] = count
                size += _EACH + (len(value) if isinstance(value, bytes) else 0)
            else:
                counts[value] = before + count
        self._bytes[feature] = size
        while sum(self._bytes.values()) > self._max_bytes:
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
        self._bytes.pop(feature, None)
        _feed(tfdv, self._sketches[feature], self._counts.pop(feature, {}))


def _feed(tfdv: Tfdv, sketches: tuple[Any, Any], counts: dict[Value, int]) -> None:
    if not counts:
        return
    pa = tfdv.pa
    numbers = isinstance(next(iter(counts)), int)
    values = pa.array(list(counts), type=pa.int64() if numbers else pa.large_binary())
    frequent, distinct = sketches
    frequent.AddValues(values, pa.array(list(counts.values()), type=pa.float32()))
    distinct.AddValues(values)


def _key(value: Value) -> Value:
    """What is counted in place of a value: itself, unless it is long and no text.

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
