"""One pass over the bytes for all validators.

- `interface`: what a validator and its visitors are
- `tally`: counting findings with exact counts and bounded locations
- `hints`: what a shard's index knows that helps behind damage
- `keys`: the keys of records, from the indexes
- `worker`: one shard, read once, in a worker process
- `cache`: what earlier scans found in shards that did not change since
- `codec`: parts as JSON, for that
- `reuse`: which shards need not be read
- `run`: all shards of a target through an engine, parts back in shard order
"""

from __future__ import annotations

from tfrecreg.scan.cache import ScanCache
from tfrecreg.scan.interface import (
    Baseline,
    Cacheable,
    Merging,
    Need,
    Part,
    PartCodec,
    RawSize,
    Shard,
    Target,
    Validator,
    ValidatorRecord,
    Visitor,
)
from tfrecreg.scan.run import Crash, ScanResult, Unreadable, run_scan
from tfrecreg.scan.tally import Tally
from tfrecreg.scan.worker import ScanTask, ShardScan, scan_shard

__all__ = [
    "Baseline",
    "Cacheable",
    "Crash",
    "Merging",
    "Need",
    "Part",
    "PartCodec",
    "RawSize",
    "ScanCache",
    "ScanResult",
    "ScanTask",
    "Shard",
    "ShardScan",
    "Tally",
    "Target",
    "Unreadable",
    "Validator",
    "ValidatorRecord",
    "Visitor",
    "run_scan",
    "scan_shard",
]
