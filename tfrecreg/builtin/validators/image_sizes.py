"""Images whose size is far from that of the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import accumulate, groupby
from typing import ClassVar

from tfrecreg.core.check.scan.tally import Tally
from tfrecreg.core.values.codes import IMG008
from tfrecreg.core.values.findings import Finding, Location
from tfrecreg.core.values.text import safe

_LEAST = 100
"""Images below this number have no usual size."""
_SHARE = 100
"""More than one image in so many is no exception."""
_APART = 6
"""Powers of two between an image and the median one."""

_PLACES = 20
"""Places of each size: as many as a finding has."""

_Row = tuple[str, int, int, list[Location]]


class ImageSizes:
    """Numbers of images by feature and size, with the first places of each. Mergeable, picklable.

    Sizes are numbers of pixels in powers of two, so that memory is bounded.
    """

    plain_type: ClassVar[object] = list[_Row]

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int], int] = {}
        self._places: dict[tuple[str, int], list[Location]] = {}

    def add(self, feature: str, pixels: int) -> bool:
        """Count an image; whether :meth:`place` should be called for it, too."""
        size = feature, pixels.bit_length()
        count = self._counts.get(size, 0)
        self._counts[size] = count + 1
        return count < _PLACES

    def place(self, feature: str, pixels: int, location: Location) -> None:
        """Remember where an image is."""
        self._places.setdefault((feature, pixels.bit_length()), []).append(location)

    def merge(self, other: ImageSizes) -> None:
        """Add the images of another shard."""
        for size, count in other._counts.items():
            self._counts[size] = self._counts.get(size, 0) + count
            places = self._places.get(size, []), other._places.get(size, [])
            self._places[size] = list(merge(*places, key=Location.order))[:_PLACES]

    def plain(self) -> list[_Row]:
        """All of it."""
        return [
            (*size, count, self._places.get(size, []))
            for size, count in sorted(self._counts.items())
        ]

    @classmethod
    def of_plain(cls, rows: Sequence[_Row]) -> ImageSizes:
        """The same from plain data."""
        made = cls()
        for feature, size, count, places in rows:
            made._counts[feature, size] = count
            made._places[feature, size] = list(places)
        return made

    def findings(self, dataset: str) -> Iterator[Finding]:
        """The few images that have over 64 times the pixels of the median one, or under 1/64."""
        tally = Tally()
        for feature, group in groupby(sorted(self._counts.items()), key=lambda each: each[0][0]):
            sizes = [(size, count) for (_, size), count in group]
            sums = list(accumulate(count for _, count in sizes))
            total = sums[-1]
            median = next(
                size for (size, _), upto in zip(sizes, sums, strict=True) if 2 * upto >= total
            )
            rare = [each for each in sizes if abs(each[0] - median) > _APART]
            if total < _LEAST or sum(count for _, count in rare) * _SHARE > total:
                continue
            for size, count in rare:
                self._tell(tally, feature, size, count, is_large=size > median)
        return tally.findings(dataset)

    def _tell(self, tally: Tally, feature: str, size: int, count: int, *, is_large: bool) -> None:
        limit = f"at most {1 << _APART} times" if is_large else f"at least 1/{1 << _APART} of"
        message = f"`{safe(feature)}` should have {limit} the pixels of the median image"
        subject = "large" if is_large else "small"
        places = self._places[feature, size]
        for place in places:
            tally.add(IMG008, message, place, feature=feature, subject=subject)
        if count > len(places):
            rest = count - len(places)
            tally.add(IMG008, message, None, feature=feature, subject=subject, count=rest)
