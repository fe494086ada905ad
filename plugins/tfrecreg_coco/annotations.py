"""The annotations of one image, read from their offsets in the files."""

from __future__ import annotations

import json
import math
import weakref
from collections.abc import Callable
from typing import Any

import msgspec

from tfrecreg.api import RawDataError, Storage, open_local, safe
from tfrecreg_coco.json_scanner import decode_loosely

_GAP = 1 << 12
"""Bytes between two annotations up to which one read takes both."""


class PanopticSegment(msgspec.Struct, gc=False):
    """One segment of a panoptic annotation. Members that the file lacks are None."""

    id: int | float | None = None
    category_id: int | float | None = None
    bbox: list[float] | None = None
    area: float | None = None
    iscrowd: int | bool | None = None

    @property
    def crowd(self) -> int:
        """1 for a crowd."""
        return 1 if self.iscrowd else 0

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"the segment {self.id}"


class Annotation(PanopticSegment, gc=False, kw_only=True):
    """One annotation of any kind. Members that the file lacks are None or empty."""

    image_id: int | float
    is_crowd: int | bool | None = None
    segmentation: msgspec.Raw = msgspec.Raw(b"")
    keypoints: list[float] | None = None
    caption: str | None = None
    segments_info: list[PanopticSegment] | None = None

    @property
    def crowd(self) -> int:
        """1 for a crowd. Some tools write `is_crowd` for `iscrowd`."""
        return 1 if self.iscrowd or (self.iscrowd is None and self.is_crowd) else 0

    @property
    def name(self) -> str:
        """Its name in messages."""
        return "an annotation" if self.id is None else f"the annotation {self.id}"


class AnnotationReader:
    """Reads annotations from the files in `paths`, which stay open. Each process has its own."""

    def __init__(self, raw: Storage, paths: tuple[str, ...]) -> None:
        self._raw = raw
        self._paths = paths
        self._files: dict[int, Any] = {}
        self._decoder = msgspec.json.Decoder(list[Annotation])

    def read(self, file: int, spans: list[tuple[int, int]], image_id: int) -> list[Annotation]:
        """The annotations of one image in one file."""
        texts = self._texts(file, spans)
        try:
            found = self._decoder.decode(b"[" + b",".join(texts) + b"]")
        except (ValueError, RecursionError):
            found = [self._decode_loosely(file, text) for text in texts]
        if len(found) != len(texts) or any(each.image_id != image_id for each in found):
            raise self._changed(file)
        return found

    def _texts(self, number: int, spans: list[tuple[int, int]]) -> list[bytes]:
        file = self._files.get(number)
        if file is None:
            file = self._files[number] = open_local(self._raw, self._paths[number])
            weakref.finalize(self, file.close)
        texts: list[bytes] = []
        first = 0
        while first < len(spans):
            last = first + 1
            while last < len(spans) and spans[last][0] - spans[last - 1][1] <= _GAP:
                last += 1
            base, end = spans[first][0], spans[last - 1][1]
            data = file.read_at(base, end - base)
            if len(data) != end - base:
                raise self._changed(number)
            texts += [data[start - base : stop - base] for start, stop in spans[first:last]]
            first = last
        return texts

    def _decode_loosely(self, file: int, text: bytes) -> Annotation:
        """An annotation with members of wrong types, which become None, NaN or empty."""
        try:
            found: dict[str, Any] = decode_loosely(text, dict)
        except ValueError:
            raise self._changed(file) from None
        image_id = found.get("image_id")
        if isinstance(image_id, bool) or not isinstance(image_id, int | float):
            raise self._changed(file)
        return Annotation(image_id=image_id, **_lenient(found))

    def _changed(self, file: int) -> RawDataError:
        return RawDataError(
            f"`{safe(self._paths[file])}` changed during the build",
            hint="build again when no other process writes to the raw data",
        )


def _lenient(members: dict[str, Any]) -> dict[str, Any]:
    """The members of an annotation or a segment, each as a value of its type."""
    return {name: _LENIENT[name](value) for name, value in members.items() if name in _LENIENT}


def _number(value: Any) -> int | float | None:
    """`value` if it is a number, otherwise NaN."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value if value is None or abs(value) <= 1.7e308 or value != value else math.inf
    return math.nan


def _numbers(values: Any) -> list[float] | None:
    if not isinstance(values, list):
        return None if values is None else []
    return [math.nan if each is None else float(_number(each) or 0) for each in values]


def _boolean(value: Any) -> int | None:
    if isinstance(value, str):
        return int(value.strip().lower() in ("1", "true"))
    return None if value is None else int(value == 1)


def _segments(values: Any) -> list[PanopticSegment] | None:
    if not isinstance(values, list):
        return None
    members = PanopticSegment.__struct_fields__
    return [
        PanopticSegment(**_lenient({name: each[name] for name in members if name in each}))
        if isinstance(each, dict)
        else PanopticSegment()
        for each in values
    ]


_LENIENT: dict[str, Callable[[Any], Any]] = {
    "id": _number,
    "category_id": _number,
    "bbox": _numbers,
    "area": _number,
    "iscrowd": _boolean,
    "is_crowd": _boolean,
    "segmentation": lambda value: msgspec.Raw(json.dumps(value).encode()),
    "keypoints": _numbers,
    "caption": lambda value: value if isinstance(value, str) else None,
    "segments_info": _segments,
}
"""Conversion of a value of any type, by member of an annotation."""
