"""Statistics of features at scan speed, with NumPy.

The result is a `DatasetFeatureStatisticsList` with the numbers that
`tfdv.generate_statistics_from_tfrecord` gives for the same files, options and schema. The numbers
may differ from TFDV's if a feature has many distinct values: see ``docs/statistics.md``. For code
that shows or checks statistics::

    collector = StatisticsCollector(StatisticsOptions(schema=target.schema))
    run_scan(target, [collector], engine)
    for each in collector.statistics():  # one per split
        each.split, each.examples, each.left_out, each.proto

A validator that needs statistics inherits from `StatisticsScan` and makes its visitors in `begin`
as ``partial(make_visitor, options)``. In `finish` it gets a :class:`StatisticsPart` per split.
`part.proto()` is the message that TFDV validates. If there is no message, `part.conflict` is the
reason. If there is nothing to check, `part.examples` is 0. Two validators with the same options
share the work. Only `judge_statistics` imports TFDV, so `applies` of a validator must call
`missing_tfdv()`.

`stats_of` makes the statistics of a target, or reads earlier statistics of the same content from
the :class:`StatisticsCache` of its registry.
"""
