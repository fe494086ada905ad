"""What is left of damaged shards: clean shards, what was cut out of them, and a report.

- `run`: the operation
- `find`: which shards are meant, and what lies beside them that helps
- `shard`: one shard, from the scanner's batches and faults to its clean file
- `work`: the same, step by step: what is kept, repaired and cut out
- `cuts`: the list of what was cut out
- `doubts`: which records may be none of the shard's
- `original`: the damaged file, read a second time where the scanner left bytes behind
- `roll`: which records of an index were found again, and so which keys are lost
- `files`: the clean shard and the quarantine in the making
- `model`: what there is to say of it

The mark that all this leaves in its folder is read by :func:`tfrecreg.manifest.read_mark`.
"""

from __future__ import annotations

from tfrecreg.operations.salvage.model import Cut, Piece, SalvageResult, ShardResult, StoredFile
from tfrecreg.operations.salvage.run import salvage

__all__ = ["Cut", "Piece", "SalvageResult", "ShardResult", "StoredFile", "salvage"]
