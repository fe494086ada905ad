"""The `inflation` validator: the size of the shards, its causes, and their cures.

Totals are exact: the bytes of every feature. Causes are found in a sample of the records of each
shard, the same ones in every run, and the savings of a cure are an estimate from these.
"""
