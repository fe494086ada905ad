"""Segmentations of objects: polygons unchanged, run lengths as text, or one PNG per object.

pycocotools draws polygons; only the forms that need it import it. Its C code allocates the size in
the data, so every segmentation is measured before it gets there.

Run lengths (RLE) read a mask of h × w pixels column by column from the top left, as runs of zeros
and ones in turn, zeros first. Their text form (the MIT-licensed `maskApi.c` of COCO) writes each
run, from the fourth on as the difference to the one two before, as base-32 digits with the lowest
first, each as the character 48 + digit, plus 32 where more follow; the sign is bit 16 of the last.
"""

from __future__ import annotations

import importlib
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tfrecreg.api import (
    BadAnnotation,
    Example,
    MissingExtraError,
    Polygons,
    SkipImage,
    box_around,
    bytes_feature,
    int64_feature,
)
from tfrecreg_coco.coco_options import MaskForm

_MAX_PIXELS = 1 << 26
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
        if form == "png" and max(width * height for width, height in sizes) > _MAX_PIXELS:
            width, height = sizes[0]
            detail = f"masks of {width} × {height} pixels are too large to draw"
            raise SkipImage("SRC028", detail)
        self._form = form
        self._sizes = sizes
        self._pieces: list[bytes] = []
        self._rle_sizes: list[int] = []
        self._polygons = Polygons(*sizes[0])

    def add(self, segmentation: msgspec.Raw) -> str | None:
        """Add an object, with its segmentation as JSON."""
        if self._form == "none":
            return None
        try:
            problem = self._add(bytes(segmentation))
        except BadAnnotation as error:
            if self._form == "polygons":
                self._polygons.add([])
            else:
                width, height = self._sizes[0]
                self._write(encode_rle([width * height]), width, height)
            return f"is left empty: {error}"
        return f"lacks a part: {problem}" if problem else None

    def box_around(self, segmentation: msgspec.Raw) -> list[float]:
        """Left, top, width and height of the box around a segmentation; empty where it has none."""
        try:
            found = _DECODER.decode(bytes(segmentation))
            if not isinstance(found, _Rle):
                return [*box_around(self._polygons.usable(found)[0])]
            runs, height = self._runs(found), found.size[0]
        except (BadAnnotation, ValueError, RecursionError):
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
        if self._form == "polygons":
            return self._polygons.features()
        return {}

    def _add(self, text: bytes) -> str:
        """Add a segmentation; why a part of it is lacking, else empty."""
        if text in (b"", b"null", b"[]"):
            raise BadAnnotation("there is none")
        try:
            found = _DECODER.decode(text)
        except (ValueError, RecursionError):
            raise BadAnnotation("it is neither polygons nor run lengths") from None
        if isinstance(found, _Rle):
            self._add_rle(found)
            return ""
        return self._add_polygons(found)

    def _add_polygons(self, polygons: _Coordinates) -> str:
        """Add those that can be used; why the first of the others cannot, else empty."""
        kept, problem = self._polygons.usable(polygons)
        if self._form == "polygons":
            self._polygons.add(kept)
        else:
            width, height = self._sizes[0]
            if width * height > _MAX_PIXELS:
                raise BadAnnotation(f"a mask of {width} × {height} pixels is too large to draw")
            mask = require_pycocotools()
            drawn = mask.merge(mask.frPyObjects(kept, height, width))
            self._write(drawn["counts"], width, height)
        return problem

    def _add_rle(self, rle: _Rle) -> None:
        counts, (height, width) = self._runs(rle), rle.size
        if self._form == "polygons":
            raise BadAnnotation("it is run lengths, which polygons cannot express")
        self._write(encode_rle(counts), width, height)

    def _runs(self, rle: _Rle) -> list[int]:
        """The run lengths, which fit the image."""
        height, width = rle.size
        if (width, height) not in self._sizes:
            expected = " or ".join(f"{wide} × {high}" for wide, high in dict.fromkeys(self._sizes))
            raise BadAnnotation(f"it is for {width} × {height} pixels, expected {expected}")
        counts = rle.counts
        if isinstance(counts, str):
            try:
                counts = decode_rle(counts.encode("utf-8", "surrogatepass"))
            except ValueError as error:
                raise BadAnnotation(str(error)) from None
        if min(counts, default=0) < 0 or sum(counts) != width * height:
            raise BadAnnotation(f"its runs have {sum(counts)} pixels, expected {width * height}")
        return counts

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


def decode_rle(text: bytes) -> list[int]:
    """The run lengths of a text form."""
    counts: list[int] = []
    value = shift = 0
    for byte in text:
        digit = byte - 48
        if not 0 <= digit < 64 or shift >= 5 * _MAX_DIGITS:
            raise ValueError("its counts are not run lengths")
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
        raise ValueError("its counts end inside a number")
    return counts


def encode_rle(counts: Sequence[int]) -> bytes:
    """The text form of run lengths."""
    text = bytearray()
    for number, count in enumerate(counts):
        value = count - counts[number - 2] if number > 2 else count
        more = True
        while more:
            digit = value & 31
            value >>= 5
            more = value != (-1 if digit & 16 else 0)
            text.append(48 + digit + 32 * more)
    return bytes(text)


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
