"""One pass over the bytes for all validators.

- `interface`: the base classes of validators and visitors
- `record_validator`: the base class of validators that look at one record at a time
- `tally`: exact counts and bounded locations of findings, and parts as JSON
- `indexes`: the contents of the indexes beside the shards
- `large_records`: records that are not held in memory, read once more
- `run`: the scan of all shards of a target by an engine: each is read once, parts return in order
- `conditions`: the records for which a condition in SQL holds, by the room of questions
- `full_scan`: read every record of a target, or fail
- `cache`: results of earlier scans of unchanged shards
"""
