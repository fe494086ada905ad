"""The objects and the panoptic segments of one image, from all its files of annotations.

Segmentations are written as polygons, as run lengths in text form, or as one PNG per object.
pycocotools draws and compresses; its C code allocates the size in the data, so every segmentation
is measured before it gets there.

Run lengths (RLE) read a mask of h × w pixels column by column from the top left, as runs of zeros
and ones in turn, zeros first. Their text form (the MIT-licensed `maskApi.c` of COCO) writes each
run, from the fourth on as the difference to the one two before, as base-32 digits with the lowest
first, each as the character 48 + digit, plus 32 where more follow; the sign is bit 16 of the last.
"""

from __future__ import annotations

import importlib
import struct
import zlib
from collections.abc import Iterable
from functools import partial
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tfrecreg.api import (
    BadAnnotation,
    Boxes,
    Example,
    ImageError,
    ImageView,
    Keypoints,
    MissingExtraError,
    ObjectLabel,
    Polygons,
    SkipImage,
    box_around,
    bytes_feature,
    int64_feature,
    read_header,
)
from tfrecreg_coco.files import Annotation, MaskForm

CategoryLabels = dict[int | float | None, ObjectLabel]
"""Labels by category id, in the order of the ids."""

_MAX_PIXELS = {"none": 1 << 62, "polygons": 1 << 62, "rle": 1 << 32, "png": 1 << 26}
"""Most pixels of an image, by the form of its masks."""
_MAX_DRAWN = 1 << 26
"""Most pixels of a mask that is drawn."""
_MAX_DIGITS = 7
"""Most base-32 digits of one run."""

_Coordinates = list[list[float]]


class _Rle(msgspec.Struct):
    """Run lengths as annotations have them."""

    size: tuple[int, int]
    counts: str | list[int]


_DECODER: msgspec.json.Decoder[_Coordinates | _Rle] = msgspec.json.Decoder(_Coordinates | _Rle)


def require_pycocotools() -> Any:
    """The module of pycocotools for masks."""
    try:
        return importlib.import_module("pycocotools.mask")
    except ModuleNotFoundError:
        raise MissingExtraError("writing masks as RLE or PNG", "coco") from None


