"""Base classes for sources of images with objects, for their options, and for one image."""

from __future__ import annotations

import hashlib
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from tfrecreg.core.build.sources.interface import (
    Item,
    Remark,
    Skipped,
    Source,
    Written,
    bundled_schema,
)
from tfrecreg.core.build.sources.listing import Symlinks, link_problem
from tfrecreg.core.example.model import Example
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.images.decoder import Conversion, Undecodable, convert_image, require_pillow
from tfrecreg.core.images.model import ImageError, ImageHeader
from tfrecreg.core.images.read import read_header, truncation_text
from tfrecreg.core.storage.interface import Entry
from tfrecreg.core.values.errors import RawDataError, UsageError
from tfrecreg.core.values.text import listed, safe

_SHARED = "tfrecreg.core.build.sources"
"""The package with the shared schemas."""


@dataclass(frozen=True)
class ObjectOptions:
    """The handling of faulty annotations and of EXIF orientations. A source's options inherit from
    this class.

    Raises:
        UsageError: `clip` is negative.
        MissingExtraError: `exif=apply` without Pillow.
    """

    bad_boxes: Literal["drop", "keep", "skip-image", "fail"] = "drop"
    """Handling of bad boxes: drop the object, keep a box of four numbers unchanged, skip the image,
    or fail. A box is bad if it is missing, is not finite, has no area, or leaves the image by more
    than `clip`.
    """
    clip: float = 1.0
    """Clip boxes that extend beyond the image by at most this many pixels."""
    dangling: Literal["fail", "drop"] = "fail"
    """Handling of annotations whose image or category is not listed."""
    exif: Literal["keep", "apply"] = "keep"
    """Handling of images with an EXIF orientation: keep their bytes, or rotate them as viewers do
    and encode them again. A sideways image is not rotated if its annotations state the width and
    height of the stored pixels. Needs the extra `images`.
    """

    def __post_init__(self) -> None:
        if self.clip < 0:
            raise UsageError(f"the option `clip` is {self.clip:g}, expected 0 or more pixels")
        if self.exif == "apply":
            require_pillow("`exif=apply`")


D = TypeVar("D")
C = TypeVar("C")
S = TypeVar("S", bound=Any)


def choose_splits(splits: Sequence[S], wanted: Sequence[str]) -> list[S]:
    """The splits that the option `splits` names; all if it names none.

    Raises:
        UsageError: it names a split that does not exist.
    """
    unknown = {*wanted} - {split.name for split in splits}
    if unknown:
        raise UsageError(
            f"the option `splits` names `{min(unknown)}`, but the splits are "
            f"{listed(split.name for split in splits)}"
        )
    return [split for split in splits if not wanted or split.name in wanted]


def object_schema(package: str, names: Iterable[str], options: ObjectOptions) -> str:
    """Join the schemas in `names`. Names that begin with `objects` refer to schemas of this
    package. Other names refer to schemas of `package`.

    If bad boxes are kept unchanged, their numbers may have any value or be NaN, so their features
    have no domain.
    """
    text = "".join(
        bundled_schema(_SHARED if name.startswith("objects") else package, name) for name in names
    )
    if options.bad_boxes == "keep":
        text = text.replace("float_domain { min: 0 max: 1 disallow_nan: true }", "float_domain {}")
    return text


def class_summary(names: Sequence[str]) -> str:
    """The number of classes and the first five of them: ``3 (cat, dog, emu)``."""
    shown = ", ".join(safe(name, limit=60) for name in names[:5])
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{len(names)} ({shown}{more})"


_PLACES = re.compile(
    r"(?:^|[/_])(?:b?box(?:es)?|[xy]_?(?:min|max)|keypoints?|landmarks?|polygons?|masks?"
    r"|segmentation|panoptic)(?:$|[/_])"
)
"""Names of features that hold positions in an image: boxes, keypoints, polygons, masks."""


def has_places(example: Example) -> bool:
    """Whether a record has boxes, keypoints, polygons or masks."""
    return any(feature.count and _PLACES.search(name) for name, feature in example.items())


class BadAnnotation(Exception):
    """A part of an annotation that cannot be written. The text is the reason."""


