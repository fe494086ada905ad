"""The `inflation` validator: the size of the shards, its causes, and their cures.

The bytes of every feature are counted exactly. Causes are found in a sample of each shard's
records, which is the same in every run, and the savings of a cure are estimated from the sample.
"""
