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

* :mod:`.tfdv` - the one home of TFDV
* :mod:`.options` - which statistics
* :mod:`.visitor` - from payloads to columns
* :mod:`.accumulate` - statistics of columns
* :mod:`.quantiles` - the distribution of numbers, in bounded memory
* :mod:`.frequent` - the most frequent values, in bounded memory
* :mod:`.part` - what a shard contributes
* :mod:`.collect` - the visitor of a shard, and all splits of a target
* :mod:`.summary` - statistics as bytes, as text, as plain values
* :mod:`.rows` - a feature in words, for tables
* :mod:`.judge` - TFDV's anomalies
* :mod:`.distance` - distances of two statistics, and the features that are compared
* :mod:`.make` - the statistics of a target, in a pass of their own or in that of a check
* :mod:`.cache` - statistics by content digest
"""
