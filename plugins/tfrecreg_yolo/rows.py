"""The rows of a label file: a class and coordinates, as shares of the image's sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tfrecreg.api import BadAnnotation, SkipImage, box_around, safe
from tfrecreg_yolo.yolo_options import YoloTask

MAX_LABEL_BYTES = 1 << 24
"""Most bytes of a label file."""


_UNDERSCORE = ord("_")


class YoloRow(NamedTuple):
    """One object."""

    category: int
    box: tuple[float, float, float, float]
    """Left, top, width and height."""
    polygon: list[float] | None = None
    """x and y of each point in turn."""
    keypoints: Sequence[float] = ()
    """x, y and visibility of each keypoint in turn."""


class LabelRowReader:
    """Reads rows of one task."""

    def __init__(self, task: YoloTask, shape: Sequence[int]) -> None:
        self._task = task
        self._numbers = shape[1] if task == "pose" else 0
        self._box_count = 5 + (shape[0] * shape[1] if task == "pose" else 0)
        self._expected = {
            "detect": "5: class, x, y, width, height, or at least three points",
            "segment": "a class and at least three points",
            "pose": f"{self._box_count}: class, x, y, width, height and the keypoints",
            "obb": "9: class and four points",
        }[task]

    def read(self, line: bytes) -> YoloRow:
        """The object of a line."""
        category, *values = _parse_numbers(line)
        if not category.is_integer() or abs(category) > 1 << 31:
            raise BadAnnotation(f"has the class {category:g}, expected a whole number")
        count = len(values) + 1
        task = self._task
        if count == self._box_count and task != "obb":
            x, y, width, height, *rest = values
            box = x - width / 2, y - height / 2, width, height
            if not rest:
                return YoloRow(int(category), box)
            return YoloRow(int(category), box, keypoints=self._keypoints(rest))
        is_polygon = count > 6 and count % 2 and task in ("detect", "segment")
        if is_polygon or (task == "obb" and count == 9):
            return YoloRow(int(category), box_around([values]), polygon=values)
        raise BadAnnotation(f"has {count} numbers, expected {self._expected}")

    def _keypoints(self, values: list[float]) -> list[float]:
        """Triples. Without a visibility, a point at the origin or left or above of it is none."""
        if self._numbers == 3:
            return values
        pairs = zip(values[::2], values[1::2], strict=True)
        return [each for x, y in pairs for each in (x, y, 0.0 if x <= 0 and y <= 0 else 2.0)]


def rows_of(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines of a label file that are not empty, with their numbers from 1."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data:
        raise SkipImage("SRC041", "its label file is not plain text: write it again as UTF-8")
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").splitlines(), start=1):
        if line.strip():
            yield number, line


def plain_rows(
    data: bytes, width: int, height: int
) -> list[tuple[float, float, float, float, float]] | None:
    """The class of each row of a label file, and left, top, width and height in pixels; None where
    a row is not five numbers or may be there twice, so that :class:`LabelRowReader` has to read it.
    """
    if b"_" in data:
        return None
    rows = []
    try:
        for line in data.splitlines():
            if words := line.split():
                category, x, y, across, down = map(float, words)
                left, top = (x - across / 2) * width, (y - down / 2) * height
                rows.append((category, left, top, across * width, down * height))
    except ValueError:
        return None
    return rows if len({*rows}) == len(rows) else None


def _parse_numbers(line: bytes) -> list[float]:
    """The numbers of a row, which may be infinite or NaN."""
    words = line.split()
    try:
        if _UNDERSCORE not in line:  # Python takes `1_0` for ten
            return [*map(float, words)]
    except ValueError:
        pass
    bad = next(word for word in words if b"_" in word or not _is_number(word))
    shown = safe(bad.decode("utf-8", "replace"), limit=20)
    raise BadAnnotation(f"has `{shown}` where a number is expected")


def find_task(counts: Counter[int]) -> YoloTask | None:
    """The task of rows, by the number of their coordinates; None where it may be one of several."""
    shapes = {count for count in counts if count >= 6 and count % 2 == 0}
    if not shapes:
        return "detect"
    return None if shapes == {8} else "segment"


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
