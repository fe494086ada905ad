"""Ranges of files in memory, fetched ahead for records whose blocks are not kept. Bounded."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from threading import Lock
from typing import NamedTuple

from tfrecreg.core.storage.remote.daemon_threads import awaited

_MOST_BYTES = 64 << 20
"""Maximum size of the ranges in memory; the first ones are dropped for others."""
_GAP_BYTES = 1 << 12
"""Ranges that lie no farther apart are fetched together,"""
_JOINED_BYTES = 1 << 18
"""as long as that takes no more memory than this."""


class _Range(NamedTuple):
    start: int
    stop: int
    data: Future[bytes]


class Staging:
    """Ranges by the name of the block that they are in. Safe for threads."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lock = Lock()
        self._ranges: OrderedDict[str, list[_Range]] = OrderedDict()
        self._bytes = 0

    def expect(self, name: str, start: int, stop: int) -> Future[bytes] | None:
        """The future that the caller sets to the bytes of a range; None if it is here."""
        with self._lock:
            ranges = self._ranges.setdefault(name, [])
            self._ranges.move_to_end(name)
            if any(each.start <= start and stop <= each.stop for each in ranges):
                return None
            mine: Future[bytes] = Future()
            ranges.append(_Range(start, stop, mine))
            self._bytes += stop - start
            while self._bytes > self._most_bytes and len(self._ranges) > 1:
                for dropped in self._ranges.popitem(last=False)[1]:
                    self._bytes -= dropped.stop - dropped.start
        return mine

    def take(self, name: str, start: int, length: int) -> bytes | None:
        """Bytes of a range, if it was fetched; it is dropped when its end is taken."""
        for each in self._ranges.get(name, ()):
            if each.start <= start and start + length <= each.stop:
                data = awaited(each.data)
                if start + length == each.stop:
                    self.drop(name, each.start)
                return data[start - each.start : start - each.start + length]
        return None

    def drop(self, name: str, start: int) -> None:
        """Forget the range that starts there."""
        with self._lock:
            ranges = self._ranges.get(name, [])
            left = [each for each in ranges if each.start != start]
            self._bytes -= sum(each.stop - each.start for each in ranges if each.start == start)
            if left:
                self._ranges[name] = left
            else:
                self._ranges.pop(name, None)


def joined_ranges(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Ranges, start and stop, where those that are near each other are one."""
    first = last = -1
    for start, stop in sorted(ranges):
        if first >= 0 and start - last <= _GAP_BYTES and stop - first <= _JOINED_BYTES:
            last = max(last, stop)
            continue
        if first >= 0:
            yield first, last
        first, last = start, stop
    if first >= 0:
        yield first, last
