"""The output of the commands. rich is used here only, and text from data is escaped.

- `console`: stdout, stderr and the progress bar; lines, tables and facts for a terminal or a pipe
- `findings`: the report of a check, and the pages of codes
- `locations`: where a finding was seen, as text and as a path
- `formats`: reports as documents for other programs
- `catalog`: lists, manifests and histories; `diff`: the differences between two of them
- `schemas`: comparisons of schemas, and proposed changes
- `outcomes`: the results of builds and pages; `adopted`, `repaired`, `salvaged`, `pipelines` and
  `transfers`: those of other commands
- `records`: the records that `head` shows, with images in terminals that support them
- `stats`: tables of statistics
"""

from __future__ import annotations
