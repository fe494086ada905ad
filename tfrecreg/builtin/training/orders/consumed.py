"""The consumed part of an epoch when the number of hosts changes, and the numbers of the rest.

Hosts share a sequence like dealt cards: of `hosts`, the host h takes the places h, h + hosts,
h + 2 * hosts and so on. If each has consumed the same number, what is consumed is a prefix of the
sequence. If they are apart, the rest has gaps; a :class:`Stage` numbers it without them. The rest
may be shared among other hosts, which makes a next stage over it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe


class Stage:
    """The rest of a sequence that `hosts` hosts have not consumed, numbered from 0 in its order."""

    def __init__(self, counts: Sequence[int]) -> None:
        self.counts = tuple(counts)
        """One entry a host."""
        # In row r of the dealt places, the host h has place h + hosts * r. From row counts[h] on
        # that is left. So the rows between two counts lack the same hosts.
        self._rows = sorted(set(self.counts))
        lengths = [
            (end - start) * sum(count <= start for count in self.counts)
            for start, end in pairwise(self._rows)
        ]
        self._starts = np.array([0, *accumulate(lengths)], np.int64)

    @property
    def consumed(self) -> int:
        """How many places are consumed."""
        return sum(self.counts)

    @property
    def is_prefix(self) -> bool:
        """Whether the consumed places are the first ones of the sequence."""
        total, hosts = self.consumed, len(self.counts)
        return all(count == share(total, host, hosts) for host, count in enumerate(self.counts))

    def places(self, left: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The places in the sequence of numbers of the rest."""
        hosts = len(self.counts)
        parts = np.searchsorted(self._starts, left, side="right") - 1
        found = np.empty_like(left)
        for part in np.unique(parts):
            chosen = parts == part
            first = self._rows[part]
            there = np.array(
                [host for host, count in enumerate(self.counts) if count <= first], np.int64
            )
            row, column = np.divmod(left[chosen] - self._starts[part], len(there))
            found[chosen] = (first + row) * hosts + there[column]
        return found


def share(places: int, host: int, hosts: int) -> int:
    """How many of `places` places are dealt to one of `hosts` hosts."""
    return max(0, -(-(places - host) // hosts))


def integer_of(name: str, value: Any) -> int:
    """An integer of Python or NumPy, as Python's: states are JSON, and 1.0 makes other orders."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise UsageError(
        f"`{name}` should be an integer, found `{safe(repr(value), limit=100)}`",
        hint=f"`{name}=1`",
    )


def expect_host(host: int, hosts: int) -> None:
    """Refuse a host that is not one of `hosts`."""
    if hosts < 1 or not 0 <= host < hosts:
        raise UsageError(
            f"`host` should be one of `hosts`, from 0 on; found host {host} of {hosts}",
            hint="the first of four hosts is `host=0, hosts=4`",
        )


def expect_enough(records: int, hosts: int, name: str) -> None:
    """Refuse more hosts than there are records."""
    if integer_of("hosts", hosts) > max(1, records):
        raise UsageError(
            f"{hosts} hosts cannot share {records} records of `{name}`",
            hint="use as many hosts as there are records, or fewer",
        )


def joined(stages: Sequence[Stage], last: Stage) -> tuple[Stage, ...]:
    """The stages and one more, joined where possible: a prefix of a prefix is a prefix."""
    if not last.consumed:
        return tuple(stages)
    if not last.is_prefix:
        return (*stages, last)
    consumed = last.consumed
    if stages and len(stages[-1].counts) == 1:
        consumed += stages[-1].consumed
        stages = stages[:-1]
    return (*stages, Stage([consumed]))
