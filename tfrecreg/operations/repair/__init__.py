"""Making lost or damaged files of a build or release again: its very bytes, or nothing.

- `run`: the operation: what is wrong, make it, prove it, swap the folder in
- `state`: which files are what the manifest names, and where their indexes are
- `remake`: one shard, from its index, the records that are left of it and the raw data
- `differences`: why a shard did not come out as it was
"""

from __future__ import annotations

from tfrecreg.operations.repair.rebuild import RemadeShard
from tfrecreg.operations.repair.run import RepairResult, repair

__all__ = ["RemadeShard", "RepairResult", "repair"]
