"""The `inflation` validator: how large the shards are, what makes them so, and what would help.

Totals are exact: the bytes of every feature. Causes are told from a sample of the records of each
shard, the same ones in every run, and what a cure would save is an estimate from these.

- `stored_numbers`: which numbers a feature holds, however they are stored and wrapped
- `feature_sample`: what the sampled records show of one feature, and how small it could be
- `shard_sizes`: the sizes of one shard, and the sample of its records
- `validator`: from sizes to causes and cures, the limit, and the findings
"""

from __future__ import annotations

__all__: list[str] = []
