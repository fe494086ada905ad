"""The `inflation` validator: the size of the shards, its causes, and their cures.

Totals are exact: the bytes of every feature. Causes are found in a sample of the records of each
shard, the same ones in every run, and the savings of a cure are an estimate from these.

- `stored_numbers`: the numbers that a feature holds, in any storage and wrapping
- `feature_sample`: one feature in the sampled records, and its possible smaller size
- `shard_sizes`: the sizes of one shard, and the sample of its records
- `validator`: from sizes to causes and cures, the limit, and the findings
"""
