"""A build in parts: planned once, made anywhere, and published by one command.

- `plan_model`: what `plan.json` says
- `plan_files`: writing the folder of a plan, and reading it again
- `lines`: the compressed lists in that folder
- `receipts`: what a part leaves for each shard
- `open_source`: the source of a plan on this machine, with the versions and raw data of the plan
- `prepare_plan`: the operation that lists the items and writes the plan
- `run_part`: the operation that makes the shards of a part
- `examine`: the index of a shard held against its receipt and the plan
- `proof`: the shards held against their receipts, while the build is read back
- `remake`: shards made again, here, and compared
- `collect`: the operation that makes what is missing, examines all shards and publishes
- `provenance`: the receipts of a build, and those in a release
"""

from __future__ import annotations

from tfrecreg.operations.builds.parts.collect import Collected, CollectRequest, collect_parts
from tfrecreg.operations.builds.parts.prepare_plan import PlanWritten, plan_to
from tfrecreg.operations.builds.parts.run_part import PartResult, PlanPart, parse_part, run_part

__all__ = [
    "CollectRequest",
    "Collected",
    "PartResult",
    "PlanPart",
    "PlanWritten",
    "collect_parts",
    "parse_part",
    "plan_to",
    "run_part",
]
