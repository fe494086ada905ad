"""What the visitor of a shard hands back, and how it is kept between checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from tfrecreg.storage import Storage
from tfrecreg.validators.duplicates.runs import Pair, Run, at_hand, stored

__all__ = ["DuplicatesPart", "PartCodec"]

_MOST_KEPT = 1 << 19
"""Rows of a shard that are kept for the next check with `--cached`, as many of labels beside them;
of more, the shard is read."""


@dataclass(slots=True)
class DuplicatesPart:
    """What was found in one shard."""

    compared: int = 0
    """Records that have a fingerprint."""
    pictured: int = 0
    """Of these, whose fingerprint is that of a picture."""
    unheld: int = 0
    """Records too large to be looked at."""
    ungrouped: int = 0
    """Records without the group that was asked for."""
    runs: list[Run] = field(default_factory=list)
    """Of what is compared."""
    pairs: list[Pair] = field(default_factory=list)
    """The first records that are the same as an earlier one of their run."""
    groups: list[Run] = field(default_factory=list)
    """Of the groups."""
    labelled: list[Run] = field(default_factory=list)
    """Of images and their labels: see `contradictions`."""


class PartCodec:
    """Parts as bytes, with the rows of their runs: see :class:`tfrecreg.scan.PartCodec`."""

    def __init__(self) -> None:
        self.storage: Storage | None = None
        """Where the runs are, once there is such a place."""

    def pack(self, part: Any) -> bytes | None:
        """The part; None where it is too large to be kept."""
        if sum(run.rows for run in (*part.runs, *part.groups)) > _MOST_KEPT:
            return None
        runs = [at_hand(self.storage, run) for run in part.runs]
        groups = [at_hand(self.storage, run) for run in part.groups]
        labelled = [at_hand(self.storage, run) for run in part.labelled]
        whole = DuplicatesPart(
            compared=part.compared,
            pictured=part.pictured,
            unheld=part.unheld,
            ungrouped=part.ungrouped,
            runs=runs,
            pairs=part.pairs,
            groups=groups,
            labelled=labelled,
        )
        return msgspec.msgpack.encode(whole)

    def unpack(self, data: bytes) -> DuplicatesPart:
        part = msgspec.msgpack.decode(data, type=DuplicatesPart)
        part.runs = [stored(self.storage, run) for run in part.runs]
        part.groups = [stored(self.storage, run) for run in part.groups]
        part.labelled = [stored(self.storage, run) for run in part.labelled]
        return part
