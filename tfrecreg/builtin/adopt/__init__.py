"""Adopting TFRecords that another tool wrote: a build with the same bytes.

- `request`: the requested files, their splits, order and names
- `examine`: one pass over a shard: its index, its features, the kind of its payloads
- `beside`: descriptions, label maps and schemas that other tools left beside the shards
- `folder`: copy, link or hash the shards, and refuse what does not fit
- `manifest`: the label maps and the manifest
- `run`: the operation
"""
