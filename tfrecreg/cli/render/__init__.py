"""How results look. The only home of rich; what comes from data is escaped on its way in.

- `console`: stdout for results, stderr for messages and progress
- `layout`: lines, tables and facts, for a terminal or a pipe
- `check`: the report of a check; `places`: where a finding was seen; `formats`: reports as
  documents for other programs
- `pipeline`: what became of a pipeline's stages
- `catalog`: lists, manifests and histories; `diff`: what differs between two of them
- `preview`: what a build would do
- `records`: what `head` shows; `inline`: pictures, in terminals that show them
- `schemas`: schemas compared, and changes proposed to them
- `adopt`, `salvage`, `repair`, `remote`: what those operations did
- `stats`: tables of statistics
- `codes`: what `explain` shows
"""

from __future__ import annotations

__all__: list[str] = []
