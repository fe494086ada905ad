"""The `items` validator: the items of raw data, and the records that hold them.

- `names`: what a record calls itself, and what identifies it: the digest of its image
- `visitor`: both of the records of one shard, written to disk as sorted runs
- `matching`: rows with equal digests, in bounded memory
- `validator`: from matches to findings
"""
