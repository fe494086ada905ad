"""Exporters: each writes a build or a release as a folder for another tool.

- `interface`: the base class, and the dataset that an exporter gets
- `shards`: one shard in a worker: linked or decompressed, and verified
- `records`: the records of a shard, verified while they are read
- `json_values`: features as JSON, and back
- `convert`: exporters that hold the records in files of their own: written, read again, compared
"""

from __future__ import annotations
