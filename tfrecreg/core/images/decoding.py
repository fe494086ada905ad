"""The interface of decoders for the formats of a feature's bytes.

A decoder serves ``data_source(decode=…)``, the check of images, and pages at once.
:mod:`tfrecreg.core.plugins.decoders` finds the one that reads a value.
"""

from __future__ import annotations

import struct
import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import numpy.typing as npt

    from tfrecreg.core.images.model import ImageHeader
    from tfrecreg.core.images.pixels import Resizing

START = 64
"""Number of bytes of a value that decide which decoder reads it."""
_COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}
"""Color type of a PNG by its number of channels."""


class Thumbnail(NamedTuple):
    """A small picture, encoded."""

    format: Literal["jpeg", "png"]
    data: bytes


class FeatureDecoder(ABC):
    """Reads the values of features that hold encoded data of one kind, such as depth maps.

    One object serves all features and all records of a process, and several threads. Each method
    gets one value. A :class:`ValueError` of a method means that the value is damaged, and its text
    says how; any other exception is a failure of the decoder.
    """

    @abstractmethod
    def reads(self, feature: str, start: bytes) -> bool:
        """Whether it reads a value. Called for the first value of a feature, not for each.

        Args:
            feature: name of the feature.
            start: the value, or its first 64 bytes.
        """

    @abstractmethod
    def array(self, data: bytes) -> npt.NDArray[Any]:
        """The decoded value, as an element of ``data_source(decode=…)`` has it.

        Returns:
            An array that may be written to, of numbers; for images of shape
            (height, width, channels). All values of a feature should have one dtype and one number
            of dimensions.

        Raises:
            ValueError: the value is damaged.
        """

    def resized(self, data: bytes, fit: Resizing) -> npt.NDArray[Any]:
        """A decoded image in another size; by default made of :meth:`array`.

        Args:
            data: the value.
            fit: from height and width of the image to those that it gets, and to the part of it
                that gets them: top, left, height and width.

        Raises:
            ValueError: the value is damaged, or no image of 8 bits.
        """
        pixels = self.array(data)
        if pixels.ndim != 3 or pixels.dtype.name != "uint8":
            raise ValueError(
                f"`image_size` applies to images of 8 bits, and this is {pixels.dtype} of shape "
                f"{pixels.shape}"
            )
        from tfrecreg.core.images.pixels import resized

        return resized(pixels, fit)

    def header(self, data: bytes) -> ImageHeader | None:
        """The facts that the value states about itself, without decoding it: a check compares them
        with the declarations of the record. None, the default, for values that are not pictures;
        these have no thumbnail.

        Raises:
            ValueError: the value is damaged.
        """
        del data
        return None

    def thumbnail(self, data: bytes, side: int) -> Thumbnail | None:
        """A small image for a page, or None. By default it shows :meth:`array`, if that has the
        shape of an image: numbers other than uint8 go from black, the lowest, to white.

        Args:
            data: the value.
            side: pixels of the shorter side, at most.

        Raises:
            ValueError: the value is damaged.
        """
        return _small_png(self.array(data), side)

    def caption(self, data: bytes) -> str:
        """A few words for ``head`` and pages: ``depth map, 640x480, 1.2 MB``. If they are empty, as
        by default, name and size are shown.

        Raises:
            ValueError: the value is damaged.
        """
        del data
        return ""


class PixelsDecoder(FeatureDecoder):
    """Reads the values of a feature that the schema declares as the pixels of an image, row by
    row, a byte for each channel of each pixel.
    """

    def __init__(self, size: tuple[int, int, int]) -> None:
        self.size = size

    def reads(self, feature: str, start: bytes) -> bool:
        del feature, start
        return True

    def array(self, data: bytes) -> npt.NDArray[Any]:
        import numpy as np

        height, width, channels = self.size
        if len(data) != height * width * channels:
            expected = f"{height} x {width} x {channels} = {height * width * channels}"
            raise ValueError(f"the schema declares {expected} bytes of pixels, found {len(data)}")
        pixels: npt.NDArray[Any] = np.frombuffer(data, np.uint8).reshape(self.size).copy()
        return pixels

    def header(self, data: bytes) -> ImageHeader:
        del data  # all have the declared size
        from tfrecreg.core.images.model import ImageHeader

        return ImageHeader("pixels", *self.size, bits=8, animated=False)

    def caption(self, data: bytes) -> str:
        sides = "x".join(map(str, self.size))
        return f"pixels, {sides}, {len(data)} B"


def pixel_bytes(numbers: Sequence[float]) -> bytes:
    """Numbers that are pixels, a byte each: those from 0 to 255 as they are, if one is above 1;
    others from black, the lowest, to white.
    """
    import numpy as np

    values = np.nan_to_num(np.asarray(numbers, np.float64), posinf=0, neginf=0)
    if values.size and not (values.min() >= 0 and 1 < values.max() <= 255):
        values = values - values.min()
        values = values * (255 / max(float(values.max()), 1e-300))
    return values.astype(np.uint8).tobytes()


def _small_png(array: npt.NDArray[Any], side: int) -> Thumbnail | None:
    import numpy as np

    pixels = array[:, :, np.newaxis] if array.ndim == 2 else array
    if pixels.ndim != 3 or not pixels.size or pixels.shape[2] not in _COLOURS:
        return None
    step = -(-min(pixels.shape[:2]) // side)
    pixels = pixels[::step, ::step]
    if pixels.dtype != np.uint8:
        numbers = np.nan_to_num(pixels.astype(np.float64), posinf=0, neginf=0)
        numbers -= numbers.min()
        pixels = (numbers * (255 / max(float(numbers.max()), 1e-300))).astype(np.uint8)
    height, width, channels = pixels.shape
    lines = np.zeros((height, 1 + width * channels), np.uint8)  # each begins with: no filter
    lines[:, 1:] = pixels.reshape(height, -1)
    head = struct.pack(">2I5B", width, height, 8, _COLOURS[channels], 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b""))
    made = b"".join(_chunk(kind, content) for kind, content in chunks)
    return Thumbnail("png", b"\x89PNG\r\n\x1a\n" + made)


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
