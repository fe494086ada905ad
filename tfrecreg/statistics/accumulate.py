"""TFDV's generators fed with record batches.

TFDV's exact generator of frequent values leaves the counting to Beam, in memory that grows with
the data. Its other generator works in process with sketches, and counts differently even where
there is little to count: everything that is not UTF-8 is one value. So :mod:`.frequent` counts.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tfrecreg.statistics.frequent import MAX_BYTES, ValueCounts, value_key
from tfrecreg.statistics.options import StatisticsOptions
from tfrecreg.statistics.tfdv import Tfdv, load_tfdv


class Accumulator:
    """Accumulates statistics.

    Args:
        max_value_bytes: see :data:`tfrecreg.statistics.frequent.MAX_BYTES`.

    Raises:
        MissingExtraError: TFDV is not installed.
        FailureError: TFDV does not exist for this Python or this platform.
    """

    def __init__(self, options: StatisticsOptions, max_value_bytes: int = MAX_BYTES) -> None:
        self._tfdv = load_tfdv()
        self._options = options
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
        """Merge the dump of another accumulator with the same options."""
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
        found = merge_util.merge_dataset_feature_statistics([*outputs, *self._frequent()])
        # In TFDV's hands their order is that in which the batches happened to have them.
        found.datasets[0].features.sort(key=lambda feature: tuple(feature.path.step))
        return found

    def _frequent(self) -> Iterator[Any]:
        """`DatasetFeatureStatistics` of one feature each, to be merged with the others'."""
        topk, options = self._tfdv.topk, self._options
        for name, found in self._values.features():
            yield topk.make_dataset_feature_stats_proto_topk_single(
                (name,),
                [topk.FeatureValueCount(value, count) for count, value in found.top],
                False,
                options.num_top_values,
                options.frequency_threshold,
                options.num_rank_histogram_buckets,
            )
            yield topk.make_dataset_feature_stats_proto_unique_single((name,), found.unique)

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
                counted = self._tfdv.arrays.flatten_nested(column)[0].value_counts()
                values = counted.field("values").to_pylist()
                if types.is_large_binary(kind):
                    values = map(value_key, values)
                self._values.add(
                    name, zip(values, counted.field("counts").to_pylist(), strict=True)
                )


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
