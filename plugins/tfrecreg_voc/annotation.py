"""What an XML says of its image."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from xml.etree.ElementTree import Element

from tfrecreg.api import BadAnnotation, SkipImage, safe
from tfrecreg_voc.xml_reader import XmlError, child_text, parse_xml

_SIDES = ("xmin", "ymin", "xmax", "ymax")


class VocObject(NamedTuple):
    """One object."""

    name: str
    """Its class."""
    box: tuple[float, float, float, float]
    """xmin, ymin, xmax and ymax as they are written."""
    difficult: int
    truncated: int
    occluded: int
    pose: str
    parts: int
    """Number of its parts, which are not read."""


class VocAnnotation:
    """The annotation of one image."""

    def __init__(self, data: bytes) -> None:
        try:
            self._root = parse_xml(data)
        except XmlError as error:
            raise SkipImage("SRC041", f"its XML cannot be read: {error}") from None
        if self._root.tag != "annotation":
            detail = f"its XML is a `{safe(self._root.tag, limit=40)}`, expected `annotation`"
            raise SkipImage("SRC041", detail)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels; 0 where it does not say them."""
        size = self._root.find("size")
        if size is None:
            return 0, 0
        return _pixels(child_text(size, "width")), _pixels(child_text(size, "height"))

    @property
    def filename(self) -> str:
        """The name that it has for its image, without folders."""
        return child_text(self._root, "filename").replace("\\", "/").rpartition("/")[2]

    @property
    def segmented(self) -> bool:
        """Whether it says that the image is segmented."""
        return _flag(child_text(self._root, "segmented")) == 1

    @property
    def class_names(self) -> set[str]:
        """The classes of its objects."""
        return {child_text(each, "name") for each in self._root.findall("object")} - {""}

    @property
    def origin(self) -> str:
        """What it says of its source; empty without."""
        found = self._root.find("source")
        return "" if found is None else " ".join("".join(found.itertext()).split())

    @property
    def begins_at_zero(self) -> bool:
        """Whether the left or upper side of a box is 0."""
        boxes = (each.find("bndbox") for each in self._root.findall("object"))
        sides = [child_text(box, side) for box in boxes if box is not None for side in _SIDES[:2]]
        return any(side and not side.strip("0.") for side in sides)

    def objects(self) -> Iterator[VocObject | BadAnnotation]:
        """Its objects, and why others cannot be read."""
        for each in self._root.findall("object"):
            try:
                yield _object(each)
            except BadAnnotation as error:
                yield error


def _object(element: Element) -> VocObject:
    name = child_text(element, "name")
    if not name:
        raise BadAnnotation("has no name")
    box = element.find("bndbox")
    if box is None:
        raise BadAnnotation(f"(`{safe(name, limit=40)}`) has no box")
    xmin, ymin, xmax, ymax = (_number(box, side) for side in _SIDES)
    return VocObject(
        name=name,
        box=(xmin, ymin, xmax, ymax),
        difficult=_flag(child_text(element, "difficult")),
        truncated=_flag(child_text(element, "truncated")),
        occluded=_flag(child_text(element, "occluded")),
        pose=child_text(element, "pose") or "Unspecified",
        parts=len(element.findall("part")),
    )


def _number(box: Element, side: str) -> float:
    text = child_text(box, side)
    try:
        if "_" in text:  # Python takes `1_0` for ten
            raise ValueError
        return float(text)
    except ValueError:
        shown = safe(text, limit=20)
        raise BadAnnotation(f"has `{shown}` as `{side}`, expected a number") from None


def _flag(text: str) -> int:
    """1 if a flag is set. LabelImg writes numbers, other programs words."""
    return int(text.lower() in ("1", "true", "yes"))


def _pixels(text: str) -> int:
    """A side of the image; 0 if the text is not one."""
    try:
        value = float(text)
    except ValueError:
        return 0
    return int(value) if 0 < value < 2**31 else 0
