"""One image, as its annotations describe it: its size, and the remarks on them."""

from __future__ import annotations

from typing import NamedTuple

from tfrecreg.errors import RawDataError
from tfrecreg.images.model import ImageHeader
from tfrecreg.sources.interface import Remark
from tfrecreg.sources.objects.options import ObjectOptions
from tfrecreg.text import safe


class BadAnnotation(Exception):
    """A part of an annotation that cannot be written. The text is the reason."""


class SkipImage(Exception):
    """The image gets no example.

    Args:
        code: a ``SRC`` code.
        detail: why, in words.
    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail


class ImageRemarks:
    """The remarks on one image: by code, how often, and the first one in words.

    Objects that are dropped are counted apart, whatever the reason.
    """

    def __init__(self) -> None:
        self._found: dict[str, tuple[str, int]] = {}
        self._dropped: list[str] = []
        self._written = 0

    def add(self, code: str, detail: str) -> None:
        """Count one more of `code`."""
        first, times = self._found.get(code, (detail, 0))
        self._found[code] = first, times + 1

    def drop(self, code: str, detail: str) -> None:
        """Count one more of `code`, for which an object is dropped."""
        self.add(code, detail)
        self._dropped.append(detail)

    def write(self, objects: int) -> None:
        """Count objects that are written."""
        self._written += objects

    def remarks(self, split: str, key: str) -> list[Remark]:
        """One for each code, in order of the codes."""
        found = [
            Remark(split, key, code, first if times == 1 else f"{first}; {times} such", times)
            for code, (first, times) in sorted(self._found.items())
        ]
        if number := len(self._dropped):
            every = number + self._written
            detail = f"{number} of {every} objects: {self._dropped[0]}"
            found.append(Remark(split, key, "SRC047", detail, number))
            if not self._written:
                found.append(Remark(split, key, "SRC048", "none of its objects is left"))
        return sorted(found)


class ImageView(NamedTuple):
    """One image, as its annotations describe it."""

    path: str
    """Its path, for messages."""
    sizes: tuple[tuple[int, int], tuple[int, int]]
    """Width and height in pixels: those that the annotations say, and those of its header. Boxes,
    keypoints and polygons are measured against the first."""
    options: ObjectOptions
    remarks: ImageRemarks

    @classmethod
    def of(
        cls, path: str, header: ImageHeader, options: ObjectOptions, *, width: int, height: int
    ) -> ImageView:
        """The view of an image whose annotations say that it has `width` × `height` pixels.

        A side of 0 is one that they do not say. Sizes that differ are a remark (SRC027).
        """
        remarks = ImageRemarks()
        stored = header.width, header.height
        size = width or header.width, height or header.height
        if size != stored:
            found = f"{stored[0]} × {stored[1]} pixels"
            said = f"{size[0]} × {size[1]}"
            remarks.add("SRC027", f"{found}, and its annotations say {said}")
        return cls(path, (size, stored), options, remarks)

    def leave_out(self, code: str, detail: str) -> None:
        """Leave out an object that cannot be read, its image or all, as the option for boxes says.

        Raises:
            SkipImage: with `code`, where the option says so.
            RawDataError: where the option says so.
        """
        if self.options.bad_boxes == "fail":
            raise RawDataError(
                f"`{safe(self.path)}`: {detail}",
                hint="fix the file, or leave such objects out: --option bad_boxes=drop",
            )
        if self.options.bad_boxes == "skip-image":
            raise SkipImage(code, f"{detail}; --option bad_boxes=drop keeps the picture")
        self.remarks.drop(code, f"{detail}; it was dropped")
