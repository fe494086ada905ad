"""MP4 files, and QuickTime's: the boxes that say how long and how large the tracks are.

Source: ISO 14496-12, the ISO base media file format.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tfrecreg.media.model import MAX_RATE, MediaError, MediaHeader

_MAX_BOXES = 10_000
_PATH = {
    *(b"moov/mvhd", b"moov/mvex/mehd", b"moov/trak/mdia/hdlr", b"moov/trak/tkhd"),
    b"moov/trak/mdia/minf/stbl/stsd",
}


@dataclass
class _Track:
    handler: bytes = b""
    stsd: bytes = b""
    size: tuple[int, int] = (0, 0)


class _Boxes:
    """The boxes of a file that are looked into; counts all."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.problem = ""
        self._count = 0

    def walk(self, start: int, end: int, *, top: bool = False) -> Iterator[tuple[bytes, int, int]]:
        """Name, first and last byte of the contents of each box."""
        data, at = self.data, start
        while at + 8 <= end:
            self._count += 1
            if self._count > _MAX_BOXES:
                raise MediaError(f"an MP4 of more than {_MAX_BOXES} boxes")
            size, head = int.from_bytes(data[at : at + 4], "big"), 8
            if size == 1:
                size, head = int.from_bytes(data[at + 8 : at + 16], "big"), 16
            elif size == 0:
                size = end - at
            if size < head:
                raise MediaError(f"an MP4 with a box of {size} bytes at byte {at}")
            if at + size > end:
                if not top or data[at + 4 : at + 8] == b"moov":
                    raise MediaError(f"an MP4 whose box at byte {at} ends behind its end")
                self.problem = f"a box ends at byte {at + size}, and the file has {end}"
            yield data[at + 4 : at + 8], at + head, min(at + size, end)
            at += size


def read_mp4(data: bytes) -> MediaHeader:
    """The header of an MP4 file."""
    boxes = _Boxes(data)
    tracks: list[_Track] = []
    duration: float | None = None
    scale = 0
    for name, start, end in boxes.walk(0, len(data), top=True):
        if name != b"moov":
            continue
        for path, first, last in _inside(boxes, b"moov", start, end, tracks):
            if path == b"moov/mvhd":
                scale, ticks = _times(data[first:last])
                duration = ticks / scale if ticks else None
            elif path == b"moov/mvex/mehd" and scale and duration is None:
                wide = 8 if data[first] else 4
                ticks = int.from_bytes(data[first + 4 : first + 4 + wide], "big")
                duration = ticks / scale if ticks else None
    if not scale:
        detail = "an MP4 without the box `moov`, which a recorder writes last"
        raise MediaError(f"{detail}: {boxes.problem}" if boxes.problem else detail)
    width, height = _picture_size(tracks)
    rate, channels = _sound(tracks)
    return MediaHeader(
        format="mp4",
        duration=duration,
        sample_rate=rate,
        channels=channels,
        width=width,
        height=height,
        problem=boxes.problem,
    )


def _inside(
    boxes: _Boxes, above: bytes, start: int, end: int, tracks: list[_Track]
) -> Iterator[tuple[bytes, int, int]]:
    """The boxes below `moov` that count; those of tracks go into `tracks`."""
    for name, first, last in boxes.walk(start, end):
        path = above + b"/" + name
        if path == b"moov/trak":
            tracks.append(_Track())
        if path in _PATH:
            _keep(path, boxes.data[first : min(last, first + 256)], tracks)
            yield path, first, last
        elif any(each.startswith(path + b"/") for each in _PATH):
            yield from _inside(boxes, path, first, last, tracks)


def _keep(path: bytes, box: bytes, tracks: list[_Track]) -> None:
    if path.endswith(b"hdlr"):
        tracks[-1].handler = box[8:12]
    elif path.endswith(b"stsd"):
        tracks[-1].stsd = box
    elif path.endswith(b"tkhd") and len(box) >= 84:
        at = 88 if box[0] else 76
        whole = (int.from_bytes(box[at + each : at + each + 2], "big") for each in (0, 4))
        tracks[-1].size = next(whole), next(whole)


def _times(box: bytes) -> tuple[int, int]:
    """Ticks per second, and ticks of the whole."""
    if len(box) < 20:
        raise MediaError("an MP4 whose box `mvhd` is too short")
    at, wide = (20, 8) if box[0] else (12, 4)
    scale = int.from_bytes(box[at : at + 4], "big")
    ticks = int.from_bytes(box[at + 4 : at + 4 + wide], "big")
    if not scale:
        raise MediaError("an MP4 of 0 ticks per second")
    return scale, 0 if ticks == (1 << 8 * wide) - 1 else ticks


def _picture_size(tracks: list[_Track]) -> tuple[int | None, int | None]:
    """Width and height as stored, of the first track of pictures."""
    for track in tracks:
        if track.handler == b"vide":
            entry = track.stsd[8:]
            width, height = (int.from_bytes(entry[at : at + 2], "big") for at in (32, 34))
            if not (width and height):
                width, height = track.size
            if not (width and height):
                raise MediaError(f"an MP4 of pictures {width} pixels wide and {height} high")
            return width, height
    return None, None


def _sound(tracks: list[_Track]) -> tuple[int | None, int | None]:
    """Samples per second and channels of the first track of sound."""
    for track in tracks:
        if track.handler == b"soun":
            entry = track.stsd[8:]
            channels, rate = (int.from_bytes(entry[at : at + 2], "big") for at in (24, 32))
            if channels and 0 < rate <= MAX_RATE:
                return rate, channels
    return None, None
