"""Adopting TFRecords that another tool wrote: a build of them, without making a record anew.

- `request`: what is asked for, and which schema is in force
- `splits`: which split a file is of, and in which order
- `plan`: the files and the names that they get
- `accept`: reading them, and refusing what is not as it should be
- `examine`: one pass over a shard: its index, its features, what its payloads are
- `large`: records that a scan does not hold
- `keys`: what records are called in the index
- `labels`: what classes are called, and who says it
- `place`: copying, linking or only hashing the shards
- `manifest`: what was seen, as the build's manifest
- `folder`: what may be replaced, and how a build comes to lie beside files that stay
- `run`: the operation
"""

from __future__ import annotations

from tfrecreg.operations.adopt.request import AdoptPlan, AdoptRequest
from tfrecreg.operations.adopt.run import AdoptResult, adopt, preview_adopt

__all__ = ["AdoptPlan", "AdoptRequest", "AdoptResult", "adopt", "preview_adopt"]
