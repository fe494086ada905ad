"""A build in parts: planned once, made anywhere, and published by one command.

- `plan_model`: what `plan.json` says
- `plan_files`: writing the folder of a plan, and reading it again
- `plan_store`: what plans in a store, and shards that go to one, need besides
- `lines`: the compressed lists in that folder
- `receipts`: what a part leaves for each shard
- `open_source`: the source of a plan on this machine, with the versions and raw data of the plan
- `prepare_plan`: the operation that lists the items and writes the plan
- `one_part`: the operation that makes the shards of a part
- `proof`: the shards held against their receipts, and indexed, while the build is read back
- `remake`: shards made again, here, and compared
- `collect`: the operation that makes what is missing, proves all shards and publishes
- `provenance`: the receipts of a build, and those in a release
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrecreg.lazy import lazy_exports

if TYPE_CHECKING:
    from tfrecreg.operations.builds.parts.collect import Collected, CollectRequest, collect_parts
    from tfrecreg.operations.builds.parts.one_part import PartResult, PlanPart, parse_part, run_part
    from tfrecreg.operations.builds.parts.prepare_plan import PlanWritten, plan_to

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

# Each of the three steps imports its own modules only.
if not TYPE_CHECKING:  # which knows these names from above, and no others
    __getattr__ = lazy_exports(
        __name__,
        {
            ".collect": ("CollectRequest", "Collected", "collect_parts"),
            ".prepare_plan": ("PlanWritten", "plan_to"),
            ".one_part": ("PartResult", "PlanPart", "parse_part", "run_part"),
        },
    )
