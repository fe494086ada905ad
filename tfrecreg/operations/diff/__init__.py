"""Comparing two builds or releases, example by example.

- `side`: one of the two: its manifest, indexes, and records where they are
- `rows`, `pairing`, `match`: what became of every example, from the indexes alone
- `payloads`, `compare`, `tally`: which features and labels differ, from the records
- `pictures`: examples whose keys moved with them
- `order`, `shards`: what differs where the examples are the same
- `meaning`: what the values stand for, by label maps and schemas
- `verdict`: the rule of numbers
- `model`, `listing`: what a diff says
- `run`: the operation, and what a release asks of it
"""

from __future__ import annotations

from tfrecreg.operations.diff.model import DiffResult, RecordDiff
from tfrecreg.operations.diff.run import classify, diff, diff_sides
from tfrecreg.operations.diff.side import Side, side_of

__all__ = ["DiffResult", "RecordDiff", "Side", "classify", "diff", "diff_sides", "side_of"]
