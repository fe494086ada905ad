"""Making a build: a pure function of raw data, options and schema.

- `request`: what is asked for, from arguments and the dataset's file
- `settings`: which of that the next build will not have, or an earlier one had not
- `before`: what was made before, and by whose source
- `watch`: raw data that tell how far a source is with listing them
- `base`: the release that a build grows from
- `growth`: what becomes of its shards
- `push`: what a push of the release will send
- `plan`: the order of the items and the shards they go to, before any work starts
- `shard`: one shard, or a segment of one, made in a worker
- `make`: all shards through an engine
- `journal`: what a killed build had finished already
- `names`: what the files beside the shards are called
- `assemble`: the manifest, the ledger and the labels, from what the shards became
- `remember`: what this machine notes of a build, and the raw data's state
- `run`: the operation: plan, make, read back, swap in
"""

from __future__ import annotations

from tfrecreg.operations.builds.request import BuildRequest
from tfrecreg.operations.builds.run import BuildResult, Growth, build, preview

__all__ = ["BuildRequest", "BuildResult", "Growth", "build", "preview"]
