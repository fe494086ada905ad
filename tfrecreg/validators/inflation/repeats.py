"""How much of a feature are values that were there before: an estimate, in bounded memory.

Of all different values those with the smallest digests are counted, exactly: digests are as good
as drawn by lot, so what they repeat is what all repeat. A digest that is among the smallest of all
shards is among the smallest of each, so the counts of shards add up. With up to
:data:`MOST` different values nothing is estimated.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["MOST", "Repeats"]

MOST = 1024
"""Different values that are counted, for each feature."""


class _Row(NamedTuple):
    digest: str
    times: int
    size: int


class Repeats:
    """Counts the values of one feature. Mergeable, small."""

    # It is msgspec's to pack: see tfrecreg.scan.codec.Plain.
    plain_type = list[_Row]

    def __init__(self) -> None:
        self._seen: dict[bytes, list[int]] = {}
        self._last = b"\xff" * 17  # behind every digest

    def add(self, digest: bytes, size: int, times: int = 1) -> None:
        """Count a value.

        Args:
            digest: 16 bytes that name it.
            size: its bytes.
            times: how often it is there.
        """
        known = self._seen.get(digest)
        if known is not None:
            known[0] += times
        elif digest < self._last:
            self._seen[digest] = [times, size]
            if len(self._seen) > 2 * MOST:
                self._forget()

    def merge(self, other: Repeats) -> None:
        """Take in what was counted elsewhere."""
        for digest, (times, size) in other._seen.items():
            self.add(digest, size, times)

    @property
    def share(self) -> float:
        """The part of the bytes, 0 to 1, that are values that were there before."""
        self._forget()
        every = sum(times * size for times, size in self._seen.values())
        once = sum(size for _, size in self._seen.values())
        return 1 - once / every if every else 0.0

    @property
    def times(self) -> float:
        """How often a value is there, on average."""
        self._forget()
        every = sum(times for times, _ in self._seen.values())
        return every / len(self._seen) if self._seen else 0.0

    def _forget(self) -> None:
        """Keep the smallest digests."""
        if len(self._seen) > MOST:
            kept = sorted(self._seen)[:MOST]
            self._seen = {digest: self._seen[digest] for digest in kept}
            self._last = kept[-1]

    def plain(self) -> list[_Row]:
        self._forget()
        return [_Row(digest.hex(), *counts) for digest, counts in sorted(self._seen.items())]

    @classmethod
    def of_plain(cls, plain: list[_Row]) -> Repeats:
        repeats = cls()
        for row in plain:
            repeats.add(bytes.fromhex(row.digest), row.size, row.times)
        return repeats
