"""Statistics of features at scan speed, with the numbers that TFDV gives: see `docs/statistics.md`.

`stats_of` makes the statistics of a target, or reads them from its registry's cache. A validator
that needs statistics inherits from `StatisticsScan` and makes its visitors with `make_visitor`, so
that validators with the same options share the work. In `finish`, the validator gets a
`StatisticsPart` per split. `part.proto()` is TFDV's message. If a split has no message,
`part.conflict` is the reason. Only `judge_statistics` imports TFDV, so `applies` of a validator
must call `missing_tfdv()`.
"""
