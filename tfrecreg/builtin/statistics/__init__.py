"""Statistics of features at scan speed, with NumPy.

What comes out is a `DatasetFeatureStatisticsList`, with the numbers that
`tfdv.generate_statistics_from_tfrecord` gives for the same files, options and schema; see
``docs/statistics.md`` for the effect of sketches. For code that shows statistics, or judges by
them::

    collector = StatisticsCollector(StatisticsOptions(schema=target.schema))
    run_scan(target, [collector], engine)
    for each in collector.statistics():  # one a split
        each.split, each.examples, each.left_out, each.proto

A validator that wants statistics makes its visitors in `begin` as ``partial(make_visitor,
options)``, takes over `StatisticsCollector.merge`, and gets in `finish` a :class:`StatisticsPart`
for each split: `part.proto()` is what TFDV validates, unless `part.conflict` says why there is
none, and `part.examples` is 0 where there is nothing to judge. Two validators that want the same
cost no more than one. `missing_tfdv()` is for its `applies`: only `judge_statistics` imports TFDV.

`stats_of` makes the statistics of a target, or recalls what was made of the same content before
from the :class:`StatisticsCache` of its registry.
"""
