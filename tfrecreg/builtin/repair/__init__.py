"""Rebuilding lost or damaged files of a build or release: identical bytes, or nothing.

- `run`: the operation: compare files with the manifest, restore, verify, publish
- `elsewhere`: sound files from other copies and DVC
- `rebuild`: one shard, from its index, its sound records and the raw data; and why one differs
- `command`: its arguments; `printed`: its result
"""