class SkipImage(Exception):
    """The image or row gets no example. The arguments are a ``SRC`` code, and why, in words."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail


MAX_IMAGE_BYTES = 1 << 30
"""Maximum size in bytes of a file that goes into a record."""


def image_features(data: bytes, header: ImageHeader, *, filename: str, source_id: str) -> Example:
    """The features of the image itself: its unchanged file, facts from its header, its name in the
    annotations, and its identity in the raw data.
    """
    return {
        "image/encoded": bytes_feature(data),
        "image/format": bytes_feature(header.format),
        "image/height": int64_feature(header.height),
        "image/width": int64_feature(header.width),
        "image/filename": bytes_feature(filename),
        "image/source_id": bytes_feature(source_id),
        "image/key/sha256": bytes_feature(hashlib.sha256(data).hexdigest()),
    }


def image_size(path: str, entry: Entry | None, *, symlinks: Symlinks = "all") -> int:
    """Size in bytes of an image, or of another file that goes into a record.

    Args:
        entry: the entry of :func:`list_files` for `path`, or None.
        symlinks: the links that :func:`list_files` followed.

    Raises:
        SkipImage: it does not exist, is not a file, is too large for a record, or has a name that
            is not UTF-8.
    """
    if entry is None:
        raise SkipImage("SRC112", f"there is no file `{safe(path)}`")
    if entry.kind == "link":
        raise SkipImage("SRC111", link_problem(symlinks))
    if entry.kind != "file":
        raise SkipImage("SRC111", "expected a file, found a FIFO, a socket or a device")
    if entry.size > MAX_IMAGE_BYTES:
        detail = f"the file has {entry.size} bytes, more than {MAX_IMAGE_BYTES}"
        raise SkipImage("SRC110", detail)
    try:
        path.encode()
    except UnicodeEncodeError:
        raise SkipImage("SRC111", "the name is not UTF-8") from None
    return entry.size


class ImageRemarks:
    """Counts the remarks on one image per code and kind, and keeps the first text of each.

    Dropped objects are also counted together, whatever the reason.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[str, int]] = {}
        self._dropped: list[str] = []
        self._written = 0

    def add(self, code: str, detail: str, kind: str = "") -> None:
        """Count one more remark of `code`. Remarks of different kinds are counted separately."""
        first, times = self._found.get((code, kind), (detail, 0))
        self._found[code, kind] = first, times + 1

    def has(self, code: str, kind: str = "") -> bool:
        """Whether there is a remark with this code and kind."""
        return (code, kind) in self._found

    def drop(self, code: str, detail: str, kind: str = "") -> None:
        """Count a dropped object. Also count one more remark of `code`, with the reason as its
        text.
        """
        self.add(code, detail, kind)
        self._dropped.append(detail)

    def write(self, objects: int) -> None:
        """Count written objects."""
        self._written += objects

    def remarks(self, split: str, key: str) -> list[Remark]:
        """One remark for each code and kind, in order of the codes."""
        found = [
            Remark(split, key, code, first if times == 1 else f"{first}; {times} such", times)
            for (code, _), (first, times) in self._found.items()
        ]
        if number := len(self._dropped):
            every = number + self._written
            detail = f"{number} of {every} objects: {self._dropped[0]}"
            found.append(Remark(split, key, "SRC047", detail, number))
            if not self._written:
                found.append(Remark(split, key, "SRC048", "none of its objects is left"))
        return sorted(found)


class ImageView(NamedTuple):
    """One image, with the size that its annotations state."""

    path: str
    """Its path, for messages."""
    sizes: tuple[tuple[int, int], tuple[int, int]]
    """Width and height in pixels: first from the annotations, then from the image's header. Boxes,
    keypoints and polygons are relative to the annotations' size.
    """
    options: ObjectOptions
    remarks: ImageRemarks
    rotated: str = ""
    """A remark on the EXIF orientation. It is made only if the image has objects."""

    @classmethod
    def read(
        cls, path: str, data: bytes, options: ObjectOptions, *, width: int = 0, height: int = 0
    ) -> tuple[bytes, ImageHeader, ImageView]:
        """The bytes to write, their header, and the view of the image. If `options` say so, the
        image is rotated by its EXIF orientation. `width` and `height` are the size that the
        annotations state, or 0. If the image has another size, a remark (SRC120) is added.

        Raises:
            ImageError: `data` are not an image with a readable header.
            SkipImage: the image needs to be rotated, but does not decode.
        """
        header = read_header(data)
        rotated, meant = "", 0
        if header.orientation != 1:
            if header.shown != (header.width, header.height) and width and height:
                meant = (width - height) * (header.width - header.height)
            if options.exif == "apply" and meant <= 0:
                # As viewers show it. A JPEG keeps its quality, any other format becomes a PNG.
                form = "jpeg" if header.format == "jpeg" else "png"
                try:
                    data = convert_image(data, header, Conversion(0, 0, 0, form, quality=0))
                except Undecodable as error:
                    raise SkipImage(error.code, error.detail) from None
                header = read_header(data)
            else:
                sides = f"{header.shown[0]} × {header.shown[1]} pixels"
                rotated = f"it has EXIF orientation {header.orientation}: viewers show {sides}"
                if meant:
                    which = "the stored pixels" if meant > 0 else "the rotated image"
                    rotated += f"; its annotations state the size of {which}"
        remarks = ImageRemarks()
        stored = header.width, header.height
        size = width or header.width, height or header.height
        if size != stored:
            found = f"{stored[0]} × {stored[1]} pixels"
            said = f"{size[0]} × {size[1]}"
            remarks.add("SRC120", f"{found}, but its annotations say {said}", "size")
        return data, header, cls(path, (size, stored), options, remarks, rotated)

    def written(self, item: Item, example: Example) -> Written:
        """The record of the image, with the remarks on it."""
        if self.rotated and (has_places(example) or self.remarks.has("SRC115", "box")):
            self.remarks.add("SRC120", self.rotated, "rotation")
        return Written(example, self.remarks.remarks(item.split, item.key))

    def leave_out(self, detail: str, kind: str = "object") -> None:
        """Leave out an unreadable object, or its whole image, as the option `bad_boxes` says.

        Raises:
            SkipImage: the option says to skip the image.
            RawDataError: the option says to fail.
        """
        if self.options.bad_boxes == "fail":
            raise RawDataError(
                f"`{self.path}`: {detail}",
                hint="fix the file, or leave such objects out: --option bad_boxes=drop",
            )
        if self.options.bad_boxes == "skip-image":
            raise SkipImage("SRC113", f"{detail}; --option bad_boxes=drop keeps the picture")
        self.remarks.drop("SRC115", f"{detail}; it was dropped", kind)

    def png_problem(self, data: bytes) -> str:
        """Why `data` are not a PNG of the image's size; empty if they are."""
        try:
            header = read_header(data)
        except ImageError as error:
            return error.detail
        if header.format != "png":
            return f"it is a {header.format}, not a PNG"
        if (header.width, header.height) not in self.sizes:
            width, height = self.sizes[0]
            return f"it has {header.width} × {header.height} pixels, expected {width} × {height}"
        return ""


