"""One pass over the bytes for all validators.

- `interface`: the base classes of validators and visitors
- `record_validator`: the base class of validators that look at one record at a time
- `tally`: exact counts and bounded locations of findings, and parts as JSON
- `indexes`: the contents of the indexes beside the shards
- `large_records`: records that are not held in memory, read once more
- `run`: the scan of all shards of a target by an engine: each is read once, parts return in order
- `cache`: results of earlier scans of unchanged shards
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrecreg.lazy import lazy_exports
from tfrecreg.scan.interface import (
    Baseline,
    Cacheable,
    Expected,
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

if TYPE_CHECKING:
    from tfrecreg.scan.cache import ScanCache
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
    "Expected",
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

# Who looks for plugins needs to know what a validator is, and scans nothing.
if not TYPE_CHECKING:  # which knows these names from above, and no others
    __getattr__ = lazy_exports(
        __name__,
        {
            ".cache": ("ScanCache",),
            ".run": (
                "Crash",
                "ScanResult",
                "ScanTask",
                "ShardScan",
                "Unreadable",
                "run_scan",
                "scan_shard",
            ),
            ".tally": ("Tally",),
        },
    )
