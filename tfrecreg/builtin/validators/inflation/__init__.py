"""The `inflation` validator: finds out what makes shards large, and what would make them smaller.

The bytes of every feature are counted exactly. Causes, and the bytes that their cures would save,
are estimated from a sample of each shard's records. The sample is the same in every run.
"""
