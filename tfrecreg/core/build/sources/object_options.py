"""The options of all sources that read boxes.

One image, as its annotations describe it: its size, and the remarks on them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal, NamedTuple, Protocol, TypeVar

from tfrecreg.core.build.sources.interface import Item, Remark, Written, bundled_schema
from tfrecreg.core.example.model import Example
from tfrecreg.core.images.decoder import Conversion, Undecodable, convert_image, require_pillow
from tfrecreg.core.images.model import ImageHeader
from tfrecreg.core.images.read import read_header
from tfrecreg.core.values.errors import RawDataError, UsageError
from tfrecreg.core.values.text import listed, safe

_SHARED = "tfrecreg.core.build.sources"
"""The package that ships the shared schemas."""


@dataclass(frozen=True)
class ObjectOptions:
    """How unusable boxes are treated. The options of a source inherit from it.

    Raises:
        UsageError: `clip` is negative.
        MissingExtraError: `exif=apply` without Pillow.
    """

    bad_boxes: Literal["drop", "keep", "skip-image", "fail"] = "drop"
    """Handling of boxes that are not finite, have no area or leave the image: drop the object, keep
    it unchanged, skip the image, or fail.
    """
    clip: float = 1.0
    """Clip a box that sticks out of its image by at most this many pixels."""
    dangling: Literal["fail", "drop"] = "fail"
    """Handling of annotations whose image or category is not listed."""
    exif: Literal["keep", "apply"] = "keep"
    """Handling of images with an EXIF orientation: keep their bytes, or rotate them as viewers do
    and encode them again, unless their annotations have the sides of the stored pixels. Needs the
    extra `images`.
    """

    def __post_init__(self) -> None:
        if self.clip < 0:
            raise UsageError(
                f"the option `clip` is {self.clip:g}, expected 0 or more pixels",
                hint="--option clip=1",
            )
        if self.exif == "apply":
            require_pillow("`exif=apply`")

    def codecs(self) -> Mapping[str, str]:
        """The encoder of images that are rotated, with its version."""
        return {"pillow": version("pillow")} if self.exif == "apply" else {}

    def refuse_repeated(self, *names: str) -> None:
        """Refuse options with repeated values.

        Raises:
            UsageError: there is one.
        """
        for name in names:
            values = getattr(self, name)
            repeated = {each for each in values if values.count(each) > 1}
            if repeated:
                raise UsageError(
                    f"the option `{name}` has `{safe(min(repeated))}` twice",
                    hint="name each only once",
                )


class _Named(Protocol):
    @property
    def name(self) -> str: ...


S = TypeVar("S", bound=_Named)


def choose_splits(splits: Sequence[S], wanted: Sequence[str]) -> list[S]:
    """Those of `splits` that the option `splits` names; all if it names none.

    Raises:
        UsageError: it names one that does not exist.
    """
    unknown = {*wanted} - {split.name for split in splits}
    if unknown:
        raise UsageError(
            f"the option `splits` names `{safe(min(unknown))}`, and there are "
            f"{listed(split.name for split in splits)}",
            hint="leave out the option to read all",
        )
    return [split for split in splits if not wanted or split.name in wanted]


def object_schema(package: str, names: Iterable[str], options: ObjectOptions) -> str:
    """The schemas `names` as one text: those of an import package, and the shared `objects`,
    `objects_keypoints` and `objects_polygons`.

    Boxes that are kept as they are may be anywhere, and may be NaN: then their features have no
    domain.
    """
    text = "".join(
        bundled_schema(_SHARED if name.partition("_")[0] == "objects" else package, name)
        for name in names
    )
    if options.bad_boxes == "keep":
        within = "float_domain { min: 0 max: 1 disallow_nan: true }"
        text = text.replace(within, "float_domain {}")
    return text


def class_summary(names: Sequence[str]) -> str:
    """How many classes there are, with the first five: ``3 (cat, dog, emu)``."""
    shown = ", ".join(safe(name, limit=60) for name in names[:5])
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{len(names)} ({shown}{more})"


_PLACES = re.compile(
    r"(?:^|[/_])(?:b?box(?:es)?|[xy]_?(?:min|max)|keypoints?|landmarks?|polygons?|masks?"
    r"|segmentation|panoptic)(?:$|[/_])"
)
"""Names of features that hold places in an image: boxes, keypoints, polygons, masks."""
_MEANT = ("the rotated image", "the stored pixels")


def has_places(example: Example) -> bool:
    """Whether a record has boxes, keypoints, polygons or masks."""
    return any(feature.count and _PLACES.search(name) for name, feature in example.items())


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

    def __contains__(self, code: str) -> bool:
        return code in self._found

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
    rotated: str = ""
    """What a remark says of its EXIF orientation, if it has any objects."""

    @classmethod
    def read(
        cls, path: str, data: bytes, options: ObjectOptions, *, width: int = 0, height: int = 0
    ) -> tuple[bytes, ImageHeader, ImageView]:
        """The bytes to write, rotated by their EXIF orientation where `options` say so; their
        header; and the view of the image, whose annotations say that it has `width` × `height`
        pixels.

        Raises:
            ImageError: `data` are no image with a readable header.
            SkipImage: the image should be rotated, and does not decode.
        """
        header = read_header(data)
        rotated, meant = "", 0
        if header.orientation != 1:
            if header.shown != (header.width, header.height) and width and height:
                meant = (width - height) * (header.width - header.height)
            if options.exif == "apply" and meant <= 0:
                data = _rotated(data, header)
                header = read_header(data)
            else:
                sides = f"{header.shown[0]} × {header.shown[1]} pixels"
                rotated = f"viewers rotate it by EXIF orientation {header.orientation}, to {sides}"
                if meant:
                    rotated += f"; its annotations have the sides of {_MEANT[meant > 0]}"
        view = cls.of(path, header, options, width=width, height=height)
        return data, header, view._replace(rotated=rotated) if rotated else view

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

    def written(self, item: Item, example: Example) -> Written:
        """The record of the image, with the remarks on it."""
        if self.rotated and (has_places(example) or "SRC023" in self.remarks):
            self.remarks.add("SRC065", self.rotated)
        return Written(example, self.remarks.remarks(item.split, item.key))

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


def _rotated(data: bytes, header: ImageHeader) -> bytes:
    """An image as viewers show it: a JPEG of the same quality, any other as a PNG."""
    form = "jpeg" if header.format == "jpeg" else "png"
    try:
        return convert_image(data, header, Conversion(0, 0, 0, form, quality=0))
    except Undecodable as error:
        raise SkipImage(error.code, error.detail) from None
