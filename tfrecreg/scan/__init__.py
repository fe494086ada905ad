"""One pass over the bytes for all validators.

- `interface`: the base classes of validators and visitors
- `record_validator`: the base class of validators that look at one record at a time
- `tally`: exact counts and bounded locations of findings, and parts as JSON
- `worker`: read one shard, in a worker process
- `indexes`: what the indexes beside the shards know
- `run`: all shards of a target through an engine, parts back in shard order
- `cache`: what earlier scans found in unchanged shards
"""

from __future__ import annotations

from tfrecreg.scan.cache import ScanCache
from tfrecreg.scan.interface import (
    Baseline,
    Cacheable,
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
