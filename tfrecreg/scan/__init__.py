"""One pass over the bytes for all validators.

- `interface`: the base classes of validators and visitors
- `record_validator`: the base class of validators that look at one record at a time
- `tally`: exact counts and bounded locations of findings, and parts as JSON
- `indexes`: what the indexes beside the shards know
- `run`: all shards of a target through an engine, each read once in a worker, parts back in order
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
from tfrecreg.scan.run import (
    Crash,
    ScanResult,
    ScanTask,
    ShardScan,
    Unreadable,
    run_scan,
    scan_shard,
)
from tfrecreg.scan.tally import Tally

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
