"""Calling the roll: which records of an index were found again, and which keys are lost.

A record is known by the digest that the index has of it, whatever its place: behind bytes that
were lost or added every record has moved.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tfrecreg.digests import DIGEST_BYTES, record_digest
from tfrecreg.example import canonical
from tfrecreg.index import Index

__all__ = ["Roll"]


class Roll:
    """The records of an index, ticked off. About 10 bytes a record, 24 more behind damage.

    Args:
        index: of the shard; it may turn out to be that of another one.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._found = np.zeros(len(index), np.bool_)
        self._cursors: dict[int, int] = {}
        self.met = 0
        """Records that the index knows."""
        self.strangers = 0
        """Records that it does not."""

    @property
    def fits(self) -> bool:
        """Whether it is the index of these records: it knows all of them, or most are there."""
        return self.strangers == 0 or self.sure

    @property
    def sure(self) -> bool:
        """Whether at least half of its records are there, or most of what is there is its."""
        return self.met > 0 and (len(self._index) <= 2 * self.met or self.met > self.strangers)

    def meet(self, first: int, payloads: Iterable[bytes]) -> npt.NDArray[np.bool_]:
        """Tick off some records.

        Args:
            first: number of the first of them, where they are where they belong.
            payloads: theirs.

        Returns:
            Of each, whether the index knows it and it had not come before. Strangers are for the
            caller to count.
        """
        joined = b"".join(record_digest(canonical(payload)) for payload in payloads)
        digests = np.frombuffer(joined, np.uint8).reshape(-1, DIGEST_BYTES)
        known = np.zeros(len(digests), np.bool_)
        room = max(0, min(len(digests), len(self._index) - first))
        here = slice(first, first + room)
        known[:room] = (self._index.digests[here] == digests[:room]).all(axis=1)
        known[:room] &= ~self._found[here]
        self._found[here] |= known[:room]
        for place in np.flatnonzero(~known):
            known[place] = self._meet_elsewhere(digests[place].tobytes())
        self.met += int(known.sum())
        return known

    def meet_anywhere(self, payload: bytes) -> bool:
        """Tick off a record whose place says nothing; whether the index knows it, and it is new."""
        known = self._meet_elsewhere(record_digest(canonical(payload)))
        self.met += known
        return known

    def meet_large(self, number: int, length: int) -> bool:
        """Tick off a record that is too large to be held: by its number and its length."""
        known = (
            number < len(self._index)
            and int(self._index.lengths[number]) == length
            and not self._found[number]
        )
        if known:
            self._found[number] = True
            self.met += 1
        return known

    def lost(self) -> tuple[str, ...]:
        """The keys of the records that never came, in order."""
        return tuple(self._index.key(int(each)) for each in np.flatnonzero(~self._found))

    @cached_property
    def _sorted(self) -> tuple[npt.NDArray[np.bytes_], npt.NDArray[np.intp]]:
        """All digests in order, and whose each is."""
        rows = np.ascontiguousarray(self._index.digests).view(f"S{DIGEST_BYTES}").ravel()
        order = np.argsort(rows, kind="stable")
        return rows[order], order

    def _meet_elsewhere(self, digest: bytes) -> bool:
        rows, order = self._sorted
        wanted = np.frombuffer(digest, f"S{DIGEST_BYTES}")
        begin = int(np.searchsorted(rows, wanted, "left")[0])
        end = int(np.searchsorted(rows, wanted, "right")[0])
        if begin == end:
            return False
        at = self._cursors.get(begin, begin)
        while at < end and self._found[order[at]]:
            at += 1
        self._cursors[begin] = at
        if at == end:
            return False
        self._found[order[at]] = True
        return True
