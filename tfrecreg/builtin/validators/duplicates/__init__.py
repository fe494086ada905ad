"""The `duplicates` validator: the same image or record again, in one split or in two.

- `visitor`: options, and the fingerprints of the records of one shard
- `sorted_runs`: sorted rows of fingerprints on disk, merged in bounded memory
- `matches`: equal rows, and one image under several labels
- `validator`: from matches to findings
"""
