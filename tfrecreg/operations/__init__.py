"""What can be done: the library behind every face. Nothing here prints or parses arguments.

- `init`, `builds`, `release`, `check`: the main job
- `gate`: judging what a check measured; `pipeline`: the stages in which DVC runs all of these
- `diff`: two builds or releases, example by example, and the number that asks for
- `tag`, with `tag_commit`: a release's tags in git, and withdrawing it; `people`: who, and when
- `adopt`: a build of TFRecords that another tool wrote
- `catalog`, `head` with `head_values`, `head_save` and `describe_payload`: looking
- `tails`: whether growth calls for a fresh shuffle
- `stats`: the statistics of features, made or remembered
- `targets`: from a reference or files to what is scanned, and the size of raw data
- `schemas`: inferring and showing schemas
- `load` with `load_records`, `load_batches`, `load_images`, `export`: handing the data to others
- `demo`: the main job on data that it draws itself
- `salvage`: what is left of damaged shards; `repair`: what was lost of a build, to the byte
- `remote`: releases to DVC's remotes and back, and what may go
- `reading`: every record of a target, or none
- `precious`: what a new build may not replace
- `place`: a new folder of the user's, which appears whole or not at all
- `policy`: gates and waivers that could never apply
- `progress`: how long work tells somebody how far it is
"""

from __future__ import annotations

__all__: list[str] = []
