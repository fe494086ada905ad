"""Salvage of damaged shards: clean shards, the bytes that were cut out, and a report.

- `run`: the operation
- `find`: the selected shards, and helpful files beside them
- `shard`: one shard, from the scanner's batches and faults to its clean file
- `work`: the same, step by step: keeping, repairing and cutting out records
- `doubts`: records that may not belong to the shard
- `local_copy`: a copy of a shard behind a URL, for the time it is worked on
- `original`: the damaged file, read a second time, and which records of its index were found
- `files`: the files of the clean shard and the quarantine
- `model`: the result, and the list of cuts

The mark that all this leaves in its folder is read by
:func:`tfrecreg.core.registry.manifest.model.read_mark`.
"""