class Masks:
    """The masks of the objects of one image."""

    def __init__(self, form: MaskForm, *sizes: tuple[int, int]) -> None:
        if max(width * height for width, height in sizes) > _MAX_PIXELS[form]:
            width, height = sizes[0]
            detail = f"masks of {width} × {height} pixels are too large to draw"
            raise SkipImage("SRC028", detail)
        self._form = form
        self._sizes = sizes
        self._pieces: list[bytes] = []
        self._rle_sizes: list[int] = []
        self._polygons = Polygons(*sizes[0])

    def add(self, segmentation: msgspec.Raw) -> str | None:
        """Add an object, with its segmentation as JSON; what is to be remarked of it."""
        if self._form == "none":
            return None
        width, height = self._sizes[0]
        try:
            found = _decoded(segmentation)
            if isinstance(found, _Rle):
                runs, (high, wide) = self._runs(found), found.size
                if self._form == "polygons":
                    raise BadAnnotation("it is run lengths, which polygons cannot express")
                self._write_runs(runs, wide, high)
                return None
            kept, problem = self._polygons.usable(found)
            if self._form == "polygons":
                self._polygons.add(kept)
            else:
                if width * height > _MAX_DRAWN:
                    raise BadAnnotation(f"a mask of {width} × {height} pixels is too large to draw")
                mask = require_pycocotools()
                drawn = mask.merge(mask.frPyObjects(kept, height, width))
                self._write(drawn["counts"], width, height)
        except BadAnnotation as error:
            if self._form == "polygons":
                self._polygons.add([])
            else:
                self._write_runs([width * height], width, height)
            return f"is left empty: {error}"
        return f"lacks a part: {problem}" if problem else None

    def box_around(self, segmentation: msgspec.Raw) -> list[float]:
        """Left, top, width and height of the box around a segmentation; empty where it has none."""
        try:
            found = _decoded(segmentation)
            if not isinstance(found, _Rle):
                return [*box_around(self._polygons.usable(found)[0])]
            runs, height = self._runs(found), found.size[0]
        except BadAnnotation:
            return []
        ends = np.cumsum(np.array(runs, np.int64))
        filled = np.diff(ends, prepend=0)[1::2] > 0
        first, last = (ends - runs)[1::2][filled], ends[1::2][filled] - 1
        if not len(first):
            return []
        whole = (first // height != last // height).any()  # a run that goes on in the next column
        top = 0 if whole else int((first % height).min())
        bottom = height if whole else int((last % height).max()) + 1
        left, right = int(first[0]) // height, int(last[-1]) // height + 1
        across, down = (a / b for a, b in zip(self._sizes[0], found.size[::-1], strict=True))
        return [left * across, top * down, (right - left) * across, (bottom - top) * down]

    def features(self) -> Example:
        """The features of the form; none for `none`."""
        if self._form == "png":
            return {"image/object/mask": bytes_feature(self._pieces)}
        if self._form == "rle":
            return {
                "image/object/rle/counts": bytes_feature(self._pieces),
                "image/object/rle/size": int64_feature(self._rle_sizes),
            }
        return self._polygons.features() if self._form == "polygons" else {}

    def _runs(self, rle: _Rle) -> list[int]:
        """The run lengths, which fit the image."""
        height, width = rle.size
        if (width, height) not in self._sizes:
            expected = " or ".join(f"{wide} × {high}" for wide, high in dict.fromkeys(self._sizes))
            raise BadAnnotation(f"it is for {width} × {height} pixels, expected {expected}")
        counts = rle.counts
        if isinstance(counts, str):
            counts = decode_rle(counts.encode())
        if min(counts, default=0) < 0 or sum(counts) != width * height:
            raise BadAnnotation(f"its runs have {sum(counts)} pixels, expected {width * height}")
        return counts

    def _write_runs(self, runs: list[int], width: int, height: int) -> None:
        rle = {"size": [height, width], "counts": runs}
        self._write(require_pycocotools().frPyObjects(rle, height, width)["counts"], width, height)

    def _write(self, counts: bytes, width: int, height: int) -> None:
        """Add one mask, given as run lengths in text form."""
        if self._form == "rle":
            self._pieces.append(counts)
            self._rle_sizes += [height, width]
            return
        # Not pycocotools' decode: with NumPy 2 it warns, which is an error under `python -W error`.
        runs = decode_rle(counts)
        bits = np.repeat((np.arange(len(runs)) % 2).astype(np.uint8), runs)
        self._pieces.append(encode_mask(bits.reshape(width, height).T))


def _decoded(segmentation: msgspec.Raw) -> _Coordinates | _Rle:
    text = bytes(segmentation)
    if text in (b"", b"null", b"[]"):
        raise BadAnnotation("there is none")
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        raise BadAnnotation("it is neither polygons nor run lengths") from None


def decode_rle(text: bytes) -> list[int]:
    """The run lengths of a text form."""
    counts: list[int] = []
    value = shift = 0
    for byte in text:
        digit = byte - 48
        if not 0 <= digit < 64 or shift >= 5 * _MAX_DIGITS:
            raise BadAnnotation("its counts are not run lengths")
        value |= (digit & 31) << shift
        shift += 5
        if not digit & 32:
            if digit & 16:
                value -= 1 << shift
            if len(counts) > 2:
                value += counts[-2]
            counts.append(value)
            value = shift = 0
    if shift:
        raise BadAnnotation("its counts end inside a number")
    return counts


def encode_mask(mask: npt.NDArray[np.uint8]) -> bytes:
    """A PNG of a mask (u8, height × width), one bit a pixel: nonzero becomes white.

    Format: PNG (W3C Recommendation, third edition), color type 0, bit depth 1, filter 0 in each
    row; the same bytes with the same zlib. Decoders give 0 and 255, or 0 and 1 without scaling.
    """
    height, width = mask.shape
    rows = np.zeros((height, 1 + (width + 7) // 8), np.uint8)
    # Masks are stored by columns. Packing those is five times as slow as transposing them first.
    rows[:, 1:] = np.packbits(np.ascontiguousarray(mask), axis=1)
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    pixels = zlib.compress(rows.tobytes(), 6)
    parts = _chunk(b"IHDR", header), _chunk(b"IDAT", pixels), _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


class Objects:
    """The objects of one image, from all files that have some of them."""

    def __init__(
        self, labels: CategoryLabels, view: ImageView, masks: MaskForm, keypoints: int | None
    ) -> None:
        self._remarks = view.remarks
        self._boxes = Boxes(labels, view)
        self._masks = Masks(masks, *view.sizes)
        self._keypoints = None if keypoints is None else Keypoints(keypoints, *view.sizes[0])
        self._numbers: dict[tuple[int | float | None, int | float | None], int] = {}

    def add(self, annotations: Iterable[Annotation], task: str) -> None:
        """Add the annotations of one file.

        An annotation of a file of keypoints is the object that another file has under the same id
        and category, and adds its keypoints; without such an object it is one of its own.
        """
        numbers, points = self._numbers, self._keypoints
        earlier = dict(numbers) if task == "keypoints" else {}
        for each in annotations:
            number = earlier.pop((each.id, each.category_id), None) if earlier else None
            if number is None or each.id is None:
                around = partial(self._masks.box_around, each.segmentation)
                if not self._boxes.add(
                    each.name, each.category_id, each.bbox, each.area, each.crowd, around
                ):
                    continue
                problem = self._masks.add(each.segmentation)
                if problem is not None:
                    self._remarks.add("SRC028", f"the mask of {each.name} {problem}")
                if points is None:
                    continue
                number = len(self._boxes) - 1
                numbers.setdefault((each.id, each.category_id), number)
                points.add()
            if points is not None and task == "keypoints" and each.keypoints is not None:
                try:
                    points.set(number, each.keypoints)
                except BadAnnotation as error:
                    detail = f"the keypoints of {each.name} were left out: {error}"
                    self._remarks.add("SRC029", detail)

    def features(self) -> Example:
        """All features of objects."""
        found = {**self._boxes.features(), **self._masks.features()}
        if self._keypoints is not None:
            found.update(self._keypoints.features())
        return found


class PanopticSegments:
    """The panoptic segments of one image, and the PNG that paints them."""

    def __init__(self, labels: CategoryLabels, view: ImageView) -> None:
        self._sizes = view.sizes
        self._boxes = Boxes(labels, view)
        self._ids: list[int] = []
        self._pngs: list[bytes] = []

    def add(self, annotations: Iterable[Annotation]) -> None:
        """Add the segments of the image's annotation; there is at most one."""
        for annotation in annotations:
            if annotation.segments_info is None:
                raise SkipImage("SRC031", "its panoptic annotation has no list of segments")
            for each in annotation.segments_info:
                if each.id is None or not 0 <= each.id < 1 << 24 or each.id != int(each.id):
                    detail = f"a segment has the id {each.id}, which no pixel has"
                    raise SkipImage("SRC031", detail)
                if self._boxes.add(each.name, each.category_id, each.bbox, each.area, each.crowd):
                    self._ids.append(int(each.id))

    def add_png(self, data: bytes) -> None:
        """Add the PNG, byte for byte. The segment of a pixel is red + 256 × green + 256² × blue."""
        try:
            header = read_header(data)
        except ImageError as error:
            raise SkipImage("SRC031", f"the PNG of its segments: {error.detail}") from None
        if header.format != "png":
            raise SkipImage("SRC031", f"its segments are painted in a {header.format}, not a PNG")
        if (header.width, header.height) not in self._sizes:
            width, height = self._sizes[0]
            raise SkipImage(
                "SRC031",
                f"the PNG of its segments has {header.width} × {header.height} pixels, expected "
                f"{width} × {height}",
            )
        self._pngs.append(data)

    def features(self) -> Example:
        """The features; the lists are empty for an image without segments."""
        prefix = "image/panoptic"
        return {
            **self._boxes.features(f"{prefix}/segment"),
            f"{prefix}/segment/id": int64_feature(self._ids),
            f"{prefix}/segment/is_thing": int64_feature(self._boxes.things()),
            f"{prefix}/encoded": bytes_feature(self._pngs),
        }