class ImageNotes(NamedTuple):
    """Facts about an image from its annotations, before the image is read."""

    filename: str
    """Its name, for the feature `image/filename`."""
    source_id: str
    """Its identity in the raw data."""
    width: int = 0
    """Pixels; 0 if the annotations do not state it."""
    height: int = 0
    annotations: Any = None
    """Data that :meth:`ObjectSource.objects` needs."""


class ObjectSource(Source, Generic[D, C]):
    """Images with objects. An item's key is the image's path.

    In the parent, :meth:`load` lists and reads the raw data once. The result is the **dataset**.
    :meth:`items` yields the images of the dataset. A worker gets the **context**, which is small.
    There, :meth:`example` makes an item's record: it asks :meth:`notes_on` for the annotations,
    reads the image, and joins :func:`image_features` with the features that :meth:`objects`
    returns. To make these features, sources use classes such as :class:`tfrecreg.api.Boxes`. These
    classes skip images and drop objects as :class:`ObjectOptions` says.
    """

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.raw, self.options), {"context": self.context}

    @abstractmethod
    def load(self) -> D:
        """List the raw data. Called once."""

    @abstractmethod
    def context_of(self, dataset: D) -> C:
        """The data that all items share. Picklable. Called once."""

    @abstractmethod
    def notes_on(self, item: Item) -> ImageNotes:
        """Facts about an item's image from its annotations. Called in a worker.

        Raises:
            SkipImage: the image gets no example.
        """

    @abstractmethod
    def objects(self, item: Item, notes: ImageNotes, view: ImageView) -> Example:
        """The features of the objects. Called in a worker.

        Raises:
            SkipImage: the image gets no example.
        """

    @cached_property
    def dataset(self) -> D:
        """The raw data, in the parent. In a worker, this would list the raw folder again: use
        :attr:`context` there.
        """
        return self.load()

    @cached_property
    def context(self) -> C:
        """The data that all items share."""
        return self.context_of(self.dataset)

    def example(self, item: Item) -> Written | Skipped:
        """The image with its objects."""
        data = self.raw.read(item.key, limit=MAX_IMAGE_BYTES)
        try:
            notes = self.notes_on(item)
            data, header, view = ImageView.read(
                item.key, data, self.options, width=notes.width, height=notes.height
            )
            example = {
                **image_features(data, header, filename=notes.filename, source_id=notes.source_id),
                **self.objects(item, notes, view),
            }
        except (ImageError, SkipImage) as error:
            return Skipped(item.split, item.key, error.code, error.detail)
        if detail := truncation_text(data, header):
            view.remarks.add("SRC014", detail)
        return view.written(item, example)

    def codecs(self) -> Mapping[str, str]:
        """The encoder of rotated images, with its version."""
        return {"pillow": version("pillow")} if self.options.exif == "apply" else {}

    def raw_path(self, split: str, key: str) -> str | None:  # noqa: ARG002 - keys are paths
        """The path of the image file; None if images may be encoded again."""
        return None if self.options.exif == "apply" else key
